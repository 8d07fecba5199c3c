//! Programs that tests run.

use std::process::Command;

/// What a program prints; fails with its errors where the program does.
#[track_caller]
pub(crate) fn stdout_of(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
