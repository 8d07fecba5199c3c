//! The first process of the sandbox: confines itself, starts the tool, reaps what the tool leaves,
//! and says how it ended.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, wait,
};

use super::namespaces::Space;
use super::stage::{Stage, at};
use super::work::{self, Work};
use super::{MemoryBound, Sandboxed, root};
use crate::privilege;
use crate::reexec::{Report, ToolEnd};
use crate::seccomp::{self, Profile};

/// Files that a tool may have open.
const OPEN_FILES: u64 = 4096;

/// Runs the tool, or the work, to its end. `parent` is the process outside.
pub(super) fn run(
    sandboxed: &Sandboxed,
    work: Option<Work>,
    space: &Space,
    mut missing: Vec<String>,
    parent: &OwnedFd,
) -> Report {
    let confined = confine(sandboxed, work, space, &mut missing, parent);
    let started = confined.and_then(|()| match work {
        Some(work) => work::start(work, &sandboxed.command),
        None => start(sandboxed),
    });
    let tool = match started {
        Ok(tool) => tool,
        Err((stage, error)) => return Report::failed(stage, error),
    };
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if Some(ended) == tool => {
                let signal = status.terminating_signal().map(ToolEnd::Signaled);
                let code = || status.exit_status().map(ToolEnd::Exited);
                if let Some(end) = signal.or_else(code) {
                    return Report::Tool { end, missing };
                }
            }
            // An orphan of the tool's.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Report::failed("wait for the tool", error),
        }
    }
}

/// Starts the tool.
fn start(sandboxed: &Sandboxed) -> Result<Option<Pid>, Stage> {
    let stage = "start the tool";
    let (program, arguments) = sandboxed
        .command
        .split_first()
        .ok_or_else(|| (stage, "it is empty".to_owned()))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(sandboxed.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&sandboxed.directory)
        .stdin(Stdio::null());
    let tool = command
        .spawn()
        .map_err(|error| (stage, format!("{program}: {error}")))?;
    Ok(i32::try_from(tool.id()).ok().and_then(Pid::from_raw))
}

fn confine(
    sandboxed: &Sandboxed,
    work: Option<Work>,
    space: &Space,
    missing: &mut Vec<String>,
    parent: &OwnedFd,
) -> Result<(), Stage> {
    if space.mounts {
        let covered = work.map_or(Ok(()), |_| work::cover(&sandboxed.directory));
        match covered.and_then(|()| root::enter(sandboxed, missing)) {
            Ok(()) => nix::unistd::sethostname("sandbox").map_err(at("take a host name"))?,
            Err((stage, error)) if space.privileged => return Err((stage, error)),
            Err((stage, error)) => missing.push(format!("files of its own: cannot {stage}: {error}")),
        }
    }
    limit(sandboxed)?;
    let changes = space.privileged && sandboxed.user != rustix::process::geteuid().as_raw();
    // Root has no such bound; an ordinary user's other processes count where there is no namespace
    // of users.
    if changes || (!space.privileged && space.processes) {
        bound(Resource::Nproc, sandboxed.processes)?;
    } else {
        missing.push("a bound on processes: it has no user of its own".to_owned());
    }
    if space.privileged {
        privilege::become_user(sandboxed.user, sandboxed.user, &[]).map_err(at("become the tool's user"))?;
    } else {
        privilege::drop_bounding_set().ok();
        privilege::drop_capabilities().map_err(at("give up privileges"))?;
    }
    // The tool may be the same user: it may neither trace this process nor read its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("hide from tracing"))?;
    // After the change of user, which resets it; and the process outside may have ended before.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the agent's end"))?;
    let mut fds = [PollFd::new(parent, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut fds, Some(&now)).map_err(at("follow the agent's end"))? != 0 {
        return Err(("follow the agent's end", "it has ended".to_owned()));
    }
    if sandboxed.whole && !missing.is_empty() {
        return Err(("give the tool a whole sandbox", missing.join("; ")));
    }
    SigSet::empty().thread_set_mask().map_err(at("restore signals"))?;
    seccomp::confine(Profile::Reader).map_err(at("leave it few system calls"))
}

fn limit(sandboxed: &Sandboxed) -> Result<(), Stage> {
    let memory = match sandboxed.memory {
        MemoryBound::AddressSpace => Resource::As,
        MemoryBound::Data => Resource::Data,
    };
    let limits = [
        (memory, sandboxed.memory_bytes),
        (Resource::Fsize, sandboxed.file_bytes),
        (Resource::Cpu, sandboxed.cpu_seconds),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Core, 0),
    ];
    limits
        .into_iter()
        .try_for_each(|(resource, limit)| bound(resource, limit))
}

/// Bounds a resource, or leaves the caller's own bound where that is less: it cannot be raised.
fn bound(resource: Resource, limit: u64) -> Result<(), Stage> {
    let most = getrlimit(resource).maximum;
    let limit = most.map_or(limit, |most| limit.min(most));
    let limit = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(resource, limit).map_err(at("set the limits"))
}
