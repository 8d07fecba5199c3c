//! The container's command: waits for a session, then becomes the workload.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::copy;
use crate::environment::{self, Merged};
use crate::exec;
use crate::graftable;
use crate::marker::{self, Marker};
use crate::run_dir::{self, RunDir};
use crate::signals::{self, SignalWatch};
use crate::state::{Reason, State};

/// How often the run folder is looked at while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// What bounds the wait.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run folder.
    pub run_dir: PathBuf,
    /// The tools folder.
    pub tools_dir: PathBuf,
    /// How long an agent may take to claim this launcher.
    pub claim: Duration,
    /// How long the session may take to give its environment, after the claim.
    pub session: Duration,
}

/// How the wait ended.
enum Wait {
    Session(Merged),
    Plain(Reason),
    Ended(Signal),
}

/// Waits, bounded, and becomes `command`. Returns only when the command could not be run, or when a
/// signal ended the wait: the exit code then is the one that a shell gives.
pub fn run(options: &Options, command: &[CString], own: &[CString]) -> i32 {
    let start = Instant::now();
    let run_dir = RunDir::new(&options.run_dir);
    let usable = run_dir
        .protect()
        .and_then(|()| run_dir.clear())
        .and_then(|()| run_dir.make_tmp())
        .and_then(|()| run_dir.make_out())
        .is_ok();
    let last = run_dir
        .read_text(run_dir::MARKER)
        .ok()
        .and_then(|text| Marker::parse(&text));
    let decision = marker::decide(last, run_dir::unix_ms());

    let program = command.first().map_or(&b""[..], |program| program.as_bytes());
    let mut detail = String::new();
    let outcome = if !usable {
        Wait::Plain(Reason::RunDirUnusable)
    } else if !decision.graft {
        Wait::Plain(Reason::EarlyDeath)
    } else if environment::has_profiler(own) {
        Wait::Plain(Reason::OtherProfiler)
    } else if let Err(refusal) = graftable::judge(program, own, &options.tools_dir) {
        detail = refusal.to_string();
        Wait::Plain(refusal.reason())
    } else {
        match SignalWatch::new(&signals::ENDING) {
            Ok(watch) => wait_for_session(options, &run_dir, &watch, own),
            Err(_) => Wait::Plain(Reason::RunDirUnusable),
        }
    };

    let say = |reason: Reason, kept: Vec<String>| {
        let state = State {
            reason,
            pid: std::process::id(),
            unix_ms: run_dir::unix_ms(),
            waited_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            early_deaths: decision.early_deaths,
            kept,
            detail: detail.clone(),
        };
        if usable {
            // Nobody may be able to read it; the workload starts all the same.
            drop(run_dir.write(run_dir::STATE, state.render().as_bytes()));
            drop(run_dir.remove(run_dir::WAITING));
        }
    };
    let mark = |grafted: bool| {
        let marker = Marker {
            started_unix_ms: run_dir::unix_ms(),
            grafted,
            survived: false,
            early_deaths: decision.early_deaths,
        };
        run_dir.write(run_dir::MARKER, marker.render().as_bytes())
    };

    match outcome {
        Wait::Ended(signal) => {
            say(Reason::Interrupted, Vec::new());
            return 128 + signals::number(signal);
        }
        // Without the marker a crash loop could not be told: no marker, no graft.
        Wait::Session(merged) if mark(true).is_ok() => {
            say(Reason::Session, merged.kept);
            let Err(_) = exec::exec(command, &merged.entries);
            drop(mark(false));
            say(Reason::ExecFailed, Vec::new());
        }
        Wait::Session(_) => say(Reason::RunDirUnusable, Vec::new()),
        Wait::Plain(reason) => {
            if usable {
                drop(mark(false));
            }
            say(reason, Vec::new());
        }
    }
    let Err(error) = exec::exec(command, own);
    let name = command
        .first()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    eprintln!("flopwatch-launcher: cannot run {name}: {}", error.desc());
    exec::exit_code(error)
}

fn wait_for_session(options: &Options, run_dir: &RunDir, watch: &SignalWatch, own: &[CString]) -> Wait {
    let waiting = format!(
        "pid={}\nunix_ms={}\nprotocol={}\n",
        std::process::id(),
        run_dir::unix_ms(),
        run_dir::PROTOCOL
    );
    if run_dir.write(run_dir::WAITING, waiting.as_bytes()).is_err() {
        return Wait::Plain(Reason::RunDirUnusable);
    }
    let mut deadline = Instant::now() + options.claim;
    let mut claimed = false;
    loop {
        if let Some(signal) = watch.wait(POLL_INTERVAL) {
            return Wait::Ended(signal);
        }
        if !claimed && run_dir.has(run_dir::CLAIMED) {
            claimed = true;
            deadline = Instant::now() + options.session;
        }
        if run_dir.has(run_dir::FAILED) {
            return Wait::Plain(Reason::SessionFailed);
        }
        if claimed && run_dir.has(run_dir::ENV) {
            return take_environment(options, run_dir, own);
        }
        if Instant::now() >= deadline {
            return Wait::Plain(if claimed {
                Reason::SessionTimeout
            } else {
                Reason::Unclaimed
            });
        }
    }
}

fn take_environment(options: &Options, run_dir: &RunDir, own: &[CString]) -> Wait {
    let bytes = match run_dir.read(run_dir::ENV, run_dir::ENV_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            return Wait::Plain(Reason::EnvironmentTooLarge);
        }
        Err(_) => return Wait::Plain(Reason::EnvironmentMalformed),
    };
    let fallback = options.tools_dir.join(copy::FALLBACK);
    let fallback = fallback.exists().then_some(fallback.as_path());
    match environment::parse(&bytes).map(|session| environment::merge(own, &session, fallback)) {
        Ok(merged) if merged.added > 0 => Wait::Session(merged),
        _ => Wait::Plain(Reason::EnvironmentMalformed),
    }
}
