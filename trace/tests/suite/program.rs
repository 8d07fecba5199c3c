//! Programs that tests run.

use std::ffi::OsString;
use std::process::Command;

/// What a program prints; fails with its errors where the program does.
#[track_caller]
pub(crate) fn stdout_of(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A Python that has these packages, which blanks part, or a printed reason to skip.
/// `FLOPWATCH_PYTHON` names it; without that the one on the PATH is asked.
pub(crate) fn python_with(packages: &str) -> Option<OsString> {
    let python = std::env::var_os("FLOPWATCH_PYTHON").unwrap_or_else(|| "python3".into());
    let asks = format!("import importlib.util as u; raise SystemExit(None in map(u.find_spec, '{packages}'.split()))");
    let has = Command::new(&python).args(["-c", &asks]).output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: no Python with {packages} on this machine (set FLOPWATCH_PYTHON to one)");
    None
}
