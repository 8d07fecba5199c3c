//! The process outside: makes the namespaces, starts the first process in them, and sees to its
//! end.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};

use flopwatch_launcher::fork::fork;
use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::ForkResult;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpgrp, getpid, getpriority_process, kill_process_group, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, setpriority_process, setsid, waitpid,
};

use super::namespaces::Space;
use super::stage::{Stage, at};
use super::{Sandboxed, Work, init, namespaces};
use crate::reexec::{Report, ToolEnd};

/// Lowest niceness of a tool: what else runs on the node comes first.
const MIN_NICENESS: i32 = 10;

/// Runs the tool, or the work. In the process that it forks, this returns what that reports; here
/// it returns nothing where that one reported.
pub(super) fn run(sandboxed: &Sandboxed, work: Option<Work>) -> Result<Option<Report>, Stage> {
    Outside::prepare(sandboxed)?.start(sandboxed, work)
}

/// The same of a tool that is told by `order` once all is ready that has the user and the cgroup of
/// `frame`.
pub(super) fn run_ahead(
    frame: &Sandboxed,
    order: impl FnOnce() -> Result<Sandboxed, Stage>,
) -> Result<Option<Report>, Stage> {
    let outside = Outside::prepare(frame)?;
    outside.start(&order()?, None)
}

/// Reads the tool that is ordered, which is all that comes.
pub(super) fn ordered(channel: &OwnedFd) -> Result<Sandboxed, Stage> {
    let mut text = String::new();
    let channel = channel.try_clone().map_err(at("wait for the tool"))?;
    File::from(channel)
        .read_to_string(&mut text)
        .map_err(at("wait for the tool"))?;
    serde_json::from_str(&text).map_err(at("read the request"))
}

/// What is ready of a sandbox before its first process.
struct Outside {
    missing: Vec<String>,
    /// Tells that this process is to end.
    asked: SignalFd,
    /// This process.
    own: OwnedFd,
    space: Space,
}

impl Outside {
    /// Bounds this process and leaves the machine's namespaces.
    fn prepare(sandboxed: &Sandboxed) -> Result<Self, Stage> {
        // A group of its own, so that whoever started this can end all of it; and no terminal.
        setsid().map_err(at("start a session"))?;
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the agent's end"))?;
        // The kernel gives none of its priority back to an agent that runs at a lower one already.
        let nice = getpriority_process(None).map_err(at("ask for the priority"))?;
        setpriority_process(None, nice.max(MIN_NICENESS)).map_err(at("lower the priority"))?;
        let mut missing = Vec::new();
        // Before the namespaces are left: from there the machine's cgroups are not to be seen.
        if let Some(cgroups) = &sandboxed.cgroups {
            cgroups.join(sandboxed).map_err(at("join the cgroup"))?;
        }
        // Where the machine's memory runs short, this one goes before the agent and any workload.
        // In a cgroup with the agent it would not help: of a container whose cgroup has
        // `memory.oom.group` the kernel ends everything.
        if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "1000") {
            missing.push(format!("the first place when memory runs short: {error}"));
        }
        let mut asked = SigSet::empty();
        asked.add(Number::SIGTERM);
        asked.thread_block().map_err(at("wait to be asked to end"))?;
        let asked = SignalFd::with_flags(&asked, SfdFlags::SFD_CLOEXEC).map_err(at("wait to be asked to end"))?;
        let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(at("watch this process"))?;
        let space = namespaces::leave(&mut missing)?;
        Ok(Self {
            missing,
            asked,
            own,
            space,
        })
    }

    /// Starts the first process, and sees to its end.
    fn start(self, sandboxed: &Sandboxed, work: Option<Work>) -> Result<Option<Report>, Stage> {
        let Self {
            missing,
            asked,
            own,
            space,
        } = self;
        match fork().map_err(at("start the first process"))? {
            ForkResult::Child => {
                drop(asked);
                Ok(Some(init::run(sandboxed, work, &space, missing, &own)))
            }
            ForkResult::Parent { child } => {
                let child = Pid::from_raw(child.as_raw()).ok_or(("watch the first process", "no PID".to_owned()))?;
                let ended = wait(child, &asked, space.processes)?;
                Ok(ended.map(|signal| Report::Tool {
                    end: ToolEnd::Signaled(signal),
                    missing,
                }))
            }
        }
    }
}

/// Waits for the end of the first process, and ends it when asked to; the signal that ended it, if
/// one did.
fn wait(child: Pid, asked: &SignalFd, is_init: bool) -> Result<Option<i32>, Stage> {
    let pidfd = pidfd_open(child, PidfdFlags::empty()).map_err(at("watch the first process"))?;
    loop {
        let mut fds = [
            PollFd::new(&pidfd, PollFlags::IN),
            PollFd::from_borrowed_fd(asked.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(at("watch the first process")(error)),
        }
        let [ended, told] = fds.map(|fd| !fd.revents().is_empty());
        if ended {
            break;
        }
        if told {
            // Without a PID namespace the tool's processes do not end with their first: this one
            // goes with all of them.
            if !is_init {
                kill_process_group(getpgrp(), Signal::KILL).map_err(at("end the tool"))?;
            }
            // The kernel ends what is in the namespace, and lets us reap its first process only
            // after all of it.
            pidfd_send_signal(&pidfd, Signal::KILL).map_err(at("end the tool"))?;
            break;
        }
    }
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                return match (status.terminating_signal(), status.exit_status()) {
                    (Some(signal), _) => Ok(Some(signal)),
                    (None, Some(0)) => Ok(None),
                    (None, code) => Err(("run the tool", format!("its first process ended with code {code:?}"))),
                };
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait for the first process")(error)),
        }
    }
}
