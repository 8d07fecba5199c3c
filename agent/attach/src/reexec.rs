//! The calling program, started again to change namespaces or users in a process of its own.
//!
//! Contract with the calling program: when its first argument is one of [`SUBCOMMANDS`], it hands
//! its arguments to [`child_main`] before it starts a thread, and exits with what that returns. The
//! child's standard input is no input but the pipe on which it reports, or the socket on which it
//! is told what to run too; standard output and error are the command's own.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::process::Procfs;
use crate::sandbox::Work;
use crate::{enter, sandbox};

/// The hidden subcommands.
pub const SUBCOMMANDS: [&str; 3] = ["enter", "sandbox", "sandbox-ahead"];
/// Bytes of standard output, and as many of standard error, that are kept.
pub const OUTPUT_LIMIT: usize = 64 << 10;
/// Bytes of a report that are read.
const REPORT_LIMIT: usize = 64 << 10;
/// How long the child may take beyond the command's own deadline.
const EXIT_GRACE_TIMEOUT: Duration = Duration::from_secs(5);

/// How to start the calling program again.
#[derive(Debug, Clone)]
pub struct Reexec {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// Where the command's standard output goes; none: it is kept.
    stdout: Option<Arc<OwnedFd>>,
}

impl Default for Reexec {
    fn default() -> Self {
        Self::new("/proc/self/exe")
    }
}

impl Reexec {
    /// Starts `program`, which keeps this module's contract.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            stdout: None,
        }
    }

    /// The same with arguments before the subcommand: of an interpreter, what it runs.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl IntoIterator<Item = OsString>) -> Self {
        self.arguments.extend(arguments);
        self
    }

    /// The same with a variable; the child has no other. What it starts does not inherit it.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The same; the command's standard output goes to `stdout`, and none of it is kept.
    #[must_use]
    pub fn with_stdout(mut self, stdout: OwnedFd) -> Self {
        self.stdout = Some(Arc::new(stdout));
        self
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// The command's deadline passed and it was killed.
    TimedOut,
    /// The caller lost its interest and it was killed.
    Cancelled,
    /// The command runs on, on its own.
    Detached,
}

/// What came of a command.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub end: End,
    /// The first 64 KiB of its standard output.
    pub stdout: Vec<u8>,
    /// The first 64 KiB of its standard error.
    pub stderr: Vec<u8>,
    /// Whether it wrote more than that.
    pub truncated: bool,
    /// Protections that could not be applied; empty in a sandbox that is whole.
    pub missing: Vec<String>,
    /// Processor time of the helper process and of what it waited for, the command and the
    /// processes that this waited for among them; none where the kernel did not say, and where it
    /// was ended before its end.
    pub processor_time: Option<Duration>,
}

impl Output {
    /// Whether it ended with exit code 0.
    pub fn success(&self) -> bool {
        self.end == End::Exited(0)
    }

    /// The last line with a word of standard error, or of standard output when that is empty: what
    /// a person would be told.
    pub fn last_words(&self) -> String {
        last_words(if self.stderr.is_empty() {
            &self.stdout
        } else {
            &self.stderr
        })
    }
}

fn last_words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .rev()
        .find(|line| line.chars().any(char::is_alphanumeric))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Why a command could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum ReexecError {
    /// The child could not be started or talked to.
    #[error("cannot {action} the helper process")]
    Start {
        /// What was tried.
        action: &'static str,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The child failed before the command ran.
    #[error("cannot {stage}: {message}")]
    Stage {
        /// What the child was doing.
        stage: String,
        /// Error of the kernel.
        message: String,
    },
    /// The child ended without a report, or with one that is none.
    #[error("the helper process ended without a report ({0}); does its program know the subcommand?")]
    NoReport(String),
}

impl ReexecError {
    fn start<E: Into<std::io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Start {
            action,
            source: source.into(),
        }
    }
}

/// What a child reports, one JSON object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Report {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Detached,
    /// A tool ended in its sandbox.
    Tool {
        end: ToolEnd,
        missing: Vec<String>,
    },
    Failed {
        stage: String,
        message: String,
    },
}

/// How a sandboxed tool ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum ToolEnd {
    Exited(i32),
    Signaled(i32),
}

impl From<ToolEnd> for End {
    fn from(end: ToolEnd) -> Self {
        match end {
            ToolEnd::Exited(code) => Self::Exited(code),
            ToolEnd::Signaled(signal) => Self::Signaled(signal),
        }
    }
}

impl Report {
    pub(crate) fn failed(stage: &str, error: impl std::fmt::Display) -> Self {
        Self::Failed {
            stage: stage.into(),
            message: error.to_string(),
        }
    }
}

/// Runs a hidden subcommand. `arguments` are the program's own without its name: the subcommand,
/// then one JSON object.
pub fn child_main(arguments: &[OsString]) -> ExitCode {
    child(arguments, None)
}

/// The same of a program that does itself what others have a tool for: what runs in its sandbox is
/// `work`, in a process of this program's. The process that does the work does not return from
/// here.
pub fn child_main_with(arguments: &[OsString], work: Work) -> ExitCode {
    child(arguments, Some(work))
}

fn child(arguments: &[OsString], work: Option<Work>) -> ExitCode {
    let words: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    // The report pipe, moved away from standard input so that a command never sees it.
    let Ok(pipe) = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3) else {
        return ExitCode::FAILURE;
    };
    let report = match words.as_deref() {
        _ if crate::descriptors::close_on_exec().is_err() => Report::failed(
            "close what was inherited",
            "the kernel has no close_range (Linux 5.11 or newer is needed)",
        ),
        Some(["enter", spec]) => enter::child(spec),
        Some(["sandbox", spec]) => match sandbox::child(spec, work) {
            Some(report) => report,
            None => return ExitCode::SUCCESS,
        },
        Some(["sandbox-ahead", frame]) => match sandbox::child_ahead(frame, &pipe) {
            Some(report) => report,
            None => return ExitCode::SUCCESS,
        },
        _ => Report::failed("read the arguments", "not a hidden subcommand and one JSON object"),
    };
    if send(&pipe, &report) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Sends a report; false when nobody listens.
fn send(pipe: &OwnedFd, report: &Report) -> bool {
    let Ok(pipe) = pipe.try_clone() else { return false };
    let Ok(mut line) = serde_json::to_vec(report) else {
        return false;
    };
    line.push(b'\n');
    std::fs::File::from(pipe).write_all(&line).is_ok()
}

/// One of the child's streams.
struct Stream {
    file: std::fs::File,
    kept: Vec<u8>,
    limit: usize,
    truncated: bool,
    open: bool,
}

impl Stream {
    fn new(fd: OwnedFd, limit: usize) -> Result<Self, ReexecError> {
        rustix::io::ioctl_fionbio(&fd, true).map_err(ReexecError::start("listen to"))?;
        Ok(Self {
            file: fd.into(),
            kept: Vec::new(),
            limit,
            truncated: false,
            open: true,
        })
    }

    /// Reads what is there now; what is over the limit is read and dropped, so that a command never
    /// blocks on it.
    fn drain(&mut self) {
        let mut block = [0; 8192];
        // Bounded: a command that writes without end is looked at again after the clock.
        for _ in 0..64 {
            match self.file.read(&mut block) {
                Ok(0) => {
                    self.open = false;
                    return;
                }
                Ok(read) => {
                    let room = self.limit.saturating_sub(self.kept.len());
                    self.truncated |= read > room;
                    self.kept
                        .extend_from_slice(block.get(..read.min(room)).unwrap_or_default());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.open = false;
                    return;
                }
            }
        }
    }
}

/// Starts the child with `spec`, which bounds the command itself; the child is killed when it
/// outstays that by a grace.
pub(crate) fn run(
    reexec: &Reexec,
    subcommand: &str,
    spec: &impl Serialize,
    deadline: Duration,
) -> Result<Output, ReexecError> {
    run_exact(
        reexec,
        subcommand,
        spec,
        deadline + EXIT_GRACE_TIMEOUT,
        None,
        kill_group,
    )
}

/// Starts the child with `spec`, which ends all that it started when it gets SIGTERM, and waits for
/// its end; asks it to end after `deadline`, or when `cancel` can be read or has no writer left.
pub(crate) fn run_asking(
    reexec: &Reexec,
    subcommand: &str,
    spec: &impl Serialize,
    deadline: Duration,
    cancel: Option<BorrowedFd<'_>>,
) -> Result<Output, ReexecError> {
    run_exact(reexec, subcommand, spec, deadline, cancel, ask)
}

/// Starts the child with `frame`, of which it makes ready what it can, and waits for the `order`:
/// what the child is told then, its deadline, and what cancels it. Then does as [`run_asking`]
/// does. None where there is no order: the child is gone. A child that could not be started ahead,
/// or is gone by then, is started once more.
pub(crate) fn run_ordered<O: Serialize>(
    reexec: &Reexec,
    subcommand: &str,
    frame: &impl Serialize,
    order: impl FnOnce() -> Option<(O, Duration, OwnedFd)>,
) -> Result<Option<Output>, ReexecError> {
    let waiting = || -> Result<(Child, UnixStream), ReexecError> {
        let (ours, theirs) = UnixStream::pair().map_err(ReexecError::start("talk to"))?;
        Ok((start(reexec, subcommand, frame, theirs.into())?, ours))
    };
    // What the next attempt meets may be another error.
    let mut ahead = waiting().inspect_err(|error| tracing::warn!(?error, "no helper could be started ahead"));
    let Some((order, deadline, cancel)) = order() else {
        if let Ok((mut child, _)) = ahead {
            // It has started nothing yet.
            kill_group(&mut child);
            child.wait().map_err(ReexecError::start("wait for"))?;
        }
        return Ok(None);
    };
    // One that waited for long may be gone: where memory runs short the kernel ends it first.
    let is_gone = match &mut ahead {
        Ok((child, _)) => matches!(child.try_wait(), Ok(Some(_))),
        Err(_) => true,
    };
    if is_gone {
        ahead = waiting();
    }
    let (child, mut ours) = ahead?;
    let told = serde_json::to_vec(&order)
        .map_err(std::io::Error::from)
        .and_then(|text| ours.write_all(&text))
        .and_then(|()| ours.shutdown(Shutdown::Write));
    if let Err(error) = told {
        // One that has ended says why.
        tracing::debug!(%error, "a helper process does not take its order");
    }
    finish(child, ours.into(), deadline, Some(cancel.as_fd()), ask).map(Some)
}

/// Starts the child with `spec` and waits for its end; `end` ends it after `deadline`, or when
/// `cancel` can be read or has no writer left.
fn run_exact(
    reexec: &Reexec,
    subcommand: &str,
    spec: &impl Serialize,
    deadline: Duration,
    cancel: Option<BorrowedFd<'_>>,
    end: fn(&mut Child),
) -> Result<Output, ReexecError> {
    let (reader, writer) = pipe()?;
    let child = start(reexec, subcommand, spec, writer)?;
    finish(child, reader, deadline, cancel, end)
}

/// Starts the child with `spec`; `channel` is its standard input.
fn start(reexec: &Reexec, subcommand: &str, spec: &impl Serialize, channel: OwnedFd) -> Result<Child, ReexecError> {
    let spec = serde_json::to_string(spec).map_err(ReexecError::start("describe"))?;
    let stdout = match &reexec.stdout {
        Some(stdout) => Stdio::from(
            stdout
                .try_clone()
                .map_err(ReexecError::start("hand its output on from"))?,
        ),
        None => Stdio::piped(),
    };
    let mut command = Command::new(&reexec.program);
    command
        .args(&reexec.arguments)
        .args([subcommand, &spec])
        .env_clear()
        .envs(reexec.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(channel))
        .stdout(stdout)
        .stderr(Stdio::piped());
    // With the command goes its copy of the channel.
    command.spawn().map_err(ReexecError::start("start"))
}

/// Waits for the end of a child that reports to `report`; `end` ends it after `deadline`, or when
/// `cancel` can be read or has no writer left.
fn finish(
    mut child: Child,
    report: OwnedFd,
    deadline: Duration,
    cancel: Option<BorrowedFd<'_>>,
    end: fn(&mut Child),
) -> Result<Output, ReexecError> {
    let watched = watch(&mut child, report, Instant::now() + deadline, cancel);
    let mut processor_time = None;
    if matches!(watched, Ok((_, Watched::Ended))) {
        processor_time = spent(&child);
    } else {
        end(&mut child);
    }
    let status = child.wait().map_err(ReexecError::start("wait for"))?;
    let (streams, how) = watched?;
    let [report, stdout, stderr] = streams;
    let truncated = stdout.truncated || stderr.truncated;
    let text = String::from_utf8_lossy(&report.kept).into_owned();
    let report = text.lines().next_back().map(serde_json::from_str::<Report>);
    let mut missing = Vec::new();
    let end = match report {
        _ if how == Watched::Late => End::TimedOut,
        _ if how == Watched::Cancelled => End::Cancelled,
        Some(Ok(Report::Exited(code))) => End::Exited(code),
        Some(Ok(Report::Signaled(signal))) => End::Signaled(signal),
        Some(Ok(Report::TimedOut)) => End::TimedOut,
        Some(Ok(Report::Detached)) => End::Detached,
        Some(Ok(Report::Tool { end, missing: reply })) => {
            missing = reply;
            end.into()
        }
        Some(Ok(Report::Failed { stage, message })) => return Err(ReexecError::Stage { stage, message }),
        Some(Err(_)) | None => {
            let words = last_words(&stderr.kept);
            let parted = if words.is_empty() { "" } else { ": " };
            return Err(ReexecError::NoReport(format!("{status}{parted}{words}")));
        }
    };
    Ok(Output {
        end,
        stdout: stdout.kept,
        stderr: stderr.kept,
        truncated,
        missing,
        processor_time,
    })
}

fn pipe() -> Result<(OwnedFd, OwnedFd), ReexecError> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(ReexecError::start("listen to"))
}

/// Processor time of a child that has ended and was not waited for: the kernel keeps its account
/// until then.
fn spent(child: &Child) -> Option<Duration> {
    let procfs = Procfs::default();
    let process = procfs.identify(i32::try_from(child.id()).ok()?).ok()?;
    procfs.processor_time(process).ok()
}

/// Why a child is not looked at any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    /// The program ended.
    Ended,
    /// The child's deadline passed.
    Late,
    /// The caller is not interested any more.
    Cancelled,
}

/// Reads the streams until the child ends, its time is over or the caller cancels.
fn watch(
    child: &mut Child,
    report: OwnedFd,
    deadline: Instant,
    cancel: Option<BorrowedFd<'_>>,
) -> Result<([Stream; 3], Watched), ReexecError> {
    let gone = || ReexecError::NoReport("no pipes".into());
    let stdout = match child.stdout.take() {
        Some(stdout) => OwnedFd::from(stdout),
        // It goes elsewhere: this one has no writer, and is at its end.
        None => pipe()?.0,
    };
    let stderr = OwnedFd::from(child.stderr.take().ok_or_else(gone)?);
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or_else(gone)?;
    let pidfd =
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map_err(ReexecError::start("watch"))?;
    let mut streams = [
        Stream::new(report, REPORT_LIMIT)?,
        Stream::new(stdout, OUTPUT_LIMIT)?,
        Stream::new(stderr, OUTPUT_LIMIT)?,
    ];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let (ended, cancelled) = {
            let mut fds = vec![PollFd::new(&pidfd, PollFlags::IN)];
            fds.extend(cancel.map(|cancel| PollFd::from_borrowed_fd(cancel, PollFlags::IN)));
            fds.extend(
                streams
                    .iter()
                    .filter(|stream| stream.open)
                    .map(|stream| PollFd::from_borrowed_fd(stream.file.as_fd(), PollFlags::IN)),
            );
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(source) => return Err(ReexecError::start("watch")(source)),
            }
            let told = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
            (told(0), cancel.is_some() && told(1))
        };
        // After the child's end, what daemons of the command may still write is not waited for.
        for stream in &mut streams {
            if stream.open {
                stream.drain();
            }
        }
        if ended {
            return Ok((streams, Watched::Ended));
        }
        if cancelled {
            return Ok((streams, Watched::Cancelled));
        }
        if Instant::now() >= deadline {
            return Ok((streams, Watched::Late));
        }
    }
}

/// Asks the child to end what it started and then itself; kills its group where it does not.
fn ask(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let asked = pid.and_then(|pid| {
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::TERM).ok()?;
        Some(pidfd)
    });
    let begin = Instant::now();
    while let Some(pidfd) = &asked
        && let Some(left) = EXIT_GRACE_TIMEOUT.checked_sub(begin.elapsed())
    {
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&timeout)), Ok(1..)) {
            return;
        }
    }
    kill_group(child);
}

/// Kills the child and what shares its process group; the child made one of its own.
fn kill_group(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).ok();
    }
    child.kill().ok();
}
