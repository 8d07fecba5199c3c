//! The parent of a keeper.
//!
//! A keeper that is killed (by hand, or by the kernel for memory) leaves the profiler's processes behind. They must not become
//! children of the workload, which would meet them in its own `wait()`: they become the warden's, a child subreaper that does
//! nothing else, and it ends them. A warden that is killed itself takes its keeper along, which ends all that it keeps; the
//! workload may meet that one ended process, and nothing that would hold its `wait()` up.

use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{ForkResult, Pid, getpid, getppid};

use crate::fork::fork;
use crate::keeper::{self, Options};
use crate::run_dir::{self, RunDir};
use crate::signals::{self, SignalWatch};
use crate::{list, place, tree};

/// How often a warden looks around when no signal wakes it.
const TICK: Duration = Duration::from_secs(5);

/// Runs `command` in `environment` below a keeper and a warden; returns the keeper's exit code as a shell has it.
pub fn keep(options: &Options, command: &[CString], environment: &[CString]) -> i32 {
    let own = getpid();
    let split = prctl::set_child_subreaper(true).and_then(|()| fork());
    match split {
        Ok(ForkResult::Child) => {
            if prctl::set_pdeathsig(Signal::SIGTERM).is_err() || getppid() != own {
                return 128 + signals::number(Signal::SIGTERM);
            }
            keeper::keep(options, command, environment)
        }
        Ok(ForkResult::Parent { child }) => ward(options, child, &keeper::temporary_folder(options, environment)),
        // A keeper alone is still better than none.
        Err(_) => keeper::keep(options, command, environment),
    }
}

/// Waits for the keeper's end, and ends what it left.
fn ward(options: &Options, keeper: Pid, tmp: &Path) -> i32 {
    let mut watched = signals::ENDING.to_vec();
    watched.push(Signal::SIGCHLD);
    let Ok(watch) = SignalWatch::new(&watched) else {
        // Deaf, it could neither pass signals on nor reap in time.
        kill(keeper, Signal::SIGTERM).ok();
        return 126;
    };
    loop {
        let signal = watch.wait(TICK).filter(|signal| *signal != Signal::SIGCHLD);
        if let Some(signal) = signal {
            kill(keeper, signal).ok();
        }
        let (ended, left) = tree::reap();
        let Some((_, status)) = ended.into_iter().find(|(pid, _)| *pid == keeper) else {
            continue;
        };
        if left {
            keeper::end_below(tmp);
            if options.session.is_some() {
                list::sweep(Path::new(place::SHARED_MEMORY), false, tmp);
            }
        }
        if let Some(session) = &options.session {
            // In its own words a keeper says this itself; one that was killed had none.
            let run_dir = RunDir::new(&session.run_dir);
            if !run_dir.has(run_dir::ENV) && !run_dir.has(run_dir::FAILED) {
                drop(run_dir.write(run_dir::FAILED, b"the session's keeper was killed"));
            }
            drop(run_dir.remove(run_dir::COLLECTING));
        }
        return tree::exit_code(status);
    }
}
