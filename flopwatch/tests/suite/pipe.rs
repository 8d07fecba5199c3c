//! The reader of what a command prints goes before the end, as `head` does.

use std::process::{Command, Output, Stdio};

/// Runs the program with a standard output that nobody reads.
fn unheard(arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    Command::new(env!("CARGO_BIN_EXE_flopwatch"))
        .args(arguments)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the program starts")
}

#[test]
fn a_reader_that_goes_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let event =
        r#"{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}}"#;
    std::fs::write(&trace, format!(r#"{{"schemaVersion": 1, "traceEvents": [{event}]}}"#)).unwrap();
    let trace = trace.to_str().unwrap();
    let lines: [&[&str]; 6] = [
        &["--help"],
        &["completion", "bash"],
        &["completion", "zsh"],
        &["analyze", "--list"],
        &["summary", "--quiet", trace],
        &["diagnose", "--quiet", trace],
    ];
    for line in lines {
        let output = unheard(line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(0), ""), "{line:?}");
    }
}
