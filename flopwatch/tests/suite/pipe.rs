//! The reader of what a command prints goes before the end, as `head` does.

use std::process::{Output, Stdio};

use crate::program::{ONE_KERNEL, flopwatch, stderr};

/// Runs the program with a standard output that nobody reads.
fn unheard(arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = flopwatch(arguments);
    command.stdout(writer).stderr(Stdio::piped());
    command.output().expect("the program starts")
}

#[test]
fn a_reader_that_goes_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    std::fs::write(&trace, ONE_KERNEL).unwrap();
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
        assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""), "{line:?}");
    }
}
