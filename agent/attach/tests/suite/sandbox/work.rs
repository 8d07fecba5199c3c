//! Work that the calling program does itself, in place of a tool.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use flopwatch_attach::reexec::{End, Output, Reexec};
use flopwatch_attach::sandbox::{self, Sandboxed};

use super::rig::{ORDINARY, Rig, text};

/// The work of `examples/reexec.rs` on these words, which may read its input.
fn work(rig: &Rig, words: &[PathBuf]) -> Sandboxed {
    let mut sandboxed = rig.tool("");
    sandboxed.command = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    sandboxed.directory = PathBuf::from("/sys");
    // An ordinary user lacks a user of its own.
    sandboxed.whole = false;
    sandboxed
}

fn ran(reexec: Reexec, sandboxed: &Sandboxed) -> (Output, String) {
    let (mut read, written) = UnixStream::pair().unwrap();
    let reexec = reexec.with_arguments(["work".into()]).with_stdout(written.into());
    let output = sandbox::run(&reexec, sandboxed).unwrap();
    drop(reexec);
    let mut said = String::new();
    read.read_to_string(&mut said).unwrap();
    (output, said)
}

#[test]
fn work_of_the_program_itself_sees_its_input_alone() {
    let Some(rig) = Rig::new() else { return };
    let seen = rig.at("spool/own/input");
    let hidden = [
        rig.at("spool/other/work/secret"),
        rig.at("tls/tls.key"),
        rig.helper.to_owned(),
        PathBuf::from("/etc/passwd"),
        PathBuf::from("/sys/kernel/mm/transparent_hugepage/enabled"),
    ];
    let words: Vec<PathBuf> = [seen.clone()].into_iter().chain(hidden.clone()).collect();
    for started in [rig.agent(), rig.started_by("ordinary", ORDINARY)] {
        let (output, said) = ran(started, &work(&rig, &words));
        if output.missing.len() > 1 {
            println!(
                "skipped: this system gives ordinary users no namespaces: {}",
                text(&output)
            );
            continue;
        }
        assert_eq!(output.end, End::Exited(7), "{}\n{said}", text(&output));
        assert!(
            output.stdout.is_empty(),
            "what goes elsewhere is not kept: {}",
            text(&output)
        );
        assert!(
            said.contains(&format!("reads {}: foreign\n", seen.display())),
            "{}\n{said}",
            text(&output)
        );
        for file in &hidden {
            assert!(
                said.contains(&format!("cannot read {}: NotFound\n", file.display())),
                "{said}"
            );
        }
        assert!(!said.contains("writes"), "{said}");
    }
}

#[test]
fn work_that_aborts_takes_nobody_along() {
    let Some(rig) = Rig::new() else { return };
    for started in [rig.agent(), rig.started_by("ordinary", ORDINARY)] {
        let (output, said) = ran(started, &work(&rig, &[PathBuf::from("abort")]));
        assert_eq!(output.end, End::Signaled(6), "{}\n{said}", text(&output));
    }
}
