//! The first process of a container whose program's end ends its capture.
//!
//! When the first process of a PID namespace ends, the kernel kills every other in it, the
//! profiler's session included, and what was recorded is lost. So in pods that a session made for
//! itself this process comes first, as `tini` does in many images: it starts the program, passes
//! signals on, reaps, and ends with the program's exit code. Only while a capture of the ended
//! program is still to be written and taken out does it stay, bounded.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run_dir::{self, RunDir};
use crate::signals::{ENDING, SignalWatch};
use crate::spawn::{self, Streams};
use crate::{exec, tree};

/// How often the run folder is looked at.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Signals that are passed on to the program.
pub(crate) const PASSED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// What bounds the stay.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run folder.
    pub run_dir: PathBuf,
    /// Longest stay after the program's end.
    pub limit: Duration,
}

/// Runs `command` to its end, stays while its capture is written and taken out, and returns its
/// exit code as a shell has it. A signal that would end the program ends the stay.
pub fn hold(options: &Options, command: &[CString], environment: &[CString]) -> i32 {
    let mut watched = PASSED.to_vec();
    watched.push(Signal::SIGCHLD);
    let started = SignalWatch::new(&watched).ok().and_then(|watch| {
        let child = spawn::start(command, environment, watch.before(), &Streams::Own).ok()?;
        Some((child, watch))
    });
    let Some((child, watch)) = started else {
        // Without an ear for signals or a second process the program runs in this one's place.
        let Err(error) = exec::exec(command, environment);
        return exec::exit_code(error);
    };
    let code = attend(child, &watch, || ());
    // As at the end of a container's first process: whatever the program left behind ends with it.
    tree::kill_descendants();
    stay(&RunDir::new(&options.run_dir), code, options.limit, &watch);
    code
}

/// Says that the program has ended, and stays while a capture of it is still to be taken.
pub(crate) fn stay(run_dir: &RunDir, code: i32, limit: Duration, watch: &SignalWatch) {
    if !is_captured(run_dir) {
        return;
    }
    let ended = format!("code={code}\nunix_ms={}\n", run_dir::unix_ms());
    drop(run_dir.write(run_dir::ENDED, ended.as_bytes()));
    let deadline = Instant::now() + limit;
    while is_captured(run_dir) && Instant::now() < deadline {
        if watch.wait(POLL_INTERVAL).is_some_and(|signal| ENDING.contains(&signal)) {
            break;
        }
        tree::reap();
    }
}

/// Passes signals on and reaps until the program has ended; `tick` is called about every 50 ms.
pub(crate) fn attend(child: Pid, watch: &SignalWatch, mut tick: impl FnMut()) -> i32 {
    loop {
        tick();
        let signal = watch.wait(POLL_INTERVAL).filter(|signal| *signal != Signal::SIGCHLD);
        if let Some(signal) = signal {
            kill(child, signal).ok();
        }
        let (ended, left) = tree::reap();
        if let Some((_, status)) = ended.into_iter().find(|(pid, _)| *pid == child) {
            return tree::exit_code(status);
        }
        if !left {
            return 1;
        }
    }
}

/// Whether a collection runs or a raw capture lies there that nobody has taken yet.
fn is_captured(run_dir: &RunDir) -> bool {
    let left = || std::fs::read_dir(run_dir.file(run_dir::OUT)).is_ok_and(|mut entries| entries.next().is_some());
    run_dir.has(run_dir::COLLECTING) || left()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::tests::run_folder;

    #[test]
    fn a_collection_and_a_capture_that_nobody_took_keep_the_container() {
        let (_folder, run) = run_folder();
        assert!(!is_captured(&run), "a folder without anything in it");
        run.make_out().unwrap();
        assert!(!is_captured(&run));
        run.write(run_dir::COLLECTING, b"").unwrap();
        assert!(is_captured(&run));
        run.remove(run_dir::COLLECTING).unwrap();
        std::fs::write(run.file(run_dir::OUT).join("x.qdstrm"), b"x").unwrap();
        assert!(is_captured(&run));
    }
}
