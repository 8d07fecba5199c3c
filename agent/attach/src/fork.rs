//! Forks this process, and waits for the child.
#![allow(
    unsafe_code,
    reason = "fork copies one thread of a process, and whether there are others is not in its type"
)]

use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::ForkResult;

/// Splits the process in two. Only for the hidden subcommands of [`crate::reexec`], whose contract
/// is that the program has started no thread. It cannot be counted here: the procfs at hand is the
/// container's by now.
pub(crate) fn fork() -> nix::Result<ForkResult> {
    // SAFETY: `reexec::child_main` is called before its program starts a thread, and nothing below
    // it starts one: no lock is held by a thread that the child lacks, so the child may do all that
    // this process may.
    unsafe { nix::unistd::fork() }
}

/// Gives SIGPIPE back what it does by default, for the program that is executed next.
pub(crate) fn default_of_a_broken_pipe() -> nix::Result<()> {
    // SAFETY: the default action runs no code of this process.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }.map(drop)
}

/// Ends the child at once: what this program registered for its own end is none of the child's.
pub(crate) fn exit_now(code: libc::c_int) -> ! {
    // SAFETY: the call takes a number and does not return; nothing of this process is used after
    // it.
    unsafe { libc::_exit(code) }
}
