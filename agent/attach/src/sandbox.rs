//! Tools that read foreign files, outside any pod: a user, processes, files, a network and IPC of their own, no capability, few
//! system calls, bounded memory, files, processes, time and output. A capture is untrusted input: whoever takes its reader over
//! has taken that reader over, and nothing else.
//!
//! Three processes: the calling program starts itself anew (`supervise`), leaves the machine's namespaces and forks; the first
//! process of the new PID namespace (`init`) goes into a root folder of its own (`root`), gives up its rights and starts the
//! tool. When that first process ends, for whatever reason, the kernel ends everything in there.

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
    /// Absolute path and arguments; of [`Work`] the words that it gets.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Working folder, an absolute path: the only folder of the machine's that the tool may write to. It stands at the same path
    /// in there. [`Work`] has an empty one in memory there, so that no file below it can be shown.
    pub directory: PathBuf,
    /// Files and folders that the tool may read beside the system's libraries and programs, as absolute paths that are the same in
    /// there. What does not exist is left out. Links are followed: name nothing that another tool could have made. A folder may hold the tool's own, which stays
    /// open to writing.
    pub readable: Vec<PathBuf>,
    /// Whether it may use the machine's GPUs.
    pub gpu: bool,
    /// User and group to become where the caller has the rights for it; files that the tool writes belong to it. The caller's own
    /// number leaves the user as it is.
    pub user: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// What of the memory of each of its processes is bounded.
    #[serde(default)]
    pub memory: MemoryBound,
    /// Where the tool gets a cgroup of its own, in which all of its processes together may take
    /// that much memory; none: it stays in the caller's.
    #[serde(default)]
    pub cgroups: Option<ToolCgroups>,
    /// Largest file in bytes.
    pub file_bytes: u64,
    /// Most processes and threads at once.
    pub processes: u64,
    /// Processor time in seconds.
    pub cpu_seconds: u64,
    /// Longest time that the child may run, by the wall clock.
    pub deadline: Duration,
    /// Refuse to run the tool where a protection cannot be applied, rather than to list it in [`Output::missing`].
    pub whole: bool,
}

/// What a bound on memory counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryBound {
    /// Address space, used or not.
    #[default]
    AddressSpace,
    /// Private memory that can be written to. For a tool that uses a GPU: the driver reserves far more addresses than the
    /// machine has memory, without the right to write there.
    Data,
}

/// What was being done, and what went wrong.
type Stage = (&'static str, String);

fn at<E: std::fmt::Display>(stage: &'static str) -> impl FnOnce(E) -> Stage {
    move |error| (stage, error.to_string())
}

/// Runs the tool and waits for its end. What could not be applied (where the caller lacks rights) is listed in
/// [`Output::missing`].
pub fn run(reexec: &Reexec, sandboxed: &Sandboxed) -> Result<Output, ReexecError> {
    run_and_clear(reexec, sandboxed, None)
}

/// The same, but the tool is killed and reaped ([`reexec::End::Cancelled`]) as soon as `cancel`, the reading end of a pipe, can
/// be read or lost its last writer.
pub fn run_until(reexec: &Reexec, sandboxed: &Sandboxed, cancel: &OwnedFd) -> Result<Output, ReexecError> {
    run_and_clear(reexec, sandboxed, Some(cancel.as_fd()))
}

/// Runs the tool to its end, and removes its cgroup.
fn run_and_clear(
    reexec: &Reexec,
    sandboxed: &Sandboxed,
    cancel: Option<BorrowedFd<'_>>,
) -> Result<Output, ReexecError> {
    let ran = reexec::run_asking(reexec, "sandbox", sandboxed, sandboxed.deadline, cancel);
    if let Some(cgroups) = &sandboxed.cgroups {
        cgroups.remove(sandboxed.user);
    }
    ran
}

/// The child's side; nothing to report where another process has reported.
pub(crate) fn child(spec: &str, work: Option<Work>) -> Option<Report> {
    match serde_json::from_str(spec) {
        Ok(sandboxed) => {
            supervise::run(&sandboxed, work).unwrap_or_else(|(stage, error)| Some(Report::failed(stage, error)))
        }
        Err(error) => Some(Report::failed("read the request", error)),
    }
}
