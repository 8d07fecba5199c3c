//! The command that is recorded: found, started with its environment, and watched for the length of
//! the window.

use std::ffi::OsString;
use std::future::Future;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_nvml::{DeviceSelection, Target, utc_ns};
use flopwatch_pipeline::gpus::{Gpus, Sampling};
use flopwatch_pipeline::transform::Samples;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep};

use super::dispositions::Ignored;
use super::kept::Kept;
use super::{Error, Options};
use crate::progress::Progress;

/// How often the terminal sees the seconds pass.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// State of the recorded command.
#[derive(Debug)]
pub enum Running {
    /// The command ended.
    Ended(ExitStatus),
    /// It runs on, with the libraries that the programs need which it starts from now on.
    Still(Box<Child>, Kept),
    /// It was there before, and is not ours.
    Foreign,
}

impl Running {
    /// Waits for its end and passes signals on. `None` when waiting failed, and for a program that
    /// is not ours.
    pub async fn end(self) -> Option<ExitStatus> {
        match self {
            Self::Ended(status) => Some(status),
            Self::Foreign => None,
            Self::Still(mut child, kept) => {
                let mut signals = Signals::new().ok()?;
                loop {
                    tokio::select! {
                        status = child.wait() => {
                            kept.remove();
                            return status.ok();
                        }
                        received = signals.next() => pass_on(&child, received),
                    }
                }
            }
        }
    }
}

/// A command as it is to be started.
pub(super) struct Started<'a> {
    /// Its file.
    pub(super) program: &'a Path,
    /// Its whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// What its programs load, which stays for as long as it runs.
    pub(super) kept: Kept,
}

/// What the window was, when it is over.
pub(super) struct Watched {
    sampled: Sampled,
    length: Duration,
    child: Child,
    ended: Option<ExitStatus>,
    kept: Kept,
}

impl Watched {
    /// The command, and the samples of the window. What a command that has ended needed goes.
    pub(super) fn finish(self) -> (Running, Samples) {
        let command = match self.ended {
            Some(status) => {
                self.kept.remove();
                Running::Ended(status)
            }
            None => Running::Still(Box::new(self.child), self.kept),
        };
        (command, self.sampled.finish(self.length))
    }

    /// The folder of what its programs load.
    pub(super) fn folder(&self) -> &Path {
        self.kept.path()
    }
}

/// Samples of the GPUs, which are taken beside the window.
pub(super) struct Sampled {
    sampling: Sampling,
    /// Samples are taken for as long as it is there.
    _gpus: Gpus,
    start: Instant,
    start_utc_ns: u64,
}

impl Sampled {
    /// Begins to sample for the processes of `target`.
    pub(super) fn begin(options: &Options, target: Target) -> Self {
        let interval = u64::try_from(options.manifest.spec.metrics.interval_milliseconds).unwrap_or(100);
        let gpus = Gpus::open(options.nvml_library.clone(), Arc::new(|_| None));
        let sampling = gpus.record(Duration::from_millis(interval), DeviceSelection::All, target);
        Self {
            sampling,
            _gpus: gpus,
            start: Instant::now(),
            start_utc_ns: utc_ns(),
        }
    }

    /// How long ago it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The samples of a window of that length.
    pub(super) fn finish(self, length: Duration) -> Samples {
        Samples {
            window_start_utc_ns: self.start_utc_ns,
            window_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            ..self.sampling.finish()
        }
    }
}

/// Starts the command and waits for the end of the window: after its time, with the command, or
/// when `over` resolves, which is then given back. What is `said` meanwhile is told at once.
pub(super) async fn watch<T>(
    options: &Options,
    started: Started<'_>,
    window: Window,
    progress: &mut Progress,
    over: impl Future<Output = T>,
    said: &mut Receiver<String>,
) -> Result<(Watched, Option<T>), Error> {
    let Started {
        program,
        environment,
        mut kept,
    } = started;
    let ignored = Ignored::now();
    let mut signals = Signals::new().map_err(Error::Signals)?;
    let sampled = Sampled::begin(options, Arc::new(is_of_command));
    let mut command = Command::new(program);
    if let [name, arguments @ ..] = options.command.as_slice() {
        command.arg0(name).args(arguments);
    }
    command.env_clear().envs(environment).kill_on_drop(false);
    ignored.hand_on(&mut command);
    progress.clear();
    let mut child = command.spawn().map_err(|error| Error::Command {
        command: program.display().to_string(),
        reason: error.to_string(),
    })?;
    kept.stay();
    let start = Instant::now();
    let mut over = std::pin::pin!(over);
    let (ended, early) = loop {
        let left = window.length.saturating_sub(start.elapsed());
        if left.is_zero() {
            break (None, None);
        }
        progress.window(start.elapsed(), window.shown());
        tokio::select! {
            status = child.wait() => break (status.ok(), None),
            early = &mut over => break (None, Some(early)),
            Some(text) = said.recv() => progress.tell(&text),
            () = sleep(left.min(DRAW_INTERVAL)) => {}
            received = signals.next() => pass_on(&child, received),
        }
    };
    let watched = Watched {
        length: sampled.elapsed(),
        sampled,
        child,
        ended,
        kept,
    };
    Ok((watched, early))
}

/// Waits for the end of the window of a program that is not ours: after its time, with a signal
/// that is meant for us, or when `over` resolves, which is then given back. What is `said`
/// meanwhile is told at once.
pub(super) async fn wait<T>(
    window: Window,
    progress: &mut Progress,
    over: impl Future<Output = T>,
    said: &mut Receiver<String>,
) -> Result<Option<T>, Error> {
    let mut signals = Signals::new().map_err(Error::Signals)?;
    let start = Instant::now();
    let mut over = std::pin::pin!(over);
    loop {
        let left = window.length.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        progress.window(start.elapsed(), window.shown());
        tokio::select! {
            early = &mut over => return Ok(Some(early)),
            Some(text) = said.recv() => progress.tell(&text),
            () = sleep(left.min(DRAW_INTERVAL)) => {}
            _ = signals.next() => return Ok(None),
        }
    }
}

/// How long is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Its longest time.
    pub(super) length: Duration,
    /// Whether it lasts until the command ends.
    pub(super) until_end: bool,
}

impl Window {
    /// The length that a person is told; none where the command's end is waited for.
    fn shown(self) -> Option<Duration> {
        (!self.until_end).then_some(self.length)
    }
}

/// The signals that a person or a supervisor sends to us and means for the command.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::SIGINT,
            _ = self.terminate.recv() => Signal::SIGTERM,
            _ = self.hangup.recv() => Signal::SIGHUP,
        }
    }
}

/// The command and what it started share this program's process group; our own helpers do not.
fn is_of_command(pid: u32) -> bool {
    let group = |pid| nix::unistd::getpgid(pid).ok();
    i32::try_from(pid).is_ok_and(|pid| group(Some(Pid::from_raw(pid))).is_some_and(|found| group(None) == Some(found)))
}

/// A terminal sends its signals to the whole group, the command included; others send theirs to us
/// alone.
fn pass_on(child: &Child, received: Signal) {
    let from_terminal = received == Signal::SIGINT && std::io::stdin().is_terminal();
    if let Some(pid) = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .filter(|_| !from_terminal)
    {
        // It may have ended in between.
        kill(Pid::from_raw(pid), received).ok();
    }
}

/// The file that a command names: with a slash as it is, else from PATH.
pub(super) fn find_program(command: &[OsString]) -> Result<PathBuf, Error> {
    let Some(name) = command.first() else {
        return Err(Error::Command {
            command: "no command".to_owned(),
            reason: "name one: `flopwatch record ./program`".to_owned(),
        });
    };
    let named = Path::new(name);
    let candidates: Vec<PathBuf> = if named.components().count() > 1 || named.is_absolute() {
        vec![named.to_owned()]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(named)).collect()
    };
    let executable =
        |path: &PathBuf| path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok();
    candidates.into_iter().find(executable).ok_or_else(|| Error::Command {
        command: named.display().to_string(),
        reason: "no such program, or it cannot be executed".to_owned(),
    })
}
