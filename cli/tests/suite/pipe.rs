//! The reader of what a command prints goes before the end, as `head` does.

use std::process::{Command, Stdio};

#[test]
fn a_reader_that_goes_is_no_error() {
    for line in [&["--help"][..], &["completion", "bash"], &["__complete", "prof"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-flopwatch"))
            .args(line)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(0), ""), "{line:?}");
    }
}
