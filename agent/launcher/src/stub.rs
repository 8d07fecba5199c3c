//! The program that a session is started around: says what environment it was given, then sleeps.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::run_dir::write_atomically;

/// Writes the environment to `file`, NUL-separated, owner-readable, then sleeps until it is killed.
/// Returns only when the file could not be written.
pub fn stub(file: &CStr, environment: &[CString]) -> i32 {
    let mut bytes = Vec::new();
    for entry in environment {
        bytes.extend_from_slice(entry.as_bytes_with_nul());
    }
    let path = Path::new(OsStr::from_bytes(file.to_bytes()));
    if let Err(error) = write_atomically(path, &bytes) {
        eprintln!("flopwatch-launcher: cannot write {}: {error}", path.display());
        return 1;
    }
    loop {
        nix::unistd::pause();
    }
}
