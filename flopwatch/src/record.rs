//! `record`: profiles a local command with the real Nsight Systems, without a cluster.
//!
//! The command becomes our own child with its standard streams, its environment (the session's
//! entries added) and its signals; it is never killed. When the window ends before the command
//! does, the command runs on.

mod dispositions;
mod fallback;
mod results;
mod session;

use std::ffi::OsString;
use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::artifact::{Output, SAMPLES, report_name, stream_name};
use flopwatch_api::profiler::{NsysOptions, TraceCategory};
use flopwatch_attach::nsys::HostTools;
use flopwatch_launcher::copy::CopyError;
use flopwatch_model::Category;
use flopwatch_nvml::{DeviceSelection, utc_ns};
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::gpus::Gpus;
use flopwatch_pipeline::nsys_options;
use flopwatch_pipeline::products::{self, Recipe, Stage, Wanted, nsys_imports};
use flopwatch_pipeline::sandbox_dir::{self, SandboxDir};
use flopwatch_pipeline::steps::{ChildRunner, Limits};
use flopwatch_pipeline::transform::Samples;
use flopwatch_summary::Summary;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::manifest::{self, Manifest};
use crate::progress::Progress;
use crate::source::unnamed;
use dispositions::Ignored;
use fallback::Fallback;

pub use session::{Captured, Error as SessionError, Session};

/// A session that outlives its window by this much ends itself.
const SESSION_GRACE: Duration = Duration::from_mins(10);
/// How often a session is begun.
const MAX_ATTEMPTS: u32 = 3;
/// Longest time after which it is begun once more: who records waits for the command.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// How often the terminal sees the seconds pass.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// What to record and where to put it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Session manifest that says what to record.
    pub manifest: Manifest,
    /// Nsight Systems of this machine.
    pub tools: HostTools,
    /// Folder of the results; it is created.
    pub output: PathBuf,
    /// Whether the files of an earlier recording in that folder are replaced.
    pub force: bool,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The NVML library; none: where the loader finds it.
    pub nvml_library: Option<PathBuf>,
    /// Say nothing while recording.
    pub quiet: bool,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command cannot be run.
    #[error("{command}: {reason}")]
    Command {
        /// Command as it was given.
        command: String,
        /// What keeps it from running.
        reason: String,
    },
    /// The folder of the results holds those of an earlier recording.
    #[error("{}: holds {name} of an earlier recording: --force replaces it, --output names another folder", folder.display())]
    Exists {
        /// Folder of the results.
        folder: PathBuf,
        /// A file in it.
        name: String,
    },
    /// A folder or file of ours cannot be written.
    #[error("{path}: {source}")]
    Io {
        /// File or folder that could not be written.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(std::io::Error),
    /// The fallback library cannot be written.
    #[error(transparent)]
    Fallback(#[from] CopyError),
    /// The profiler's session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What was asked for on the command line is not to be had.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// The range of the command that was to be recorded did not begin; the text says what was
    /// waited for.
    #[error("{0}")]
    RangeMissed(String),
    /// Importing or transforming failed.
    #[error(transparent)]
    Pipeline(#[from] products::Error),
    /// Importing or transforming failed; the recording is kept, because it was asked for.
    #[error("{source}; what was recorded is kept in {folder}")]
    Kept {
        /// Folder of the results.
        folder: PathBuf,
        /// What could not be done.
        source: products::Error,
    },
    /// There is no folder for the children.
    #[error(transparent)]
    SandboxDir(#[from] sandbox_dir::Error),
}

/// The result of a recording.
#[derive(Debug)]
pub struct Recording {
    /// The session's identifier, as in the files.
    pub session_id: String,
    /// Folder of the results.
    pub folder: PathBuf,
    /// Tables of what was recorded.
    pub summary: Summary,
    /// Set when the window lacks events that were required.
    pub missing: Option<Failure>,
    /// The command, which may still run.
    pub command: Running,
}

/// State of the recorded command.
#[derive(Debug)]
pub enum Running {
    /// The command ended.
    Ended(ExitStatus),
    /// It runs on, with the library that the programs need which it starts from now on.
    Still(Box<Child>, Fallback),
}

impl Running {
    /// Waits for its end and passes signals on. `None` when waiting failed.
    pub async fn end(self) -> Option<ExitStatus> {
        match self {
            Self::Ended(status) => Some(status),
            Self::Still(mut child, fallback) => {
                let mut signals = Signals::new().ok()?;
                loop {
                    tokio::select! {
                        status = child.wait() => {
                            fallback.remove();
                            return status.ok();
                        }
                        received = signals.next() => pass_on(&child, received),
                    }
                }
            }
        }
    }
}

/// Records a command as the options say.
pub async fn record(options: &Options) -> Result<Recording, Error> {
    let program = find_program(&options.command)?;
    if let Some(name) = results::earlier(&options.output).filter(|_| !options.force) {
        let folder = options.output.clone();
        return Err(Error::Exists { folder, name });
    }
    std::fs::create_dir_all(&options.output).map_err(io(&options.output))?;
    let spool = tempfile::Builder::new()
        .prefix(".flopwatch-record-")
        .tempdir()
        .map_err(unnamed)
        .map_err(io(&std::env::temp_dir()))?;
    options.manifest.check()?;
    let trace = options.manifest.trace();
    let requested = options.manifest.spec.profiler.nsys.clone().unwrap_or_default();
    let session_id = new_session_id();
    let window = Duration::from_secs(u64::try_from(options.manifest.spec.duration_seconds).unwrap_or(1));
    let mut progress = Progress::new(options.quiet);

    progress.stage("starting the profiler's session");
    let name = format!("flopwatch-{session_id}");
    let mut session = open(&options.tools, &name, (&trace, &requested), spool.path(), window).await?;
    let collected = collect(options, &program, &session, window, &mut progress).await;
    progress.stage("ending the profiler's session");
    session.end().await;
    let (captured, command, samples) = collected.map_err(|error| missed(error, &requested))?;

    let made = publish(
        options,
        &trace,
        &session_id,
        captured,
        samples,
        spool.path(),
        &mut progress,
    )
    .await;
    progress.clear();
    let (summary, missing) = made?;
    Ok(Recording {
        session_id,
        folder: options.output.clone(),
        summary,
        missing,
        command,
    })
}

/// That there is no capture of a range means that the range did not come.
fn missed(error: Error, requested: &NsysOptions) -> Error {
    match (&error, &requested.capture_range) {
        (Error::Session(SessionError::NoCapture(_)), Some(range)) => {
            Error::RangeMissed(nsys_options::missed(range, range.name.as_deref(), "").message)
        }
        _ => error,
    }
}

/// A session that collects. On a busy machine one may be lost at its start or between that and the
/// collection; the command does not run yet, so another is begun.
async fn open(
    tools: &HostTools,
    name: &str,
    traced: (&[TraceCategory], &NsysOptions),
    spool: &Path,
    window: Duration,
) -> Result<Session, SessionError> {
    let began = Instant::now();
    let mut attempt = 1;
    loop {
        let name = format!("{name}-{attempt}");
        let folder = spool.join(&name);
        std::fs::create_dir_all(&folder).map_err(|source| SessionError::Io {
            what: format!("{} cannot be created", folder.display()),
            source,
        })?;
        let error = match Session::start(tools, &name, traced, &folder, window + SESSION_GRACE).await {
            Ok(mut session) => match session.collect(window, nsys_options::collection(traced.1)).await {
                Ok(()) => return Ok(session),
                Err(error) => {
                    session.end().await;
                    error
                }
            },
            Err(error) => error,
        };
        if attempt == MAX_ATTEMPTS || began.elapsed() >= MAX_RETRY_INTERVAL {
            return Err(error);
        }
        tracing::debug!(%error, attempt, "the profiler's session was lost before it collected");
        attempt += 1;
    }
}

/// Runs the command while the session collects: it is recorded from its first instruction on.
async fn collect(
    options: &Options,
    program: &Path,
    session: &Session,
    window: Duration,
    progress: &mut Progress,
) -> Result<(Captured, Running, Samples), Error> {
    let mut fallback = Fallback::install()?;
    let environment = session.environment(fallback.library())?;
    let ignored = Ignored::now();
    let mut signals = Signals::new().map_err(Error::Signals)?;
    let window_start_utc_ns = utc_ns();
    let interval = u64::try_from(options.manifest.spec.metrics.interval_milliseconds).unwrap_or(100);
    let gpus = Gpus::open(options.nvml_library.clone(), Arc::new(|_| None));
    let sampling = gpus.record(
        Duration::from_millis(interval),
        DeviceSelection::All,
        Arc::new(is_of_command),
    );
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
    fallback.stay();
    let start = Instant::now();
    let ended = loop {
        let left = window.saturating_sub(start.elapsed());
        if left.is_zero() {
            break None;
        }
        progress.window(start.elapsed(), window);
        tokio::select! {
            status = child.wait() => break status.ok(),
            () = sleep(left.min(DRAW_INTERVAL)) => {}
            received = signals.next() => pass_on(&child, received),
        }
    };
    let window_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let command = match ended {
        Some(status) => {
            fallback.remove();
            Running::Ended(status)
        }
        None => Running::Still(Box::new(child), fallback),
    };
    progress.stage("stopping the collection");
    let captured = session.stop().await?;
    let samples = Samples {
        window_start_utc_ns,
        window_ns,
        ..sampling.finish()
    };
    Ok((captured, command, samples))
}

/// Makes the files that the manifest lists. Says too what is missing of the events that it
/// requires.
async fn publish(
    options: &Options,
    trace: &[TraceCategory],
    session_id: &str,
    captured: Captured,
    samples: Samples,
    spool: &Path,
    progress: &mut Progress,
) -> Result<(Summary, Option<Failure>), Error> {
    let own = std::env::current_exe().map_err(io(Path::new("/proc/self/exe")))?;
    let steps = ChildRunner::new(own, Some(options.tools.clone()), Limits::default());
    let place = SandboxDir::make(spool.join(sandbox_dir::NAME), &steps.limits().users)?;
    let samples_file = spool.join(SAMPLES);
    let text = serde_json::to_vec(&samples).map_err(|error| Error::Io {
        path: samples_file.clone(),
        source: error.into(),
    })?;
    std::fs::write(&samples_file, text).map_err(io(&samples_file))?;
    // The profiler's own reports are no child's.
    let ((tools, inputs), reports, own): (_, Vec<String>, _) = match captured {
        Captured::Reports(own) => {
            let inputs = own.clone();
            ((Vec::new(), inputs), Vec::new(), numbered(own, report_name))
        }
        Captured::Raw(raw) => {
            let imports = nsys_imports(raw.iter().cloned(), |name| place.at(name));
            let reports = (1..=raw.len()).map(report_name).collect();
            (imports, reports, numbered(raw, stream_name))
        }
    };
    let recipe = Recipe {
        tools: None,
        steps: tools,
        inputs,
        reports: reports.clone(),
        collected: Vec::new(),
        captured: trace.iter().flat_map(|traced| traced.records()).copied().collect(),
    };
    let spec = &options.manifest.spec;
    let wanted = Wanted {
        samples: Some(samples_file),
        session_id: Some(session_id.to_owned()),
        device: spec.transform.device,
        fleet: None,
    };
    let begins = |stage| {
        progress.stage(match stage {
            Stage::Import => "importing the capture",
            Stage::Export | Stage::Transform => "making the timeline",
        });
    };
    let made = products::run(&steps, &place, recipe, wanted, pending(), begins).await;
    let write = |name: &str, mut from: std::fs::File| {
        let to = options.output.join(name);
        let copied = std::fs::File::create(&to).and_then(|mut file| std::io::copy(&mut from, &mut file));
        copied.map(drop).map_err(io(&to))
    };
    let write_own = || {
        let mut files = own.iter();
        files.try_for_each(|(name, path)| write(name, std::fs::File::open(path).map_err(io(path))?))
    };
    let asks_for_raw = spec.outputs.contains(&Output::Raw);
    if made.is_ok() || asks_for_raw {
        results::clear(&options.output).map_err(|(path, source)| Error::Io { path, source })?;
    }
    let products = match made {
        Ok(products) => products,
        Err(source) if asks_for_raw => {
            let imported = !matches!(source, products::Error::Import(_));
            if imported && !reports.is_empty() {
                for name in &reports {
                    write(name, place.open(name).map_err(products::Error::from)?)?;
                }
            } else {
                write_own()?;
            }
            let folder = options.output.clone();
            return Err(Error::Kept { folder, source });
        }
        Err(error) => return Err(error.into()),
    };
    for (output, name) in products.artifacts() {
        if spec.outputs.contains(&output) {
            write(name, products.open(name)?)?;
        }
    }
    if asks_for_raw && reports.is_empty() {
        write_own()?;
    }
    let missing = products.verify(&spec.require, false, &[Category::NvtxRange]).err();
    Ok((products.summary, missing))
}

/// Files with the names that they have as the first, the second and so on.
fn numbered(files: Vec<PathBuf>, name: impl Fn(usize) -> String) -> Vec<(String, PathBuf)> {
    (1..).map(name).zip(files).collect()
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
fn find_program(command: &[OsString]) -> Result<PathBuf, Error> {
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

/// Eight hexadecimal digits.
fn new_session_id() -> String {
    let random = RandomState::new().hash_one(utc_ns());
    format!("{:08x}", random & u64::from(u32::MAX))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}
