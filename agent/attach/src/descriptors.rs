//! Descriptors that must not reach a command.
#![allow(
    unsafe_code,
    reason = "no safe wrapper of close_range exists in the crates used here"
)]

use std::io;

/// Marks every descriptor but the standard streams as closed on execve, also those that this program itself inherited: a
/// descriptor of the host would be a way out of the container.
pub(crate) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call takes plain numbers and, with CLOSE_RANGE_CLOEXEC, closes nothing: it only sets a flag, which no
    // other part of this process relies on being clear.
    let outcome = unsafe { nix::libc::close_range(3, nix::libc::c_uint::MAX, CLOEXEC) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `CLOSE_RANGE_CLOEXEC` of Linux 5.11, in the type that the call takes.
const CLOEXEC: nix::libc::c_int = 4;
