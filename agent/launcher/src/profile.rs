//! The first process of a container whose program is started by its profiler, as `ncu` starts it:
//! in pods that a session made for itself, and nowhere else.
//!
//! There is no session that could be told when to begin, so this process waits for the agent, which
//! takes the GPU's counters first. It then starts the profiler, ends the program when the agent
//! asks for it, and stays until the agent has taken the report. The profiler itself is never
//! signalled: it writes its report when the program has ended.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::hold::{PASSED, POLL_INTERVAL, attend, stay};
use crate::run_dir::{self, RunDir};
use crate::signals::{self, ENDING, SignalWatch};
use crate::spawn::{self, Streams};
use crate::state::{Reason, State};
use crate::{exec, tree};

/// Exit code where the program was not run because no agent was ready for it.
const NOT_RUN: i32 = 125;
/// How long the program may take to end when it is asked to.
const EXIT_GRACE_TIMEOUT: Duration = Duration::from_secs(10);
/// Beginning of the names of the profiler's own processes between itself and the program.
const HELPER: &str = "TreeLauncher";

/// What bounds the waits.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run folder.
    pub run_dir: PathBuf,
    /// Longest wait for the agent before the start.
    pub begin: Duration,
    /// Longest stay after the profiler's end.
    pub limit: Duration,
}

/// How the wait for the agent ended.
#[derive(Debug, PartialEq, Eq)]
enum Wait {
    Begin,
    Refused(String),
    Ended(Signal),
}

/// Waits for the agent, runs the profiler to its end, stays until its report is taken, and returns
/// its exit code as a shell has it.
pub fn profile(options: &Options, command: &[CString], environment: &[CString]) -> i32 {
    let run_dir = RunDir::new(&options.run_dir);
    let ready = run_dir
        .protect()
        .and_then(|()| run_dir.clear())
        .and_then(|()| run_dir.make_tmp())
        .and_then(|()| run_dir.make_out())
        .and_then(|()| std::fs::write(run_dir.file(run_dir::OUT).join(run_dir::UNTAKEN), ""))
        .and_then(|()| run_dir.write(run_dir::STATE, waiting().render().as_bytes()));
    if let Err(error) = ready {
        return refuse(&format!("the run folder cannot be used: {error}"));
    }
    let watched: Vec<Signal> = PASSED.into_iter().chain([Signal::SIGCHLD]).collect();
    let watch = match SignalWatch::new(&watched) {
        Ok(watch) => watch,
        Err(error) => return refuse(&format!("signals cannot be watched: {error}")),
    };
    match await_agent(&run_dir, &watch, options.begin) {
        Wait::Begin => {}
        Wait::Refused(why) => return refuse(&why),
        Wait::Ended(signal) => return 128 + signals::number(signal),
    }
    let child = match spawn::start(command, environment, watch.before(), &Streams::Own) {
        Ok(child) => child,
        Err(error) => {
            let name = command.first().map(|name| name.to_string_lossy().into_owned());
            eprintln!("flopwatch-launcher: cannot run {}: {error}", name.unwrap_or_default());
            let errno = nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or_default());
            let code = exec::exit_code(errno);
            stay(&run_dir, code, options.limit, &watch);
            return code;
        }
    };
    let mut asked: Option<Instant> = None;
    let code = attend(child, &watch, || {
        let told = asked.is_some() || run_dir.has(run_dir::SHUTDOWN);
        match asked {
            Some(since) if since.elapsed() >= EXIT_GRACE_TIMEOUT => tree::signal_below(child, Signal::SIGKILL, HELPER),
            None if told => {
                asked = Some(Instant::now());
                tree::signal_below(child, Signal::SIGTERM, HELPER);
            }
            _ => {}
        }
    });
    tree::kill_descendants();
    stay(&run_dir, code, options.limit, &watch);
    code
}

fn waiting() -> State {
    State {
        reason: Reason::Launched,
        pid: std::process::id(),
        unix_ms: run_dir::unix_ms(),
        waited_ms: 0,
        early_deaths: 0,
        kept: Vec::new(),
        detail: String::new(),
    }
}

/// Waits until the agent says that it is ready, or that there will be no profile.
fn await_agent(run_dir: &RunDir, watch: &SignalWatch, limit: Duration) -> Wait {
    let deadline = Instant::now() + limit;
    loop {
        if run_dir.has(run_dir::FAILED) {
            let why = run_dir.read_text(run_dir::FAILED).unwrap_or_default();
            return Wait::Refused(format!("the node's agent refused to profile it: {why}"));
        }
        if run_dir.has(run_dir::BEGIN) {
            return Wait::Begin;
        }
        if Instant::now() >= deadline {
            return Wait::Refused(format!("no agent was ready for it within {} s", limit.as_secs()));
        }
        if let Some(signal) = watch.wait(POLL_INTERVAL).filter(|signal| ENDING.contains(signal)) {
            return Wait::Ended(signal);
        }
        tree::reap();
    }
}

fn refuse(why: &str) -> i32 {
    eprintln!("flopwatch-launcher: the program was not run: {why}");
    NOT_RUN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::tests::run_folder;

    fn rig() -> (tempfile::TempDir, RunDir, SignalWatch) {
        let (folder, run_dir) = run_folder();
        (folder, run_dir, SignalWatch::new(&[]).unwrap())
    }

    #[test]
    fn the_program_waits_for_the_agents_word() {
        let (_folder, run_dir, watch) = rig();
        let wait = |run_dir: &RunDir| await_agent(run_dir, &watch, Duration::ZERO);
        assert!(matches!(wait(&run_dir), Wait::Refused(why) if why.contains("within 0 s")));
        run_dir.begin().unwrap();
        run_dir.begin().unwrap();
        assert_eq!(wait(&run_dir), Wait::Begin);
        run_dir.write(run_dir::FAILED, b"the counters are in use").unwrap();
        assert!(matches!(wait(&run_dir), Wait::Refused(why) if why.ends_with("the counters are in use")));
    }

    #[test]
    fn the_state_is_no_graft_for_agents_of_every_version() {
        let text = waiting().render();
        assert_eq!(crate::state::grafted(&text), Some(false));
        assert!(text.contains(r#""reason":"launched""#), "{text}");
    }
}
