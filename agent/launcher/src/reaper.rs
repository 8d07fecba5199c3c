//! The parent of a supervisor.
//!
//! A supervisor that is killed (by hand, or by the kernel for memory) leaves the profiler's
//! processes behind. They must not become children of the workload, which would meet them in its
//! own `wait()`: they become the reaper's, a child subreaper that does nothing else, and it ends
//! them. A reaper that is killed itself takes its supervisor along, which ends all that it keeps;
//! the workload may meet that one ended process, and nothing that would hold its `wait()` up.

use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{ForkResult, Pid, getpid, getppid};

use crate::fork::fork;
use crate::run_dir::{self, RunDir};
use crate::signals::{self, SignalWatch};
use crate::supervisor::{self, Options};
use crate::{list, slot, tree};

/// How often a reaper looks around when no signal wakes it.
const WAKE_INTERVAL: Duration = Duration::from_secs(5);

/// Runs `command` in `environment` below a supervisor and a reaper; returns the supervisor's exit
/// code as a shell has it.
pub fn keep(options: &Options, command: &[CString], environment: &[CString]) -> i32 {
    let own = getpid();
    let split = prctl::set_child_subreaper(true).and_then(|()| fork());
    match split {
        Ok(ForkResult::Child) => {
            if prctl::set_pdeathsig(Signal::SIGTERM).is_err() || getppid() != own {
                return 128 + signals::number(Signal::SIGTERM);
            }
            supervisor::keep(options, command, environment)
        }
        Ok(ForkResult::Parent { child }) => ward(options, child, &supervisor::temporary_folder(options, environment)),
        // A supervisor alone is still better than none.
        Err(_) => supervisor::keep(options, command, environment),
    }
}

/// Waits for the supervisor's end, and ends what it left.
fn ward(options: &Options, supervisor: Pid, tmp: &Path) -> i32 {
    let mut watched = signals::ENDING.to_vec();
    watched.push(Signal::SIGCHLD);
    let Ok(watch) = SignalWatch::new(&watched) else {
        // Deaf, it could neither pass signals on nor reap in time.
        kill(supervisor, Signal::SIGTERM).ok();
        return 126;
    };
    loop {
        let signal = watch.wait(WAKE_INTERVAL).filter(|signal| *signal != Signal::SIGCHLD);
        if let Some(signal) = signal {
            kill(supervisor, signal).ok();
        }
        let (ended, left) = tree::reap();
        let Some((_, status)) = ended.into_iter().find(|(pid, _)| *pid == supervisor) else {
            continue;
        };
        if left {
            supervisor::end_below(tmp);
            if options.session.is_some() {
                list::sweep(Path::new(slot::SHARED_MEMORY), false, tmp);
            }
        }
        if let Some(session) = &options.session {
            // In its own words a supervisor says this itself; one that was killed had none.
            let run_dir = RunDir::new(&session.run_dir);
            if !run_dir.has(run_dir::ENV) && !run_dir.has(run_dir::FAILED) {
                drop(run_dir.write(run_dir::FAILED, b"the session's supervisor was killed"));
            }
            drop(run_dir.remove(run_dir::COLLECTING));
        }
        return tree::exit_code(status);
    }
}
