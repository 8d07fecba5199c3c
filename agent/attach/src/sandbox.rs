//! Tools that read foreign files, outside any pod: a user of their own, no capability, no network, bounded memory, files,
//! time and output. A capture is untrusted input, and a crash of its reader takes down nothing else.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setpriority_process, setrlimit};
use serde::{Deserialize, Serialize};

use crate::privilege;
use crate::reexec::{self, Output, Reexec, ReexecError, Report};

/// A tool to run and its bounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sandboxed {
    /// Absolute path and arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Working folder.
    pub directory: PathBuf,
    /// User and group to become when started as root; files that the tool writes belong to it.
    pub user: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// What of the memory is bounded.
    #[serde(default)]
    pub memory: MemoryBound,
    /// Largest file in bytes.
    pub file_bytes: u64,
    /// Processor time in seconds.
    pub cpu_seconds: u64,
    /// Wall time.
    pub deadline: Duration,
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

/// Runs the tool and waits for its end. What could not be applied (on a machine where the caller is not root) is listed in
/// [`Output::missing`].
pub fn run(reexec: &Reexec, sandboxed: &Sandboxed) -> Result<Output, ReexecError> {
    reexec::run_exact(reexec, "sandbox", sandboxed, sandboxed.deadline, None)
}

/// The same, but the tool is killed and reaped ([`reexec::End::Cancelled`]) as soon as `cancel`, the reading end of a pipe, can
/// be read or lost its last writer.
pub fn run_until(reexec: &Reexec, sandboxed: &Sandboxed, cancel: &OwnedFd) -> Result<Output, ReexecError> {
    reexec::run_exact(reexec, "sandbox", sandboxed, sandboxed.deadline, Some(cancel.as_fd()))
}

/// Whether any user may reach and read `path`. Tools below a folder of root's own (a cache in its home) cannot be run by
/// [`Sandboxed::user`]: whoever has them only there names root's own number for the user, which still leaves the tool without
/// a capability, a network and a second chance.
pub fn is_open_to_others(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    path.ancestors().all(|part| {
        let needed = if part.is_dir() { 0o001 } else { 0o004 };
        part.metadata().is_ok_and(|metadata| metadata.mode() & needed != 0)
    })
}

/// The child's side: returns only when it failed.
pub(crate) fn child(spec: &str, pipe: &OwnedFd) -> Report {
    let sandboxed: Sandboxed = match serde_json::from_str(spec) {
        Ok(sandboxed) => sandboxed,
        Err(error) => return Report::failed("read the request", error),
    };
    let Some((program, arguments)) = sandboxed.command.split_first() else {
        return Report::failed("start the tool", "it is empty");
    };
    let missing = match confine(&sandboxed) {
        Ok(missing) => missing,
        Err((stage, error)) => return Report::failed(stage, error),
    };
    if !reexec::send(pipe, &Report::Becoming { missing }) {
        return Report::failed("report", "nobody listens");
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(sandboxed.environment)
        .current_dir(&sandboxed.directory)
        .stdin(Stdio::null());
    let error = command.exec();
    Report::failed("start the tool", format!("{program}: {error}"))
}

fn confine(sandboxed: &Sandboxed) -> Result<Vec<String>, (&'static str, String)> {
    fn at<E: std::fmt::Display>(stage: &'static str) -> impl FnOnce(E) -> (&'static str, String) {
        move |error| (stage, error.to_string())
    }
    let mut missing = Vec::new();
    rustix::process::setsid().map_err(at("start a session"))?;
    setpriority_process(None, 10).map_err(at("lower the priority"))?;
    let memory = match sandboxed.memory {
        MemoryBound::AddressSpace => Resource::As,
        MemoryBound::Data => Resource::Data,
    };
    let limits = [
        (memory, sandboxed.memory_bytes),
        (Resource::Fsize, sandboxed.file_bytes),
        (Resource::Cpu, sandboxed.cpu_seconds),
        (Resource::Core, 0),
    ];
    for (resource, limit) in limits {
        setrlimit(
            resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            },
        )
        .map_err(at("set the limits"))?;
    }
    // Where the container's memory runs short in spite of the limit, this one goes, not the agent.
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "1000") {
        missing.push(format!("the first place when memory runs short: {error}"));
    }
    if rustix::process::geteuid().is_root() {
        unshare(CloneFlags::CLONE_NEWNET).map_err(at("leave the network"))?;
        privilege::become_user(sandboxed.user, sandboxed.user, &[]).map_err(at("become the tool's user"))?;
    } else {
        missing.push("a user of its own: not started as root".to_owned());
        // In a user namespace of its own even an ordinary user may leave the network, where the system allows those.
        if let Err(error) = unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET) {
            missing.push(format!("an empty network: {}", error.desc()));
        }
        privilege::drop_bounding_set().ok();
        privilege::drop_capabilities().map_err(at("give up privileges"))?;
    }
    // After the change of user, which resets it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the agent's end"))?;
    Ok(missing)
}
