//! Runs a tool that reads foreign files in a sandbox on the machine, outside any pod. A capture is
//! untrusted input: an attacker who takes over its reader gets nothing else.
//!
//! The sandbox has a user, processes, files, a network and IPC of its own, no capability and few
//! system calls. Memory, files, processes, time and output are bounded.
//!
//! Three processes take part. The first is the calling program, started again: it leaves the
//! machine's namespaces and forks (`supervise`). The second is the first process of the new PID
//! namespace: it enters a root folder of its own, gives up its privileges and starts the tool
//! (`init`, `root`). The third is the tool. When the second process ends, for whatever reason, the
//! kernel ends all processes of its namespace.
//!
//! The first can be started ahead: it has its cgroup and has left the machine's namespaces by the
//! time that the tool is known. That is the most of what a sandbox takes.

mod cgroup;
mod init;
mod namespaces;
pub mod product;
mod root;
mod sandboxed;
mod stage;
mod supervise;
pub mod users;
mod work;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::reexec::{self, Output, Reexec, ReexecError, Report};
pub use cgroup::ToolCgroups;
pub use sandboxed::{MemoryBound, Sandboxed};
pub use work::Work;

/// Runs the tool and waits for its end. Protections that the caller lacks the rights to apply are
/// listed in [`Output::missing`].
pub fn run(reexec: &Reexec, sandboxed: &Sandboxed) -> Result<Output, ReexecError> {
    run_and_remove_cgroup(reexec, sandboxed, None)
}

/// Runs the tool as [`run`] does, until `cancel`, the reading end of a pipe, can be read or has
/// lost its last writer. The tool is then killed and reaped ([`reexec::End::Cancelled`]).
pub fn run_until(reexec: &Reexec, sandboxed: &Sandboxed, cancel: &OwnedFd) -> Result<Output, ReexecError> {
    run_and_remove_cgroup(reexec, sandboxed, Some(cancel.as_fd()))
}

/// Makes ready what a sandbox has beside its tool, by `frame`: its user and its cgroup. Then waits
/// for the `order`, the tool with that same user and cgroup and what cancels it, and runs it as
/// [`run_until`] does. None where the order is not to come any more.
pub fn run_ahead(
    reexec: &Reexec,
    frame: &Sandboxed,
    order: impl FnOnce() -> Option<(Sandboxed, OwnedFd)>,
) -> Result<Option<Output>, ReexecError> {
    let timed = || {
        let (sandboxed, cancel) = order()?;
        let deadline = sandboxed.deadline;
        Some((sandboxed, deadline, cancel))
    };
    let output = reexec::run_ordered(reexec, "sandbox-ahead", frame, timed);
    if let Some(cgroups) = &frame.cgroups {
        cgroups.remove(frame.user);
    }
    output
}

/// Runs the tool to its end, and removes its cgroup.
fn run_and_remove_cgroup(
    reexec: &Reexec,
    sandboxed: &Sandboxed,
    cancel: Option<BorrowedFd<'_>>,
) -> Result<Output, ReexecError> {
    let output = reexec::run_asking(reexec, "sandbox", sandboxed, sandboxed.deadline, cancel);
    if let Some(cgroups) = &sandboxed.cgroups {
        cgroups.remove(sandboxed.user);
    }
    output
}

/// The part of [`run`] in the calling program that was started again. Returns the report to write;
/// none where another process of the sandbox has written it.
pub(crate) fn child(spec: &str, work: Option<Work>) -> Option<Report> {
    match serde_json::from_str(spec) {
        Ok(sandboxed) => {
            supervise::run(&sandboxed, work).unwrap_or_else(|(stage, error)| Some(Report::failed(stage, error)))
        }
        Err(error) => Some(Report::failed("read the request", error)),
    }
}

/// The part of [`run_ahead`] in the calling program that was started again; `channel` brings the
/// order. Returns what [`child`] does.
pub(crate) fn child_ahead(frame: &str, channel: &OwnedFd) -> Option<Report> {
    match serde_json::from_str(frame) {
        Ok(frame) => {
            let ran = supervise::run_ahead(&frame, || supervise::ordered(channel));
            ran.unwrap_or_else(|(stage, error)| Some(Report::failed(stage, error)))
        }
        Err(error) => Some(Report::failed("read the request", error)),
    }
}
