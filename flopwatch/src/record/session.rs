//! The profiler's session around a local command: the same graft as in a pod, on this machine.
//!
//! A supervisor (the launcher's) holds the session in a process group of its own, so that a Ctrl-C
//! of the terminal ends the command and not the recording. The command becomes our own child with
//! the session's environment added to its own.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::artifact::MAX_REPORTS;
use flopwatch_api::profiler::{NsysOptions, TraceCategory};
use flopwatch_attach::nsys::{self, Collection, HostTools, LaunchOptions, StartOptions};
use flopwatch_launcher::environment::{merge, parse};
use flopwatch_launcher::guard::Collecting;
use flopwatch_launcher::manager_lock;
use flopwatch_launcher::raw_capture;
use flopwatch_launcher::run_dir::{self, RunDir};
use flopwatch_pipeline::child;
use flopwatch_pipeline::nsys_options;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Longest time in which a session must have given its environment.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that the profiler may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time that starting or cancelling a collection, or ending a session, may take.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that stopping a collection may take: the profiler may import its capture then.
const STOP_TIMEOUT: Duration = Duration::from_mins(5);
/// Beyond the window's end, the supervisor ends the collection by itself.
const GUARD_GRACE: Duration = Duration::from_secs(30);
/// Pause between two looks for a file.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why there is no session, or no capture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Our own files could not be written or read.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The session did not start.
    #[error("the profiler's session did not start: {0}")]
    NoSession(String),
    /// A control command failed.
    #[error(transparent)]
    Control(#[from] child::Error),
    /// The environment of the session is malformed.
    #[error("the environment of the profiler's session is malformed")]
    Environment,
    /// The collection left no file.
    #[error("the profiler stopped and left no capture in {0}")]
    NoCapture(PathBuf),
}

fn io_error(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    |source| Error::Io {
        what: what.into(),
        source,
    }
}

/// What a collection left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Captured {
    /// Raw captures (`.qdstrm`), which are to be imported.
    Raw(Vec<PathBuf>),
    /// Reports (`.nsys-rep`): the profiler found its importer.
    Reports(Vec<PathBuf>),
    /// What was drained of the CUDA tracer's file, and the flight recorder's file of the same
    /// programs.
    Traced {
        /// The drained file.
        drained: PathBuf,
        /// The flight recorder's file, where there is one.
        ring: Option<PathBuf>,
        /// Whether a program began CUDA.
        uses_cuda: bool,
    },
}

/// The files of that extension which a collection called `capture` left in a folder, one for each
/// range, in their order.
fn captures(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let is_one = path.extension().is_some_and(|found| found == extension);
            let (name, number) = raw_capture::split_stem(path.file_stem()?.to_str()?);
            (is_one && name == "capture").then(|| (number, path.clone()))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, path)| path).take(MAX_REPORTS).collect()
}

/// A profiler's session.
#[derive(Debug)]
pub struct Session {
    name: String,
    nsys: PathBuf,
    run_dir: RunDir,
    supervisor: Child,
}

impl Session {
    /// Starts a session of that name with its files under `folder`. It ends by itself `lifetime`
    /// after its start.
    pub async fn start(
        tools: &HostTools,
        name: &str,
        (trace, asked): (&[TraceCategory], &NsysOptions),
        folder: &Path,
        lifetime: Duration,
    ) -> Result<Self, Error> {
        let own = std::env::current_exe().map_err(io_error("the path of this program cannot be found"))?;
        let run_dir = RunDir::new(folder);
        run_dir
            .make_tmp()
            .map_err(io_error("the session's temporary folder cannot be made"))?;
        share_lock(tools, &run_dir).await;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let stub = vec![
            text(&own),
            "launcher".into(),
            "stub".into(),
            text(&run_dir.file(run_dir::ENV)),
        ];
        let launch = LaunchOptions {
            session: name.to_owned(),
            trace: trace.iter().map(|category| category.as_str().to_owned()).collect(),
            cuda_graph_trace: asked.cuda_graph_trace.map(nsys_options::cuda_graph_trace),
            nvtx_capture: asked.capture_range.as_ref().and_then(|range| range.name.clone()),
            trace_fork_before_exec: false,
        };
        let mut command = Command::new(&own);
        command
            .args([
                "launcher",
                "keeper",
                "--deadline-seconds",
                &lifetime.as_secs().to_string(),
                "--run-dir",
            ])
            .arg(folder)
            .arg("--nsys")
            .arg(&tools.nsys)
            .args(["--beside-others", "--"])
            .args(nsys::launch(&tools.nsys, &launch, &stub))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .envs(temporary_folder(&run_dir));
        let supervisor = command
            .spawn()
            .map_err(io_error("the session's supervisor cannot be started"))?;
        let mut session = Self {
            name: name.to_owned(),
            nsys: tools.nsys.clone(),
            run_dir,
            supervisor,
        };
        match session.wait_for_environment().await {
            Ok(()) => Ok(session),
            Err(error) => {
                session.end().await;
                Err(error)
            }
        }
    }

    async fn wait_for_environment(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + SESSION_TIMEOUT;
        while !self.run_dir.has(run_dir::ENV) {
            if self.run_dir.has(run_dir::FAILED) || !matches!(self.supervisor.try_wait(), Ok(None)) {
                let why = self
                    .run_dir
                    .read_text(run_dir::FAILED)
                    .unwrap_or_else(|_| "the supervisor ended".to_owned());
                let log = self.run_dir.read_text(run_dir::LOG).unwrap_or_default();
                return Err(Error::NoSession(format!(
                    "{}; {}",
                    why.trim(),
                    log.trim().replace('\n', " | ")
                )));
            }
            if Instant::now() >= deadline {
                return Err(Error::NoSession(format!("no answer within {SESSION_TIMEOUT:?}")));
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// The environment for the command: this process's own, with the session's added, the
    /// `fallback` library before the profiler's, and nothing replaced.
    pub fn environment(&self, fallback: &Path) -> Result<Vec<(OsString, OsString)>, Error> {
        let bytes = self.run_dir.read(run_dir::ENV, run_dir::ENV_LIMIT);
        let bytes = bytes.map_err(io_error("the environment of the profiler's session cannot be read"))?;
        let session = parse(&bytes).map_err(|_malformed| Error::Environment)?;
        let own: Vec<CString> = std::env::vars_os()
            .filter_map(|(name, value)| {
                let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
                CString::new(entry).ok()
            })
            .collect();
        let entries = merge(&own, &session, Some(fallback)).entries;
        Ok(entries.iter().filter_map(|entry| split(entry.as_bytes())).collect())
    }

    /// Starts collecting; the supervisor ends it when this process does not.
    pub async fn collect(&self, window: Duration, collection: Collection) -> Result<(), Error> {
        let until = SystemTime::now() + window + GUARD_GRACE;
        let deadline = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut bounds = Collecting {
            session: self.name.clone(),
            deadline_unix_ms: u64::try_from(deadline).unwrap_or(u64::MAX),
            max_bytes: u64::MAX,
            min_free_bytes: 0,
            output: self.run_dir.file(run_dir::OUT).join("capture.qdstrm"),
            running: false,
        };
        self.bound(&bounds)?;
        let start = StartOptions {
            session: self.name.clone(),
            output: bounds.output.with_extension(""),
            collection,
        };
        self.control(
            "starting the collection",
            nsys::start(&self.nsys, &start),
            CONTROL_TIMEOUT,
        )
        .await?;
        bounds.running = true;
        self.bound(&bounds)
    }

    fn bound(&self, bounds: &Collecting) -> Result<(), Error> {
        let written = self.run_dir.write(run_dir::COLLECTING, bounds.render().as_bytes());
        written.map_err(io_error("the collection's bounds cannot be written"))
    }

    /// Stops collecting and says what it left.
    pub async fn stop(&self) -> Result<Captured, Error> {
        let stopped = self
            .control(
                "stopping the collection",
                nsys::stop(&self.nsys, &self.name),
                STOP_TIMEOUT,
            )
            .await;
        let folder = self.run_dir.file(run_dir::OUT);
        let (reports, raw) = (captures(&folder, "nsys-rep"), captures(&folder, "qdstrm"));
        let captured = match (reports.is_empty(), raw.is_empty()) {
            (false, _) => Captured::Reports(reports),
            (true, false) => Captured::Raw(raw),
            (true, true) => {
                stopped?;
                drop(self.run_dir.remove(run_dir::COLLECTING));
                return Err(Error::NoCapture(folder));
            }
        };
        // Where there is a capture and nothing to stop, the ranges were over before the window was.
        drop(self.run_dir.remove(run_dir::COLLECTING));
        Ok(captured)
    }

    /// Ends the session and everything of it; the command stays as it is. Safe to call at any
    /// moment.
    pub async fn end(&mut self) {
        // A session that is gone already is as good as ended.
        if self.run_dir.has(run_dir::COLLECTING) {
            // Not every version that has `cancel` implements it; what the stop writes goes with the
            // folder.
            let stop = nsys::stop(&self.nsys, &self.name);
            drop(self.control("stopping the collection", stop, CONTROL_TIMEOUT).await);
        }
        let shutdown = nsys::shutdown(&self.nsys, &self.name);
        drop(self.control("ending the session", shutdown, CONTROL_TIMEOUT).await);
        if let Some(pid) = self.supervisor.id().and_then(|pid| i32::try_from(pid).ok()) {
            kill(Pid::from_raw(pid), Signal::SIGTERM).ok();
        }
        if timeout(CONTROL_TIMEOUT, self.supervisor.wait()).await.is_err() {
            drop(self.supervisor.kill().await);
        }
    }

    async fn control(&self, what: &str, line: Vec<String>, limit: Duration) -> Result<(), Error> {
        let mut words = line.into_iter();
        let mut command = std::process::Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .process_group(0)
            .envs(temporary_folder(&self.run_dir));
        child::run(what, command, limit).await?;
        Ok(())
    }
}

/// Has the session change the machine's list of sessions in turn with all others. Without it a
/// session starts all the same: the supervisor looks after a list that was spoilt.
async fn share_lock(tools: &HostTools, run_dir: &RunDir) {
    let mut command = std::process::Command::new(&tools.nsys);
    command
        .arg("--version")
        .process_group(0)
        .envs(temporary_folder(run_dir));
    let message = child::run("asking the profiler's version", command, VERSION_TIMEOUT).await;
    let message = message.unwrap_or_default();
    let Some(version) = nsys::parse_version(&message).and_then(manager_lock::version) else {
        return;
    };
    if let Err(error) = manager_lock::share(&run_dir.file(run_dir::TMP), version) {
        tracing::debug!(%error, "the profiler's lock cannot be shared with other sessions");
    }
}

/// The profiler keeps its state below its temporary folder and its home.
fn temporary_folder(run_dir: &RunDir) -> [(&'static str, PathBuf); 2] {
    let folder = run_dir.file(run_dir::TMP);
    [("TMPDIR", folder.clone()), ("HOME", folder)]
}

fn split(entry: &[u8]) -> Option<(OsString, OsString)> {
    let at = entry.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
    Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
}
