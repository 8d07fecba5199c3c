//! The program as a person runs it, and the traces that it is given.

use std::path::Path;
use std::process::{Command, Output};

/// A trace of one range of 2.25 µs.
pub(crate) const ONE_RANGE: &str = r#"{"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "epoch", "pid": 7, "tid": 7, "ts": 1000000.5, "dur": 2.25}]}"#;

/// A trace of one kernel of 2 µs.
pub(crate) const ONE_KERNEL: &str = r#"{"schemaVersion": 1, "traceEvents": [
    {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}}]}"#;

/// The program with these words.
pub(crate) fn flopwatch(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flopwatch"));
    command.args(words);
    command
}

/// What came of running the program with these words in a folder.
pub(crate) fn run_in(folder: &Path, words: &[&str]) -> Output {
    let mut command = flopwatch(words);
    command.current_dir(folder).output().expect("the program starts")
}

/// What a program printed, on both of its outputs.
pub(crate) fn text(output: &Output) -> String {
    [stdout(output), stderr(output)].join("\n")
}

/// Fails where a program did not print these words.
#[track_caller]
pub(crate) fn assert_says(output: &Output, words: &str) {
    let text = text(output);
    assert!(text.contains(words), "{words:?} is not in: {text}");
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
