//! Whether anybody in the whole system has a file open for writing.
//!
//! The kernel grants a read lease only on a file that no process has open for writing, whatever its
//! user, its PID namespace or its mounts, and a mapping keeps its file open. So asking for one
//! answers what `/proc` shows only to those who may see every process. Only a file's owner and root
//! may ask.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::libc;

/// `F_SETSIG`, as in the kernel's `asm-generic/fcntl.h`.
const SET_SIGNAL: libc::c_int = 10;
/// `F_SETLEASE`, as in the kernel's `linux/fcntl.h`.
const SET_LEASE: libc::c_int = 1024;

/// Whether a process has `file` open for writing, or mapped so. `file` itself is open for reading
/// only.
pub(crate) fn is_written(file: &File) -> io::Result<bool> {
    // Who opens the file between the lease and its end makes the kernel send a signal here: one
    // that is ignored by default, rather than SIGIO, which ends a process.
    set(file, SET_SIGNAL, libc::SIGURG)?;
    match set(file, SET_LEASE, libc::F_RDLCK) {
        Ok(()) => set(file, SET_LEASE, libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

#[allow(unsafe_code, reason = "no safe interface has these two commands")]
fn set(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: both commands take a plain number and touch no memory of this process, and the
    // descriptor is open as long as `file` is borrowed.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if done == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn a_file_is_written_for_as_long_as_somebody_has_it_open_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "x").unwrap();
        let reader = File::open(&path).unwrap();
        assert!(!is_written(&reader).unwrap());
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(is_written(&reader).unwrap());
        drop(writer);
        let other_reader = File::open(&path).unwrap();
        assert!(!is_written(&reader).unwrap());
        drop(other_reader);
    }
}
