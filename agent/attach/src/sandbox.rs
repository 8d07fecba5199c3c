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

mod cgroup;
mod init;
mod namespaces;
pub mod product;
mod root;
mod supervise;
pub mod users;
mod work;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::reexec::{self, Output, Reexec, ReexecError, Report};
pub use cgroup::ToolCgroups;
pub use work::Work;

/// A tool to run and its bounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sandboxed {
    /// Absolute path of the tool, then its arguments. Where [`Work`] takes the tool's place, all
    /// are its arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Absolute path of the working folder, the only folder of the machine that the tool may write
    /// to. The folder has the same path in the sandbox. For [`Work`] an empty folder in memory
    /// covers it, so that no file below it can be readable.
    pub directory: PathBuf,
    /// Absolute paths of files and folders that the tool may read beside the system's libraries and
    /// programs. They have the same paths in the sandbox. A path that does not exist is left out.
    /// Links are followed: name nothing that another tool could have made. A folder may contain the
    /// working folder, which the tool may still write to.
    pub readable: Vec<PathBuf>,
    /// Whether the tool may use the machine's GPUs.
    pub gpu: bool,
    /// Number of the user and of the group that the tool runs as, where the caller may change them.
    /// Files that the tool writes belong to this user. With the caller's own number the user stays.
    pub user: u32,
    /// Most memory, in bytes, of each process of the tool; with `cgroups`, of all together too.
    pub memory_bytes: u64,
    /// Which memory of a process counts against `memory_bytes`.
    #[serde(default)]
    pub memory: MemoryBound,
    /// Where the tool gets a cgroup of its own, in which all of its processes together are bounded
    /// by `memory_bytes`; none: the tool stays in the caller's cgroup.
    #[serde(default)]
    pub cgroups: Option<ToolCgroups>,
    /// Largest file that the tool may write, in bytes.
    pub file_bytes: u64,
    /// Most processes and threads of the tool at once.
    pub processes: u64,
    /// Most processor time of a process, in seconds.
    pub cpu_seconds: u64,
    /// Longest time that the tool may run, by the wall clock.
    pub deadline: Duration,
    /// Whether the tool is refused where a protection cannot be applied. Otherwise the tool runs,
    /// and [`Output::missing`] lists the protection.
    pub whole: bool,
}

/// Which memory of a process a bound counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryBound {
    /// Address space, used or not.
    #[default]
    AddressSpace,
    /// Private memory that can be written to. This is for a tool that uses a GPU, whose driver
    /// reserves far more addresses than the machine has memory, without the right to write there.
    Data,
}

/// What was being done, and what went wrong.
type Stage = (&'static str, String);

/// Maps what went wrong in `stage` to its error.
fn at<E: std::fmt::Display>(stage: &'static str) -> impl FnOnce(E) -> Stage {
    move |error| (stage, error.to_string())
}

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
