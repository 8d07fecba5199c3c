//! Descriptors that must not reach a command, or work that is done in its place.
#![allow(
    unsafe_code,
    reason = "no safe wrapper of close_range exists in the crates used here"
)]

use std::io;

/// Marks every descriptor but the standard streams as closed on execve, also those that this
/// program itself inherited: a descriptor of the host would be a way out of the container.
pub(crate) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call takes plain numbers and, with CLOSE_RANGE_CLOEXEC, closes nothing: it only
    // sets a flag, which no other part of this process relies on being clear.
    let outcome = unsafe { nix::libc::close_range(3, nix::libc::c_uint::MAX, CLOEXEC) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Closes every descriptor but standard output and standard error, of a process that goes on
/// without execve. Only for one that returns to nobody who owns such a descriptor: it ends by
/// [`exit_now`](crate::fork::exit_now).
pub(crate) fn keep_outputs() -> io::Result<()> {
    for (first, last) in [(0, 0), (3, nix::libc::c_uint::MAX)] {
        // SAFETY: the call takes plain numbers. Whoever owned these descriptors is further up in
        // this process, which never returns there, so that none is used, or closed once more.
        let outcome = unsafe { nix::libc::close_range(first, last, 0) };
        if outcome != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// `CLOSE_RANGE_CLOEXEC` of Linux 5.11, in the type that the call takes.
const CLOEXEC: nix::libc::c_int = 4;
