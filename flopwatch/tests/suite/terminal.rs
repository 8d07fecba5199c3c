//! What is printed on a terminal, which `script` stands in for, and on a pipe.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{run_in, stdout};

/// Runs the program with these words on a terminal of 60 columns; `None` where there is no
/// `script`.
fn on_terminal(folder: &Path, words: &str, environment: &[(&str, &str)]) -> Option<String> {
    let line = format!("stty cols 60 rows 24; {} {words}", env!("CARGO_BIN_EXE_flopwatch"));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        println!("skipped: there is no script(1)");
        return None;
    };
    Some(stdout(&output).replace("\r\n", "\n"))
}

/// The text without its colors.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[test]
fn tables_fit_the_terminal_in_color_and_a_pipe_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = |kind: &str, start: u64| {
        let name = format!("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_{kind}_align8>(Params)");
        let event = format!(
            r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{start},"dur":2,"args":{{"device":0,"stream":7}}}}"#
        );
        (name, event)
    };
    let kernels = [kernel("half", 1), kernel("float", 5)];
    let events = kernels.each_ref().map(|(_, event)| event.as_str()).join(",");
    let trace = format!(r#"{{"schemaVersion": 1, "traceEvents": [{events}]}}"#);
    std::fs::write(folder.path().join("trace.json"), trace).unwrap();
    for command in ["summary", "analyze cuda_gpu_kern_sum"] {
        let words = format!("{command} --quiet trace.json");
        let Some(shown) = on_terminal(folder.path(), &words, &[]) else {
            return;
        };
        let text = plain(&shown);
        assert!(shown.contains("\u{1b}[1m"), "{command}: {shown:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{command}: {text}");
        assert!(text.contains("half") && text.contains("float"), "{command}: {text}");
        assert!(text.contains("--wide"), "{command}: {text}");
        let black = on_terminal(folder.path(), &words, &[("NO_COLOR", "1")]).unwrap();
        assert!(!black.contains('\u{1b}'), "{command}: {black:?}");
        let wide = on_terminal(folder.path(), &format!("{words} --wide"), &[]).unwrap();
        let piped = stdout(&run_in(folder.path(), &words.split(' ').collect::<Vec<_>>()));
        assert!(!piped.contains('\u{1b}'), "{command}: {piped:?}");
        for (name, _) in &kernels {
            assert!(wide.contains(name) && piped.contains(name), "{command}: {wide}{piped}");
        }
    }
}
