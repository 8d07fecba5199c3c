//! A second process of this program.

use nix::errno::Errno;
use nix::unistd::ForkResult;

/// Splits the process in two. Refused (`EBUSY`) where the process has more than one thread, or that
/// cannot be told.
#[allow(
    unsafe_code,
    reason = "fork copies one thread of a process; whether there are others is not in its type"
)]
pub fn fork() -> Result<ForkResult, Errno> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return Err(Errno::EBUSY);
    }
    // SAFETY: this is the only thread, as was just counted, and only a thread of this process could
    // start another: no lock is held by a thread that the child lacks, so the child may do all that
    // this process may.
    unsafe { nix::unistd::fork() }
}
