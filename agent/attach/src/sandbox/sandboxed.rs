//! What is run in a sandbox, and its bounds.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cgroup::ToolCgroups;

/// A tool to run and its bounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sandboxed {
    /// Absolute path of the tool, then its arguments. Where [`Work`](super::Work) takes the tool's
    /// place, all are its arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Absolute path of the working folder, the only folder of the machine that the tool may write
    /// to. The folder has the same path in the sandbox. For [`Work`](super::Work) an empty folder
    /// in memory covers it, so that no file below it can be readable.
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
    /// and [`Output::missing`](crate::reexec::Output::missing) lists the protection.
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
