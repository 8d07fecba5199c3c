//! Scripts in the place of programs.

use std::path::Path;
use std::process::Command;

/// Writes a script for the shell that can be executed.
///
/// Another process writes it: a child that a test beside this one forks would hold the file open
/// for writing, and what is open so cannot be executed.
pub fn write(path: &Path, text: &str) {
    let written = Command::new("sh")
        .args([
            "-c",
            "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"",
            "sh",
            text,
        ])
        .arg(path)
        .status();
    assert!(written.unwrap().success());
}
