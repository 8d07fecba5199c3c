//! Running other programs: with a deadline, interruptible, and with an error that shows what they
//! said.

use crate::meter;
use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Niceness of work that nobody waits for yet.
const BACKGROUND: u8 = 15;
/// Long enough for anything a recipe runs on two cores (the cold build of the control plane among
/// them).
const RUN_TIMEOUT: Duration = Duration::from_mins(40);
/// Between asking a program to end and making it end.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From here on SIGINT and SIGTERM end the program that runs and let the recipe clean up, instead
/// of ending the recipe.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn catch_interrupts() -> Result<()> {
    let flag = Arc::clone(INTERRUPTED.get_or_init(Arc::default));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot catch signals")?;
    }
    Ok(())
}

/// Whether somebody asked the recipe to end.
pub fn interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Forgets an interrupt that has been acted upon, so that the clean-up's own programs run.
pub fn acknowledge_interrupt() {
    if let Some(flag) = INTERRUPTED.get() {
        flag.store(false, Ordering::Relaxed);
    }
}

/// Waits a moment; recipes have no async runtime.
#[allow(
    clippy::disallowed_methods,
    reason = "recipes are plain threads, there is no runtime to block"
)]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Asks `ready` until it says yes, the deadline passes or the recipe is interrupted.
pub fn wait_until(deadline: Duration, mut ready: impl FnMut() -> Result<bool>) -> Result<bool> {
    let end = Instant::now() + deadline;
    loop {
        if ready()? {
            return Ok(true);
        }
        if interrupted() {
            bail!("interrupted");
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        pause(Duration::from_millis(100));
    }
}

/// The full path of a program on PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A program to run, with the ways a recipe runs one.
#[must_use = "it runs nothing until it is told how"]
pub struct Run {
    command: Command,
    deadline: Duration,
}

impl Run {
    /// A program by its path, or by its name on PATH.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            command: Command::new(program),
            deadline: RUN_TIMEOUT,
        }
    }

    /// Has it let everything else go first, such as tests that run meanwhile. To be said last.
    pub fn patiently(self) -> Self {
        self.behind(BACKGROUND)
    }

    /// Runs it with a niceness of `nice`: what has a lower one goes first. To be said last.
    pub fn behind(self, nice: u8) -> Self {
        let level = nice.to_string();
        let mut nice = Self::new("nice").args(["-n", &level]);
        nice.command
            .arg(self.command.get_program())
            .args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => nice.command.env(name, value),
                None => nice.command.env_remove(name),
            };
        }
        if let Some(folder) = self.command.get_current_dir() {
            nice.command.current_dir(folder);
        }
        nice.deadline(self.deadline)
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of its environment, beside those of this process.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets variables of its environment, beside those of this process.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(mut self, vars: impl IntoIterator<Item = (K, V)>) -> Self {
        self.command.envs(vars);
        self
    }

    /// Does not pass a variable of this process on.
    pub fn without(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// The folder it runs in; that of this process where none is set.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// How long it may run before it is ended; 40 minutes where nothing is said.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs it with the caller's own output.
    pub fn shown(mut self) -> Result<()> {
        let what = self.describe();
        let mut child = self.spawn(Stdio::inherit(), Stdio::inherit())?;
        let status = wait(&mut child, self.deadline).with_context(|| what.clone())?;
        check(status, &what, "")
    }

    /// Runs it quietly; what it said is part of the error when it fails.
    pub fn quiet(self) -> Result<()> {
        self.output().map(drop)
    }

    /// Runs it and returns its standard output; what it said on standard error is part of the error
    /// when it fails.
    pub fn output(self) -> Result<String> {
        self.lines(|_| ())
    }

    /// Runs it, hands over each line of its standard output as it comes, and returns the whole of
    /// it.
    pub fn lines(self, each: impl FnMut(&str)) -> Result<String> {
        self.read(Stdio::piped(), each)
    }

    /// Runs it with the caller's own standard error, and hands over each line of its standard
    /// output as it comes.
    pub fn watched(self, each: impl FnMut(&str)) -> Result<()> {
        self.read(Stdio::inherit(), each).map(drop)
    }

    fn read(mut self, stderr: Stdio, mut each: impl FnMut(&str)) -> Result<String> {
        let what = self.describe();
        let mut child = self.spawn(Stdio::piped(), stderr)?;
        let errors = child.stderr.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // A program's complaint that cannot be read leaves only its exit status to report.
                pipe.read_to_end(&mut bytes)
                    .map_or_else(|_| String::new(), |_| lossy(&bytes))
            })
        });
        let watch = Watch::start(&child, self.deadline);
        let mut output = String::new();
        if let Some(pipe) = child.stdout.take() {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                let text = lossy(&line);
                each(text.trim_end_matches('\n'));
                output.push_str(&text);
                line.clear();
            }
        }
        let status = ended(&mut child).with_context(|| what.clone())?;
        watch.stop(&what)?;
        // What the caller has seen already is not repeated.
        let message = match errors.map(|thread| thread.join().unwrap_or_default()) {
            None => String::new(),
            Some(errors) if errors.trim().is_empty() => output.clone(),
            Some(errors) => errors,
        };
        check(status, &what, &message)?;
        Ok(output)
    }

    /// Runs it with `input` on its standard input; what it said is part of the error when it fails.
    pub fn fed(mut self, input: &str) -> Result<()> {
        let what = self.describe();
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| format!("cannot start {what}"))?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(input.as_bytes()).with_context(|| what.clone())?;
        }
        let output = child.wait_with_output().with_context(|| what.clone())?;
        check(output.status, &what, &lossy(&output.stderr))
    }

    /// Replaces this process by the program, so that a terminal's keys and signals are its own.
    pub fn replace(mut self) -> anyhow::Error {
        let what = self.describe();
        anyhow::Error::from(self.command.exec()).context(format!("cannot start {what}"))
    }

    fn spawn(&mut self, stdout: Stdio, stderr: Stdio) -> Result<Child> {
        let what = self.describe();
        // Its own group: an interrupt then ends it with all that it started.
        self.command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        self.command.spawn().with_context(|| format!("cannot start {what}"))
    }

    /// Program and arguments, for people.
    pub fn describe(&self) -> String {
        let mut words = vec![self.command.get_program().to_string_lossy().into_owned()];
        words.extend(self.command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
        let mut text = words.join(" ");
        if text.len() > 300 {
            let cut = text.floor_char_boundary(300);
            text.truncate(cut);
            text.push_str(" ...");
        }
        text
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn check(status: ExitStatus, what: &str, message: &str) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let message = last_lines(message, 30);
    if message.is_empty() {
        bail!("`{what}`: {status}");
    }
    bail!("`{what}`: {status}\n{message}")
}

/// The last lines of a file; empty when it cannot be read.
pub fn tail(file: &Path, lines: usize) -> String {
    std::fs::read(file).map_or_else(|_| String::new(), |bytes| last_lines(&lossy(&bytes), lines))
}

fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all.get(all.len().saturating_sub(lines)..)
        .unwrap_or_default()
        .join("\n")
}

fn wait(child: &mut Child, deadline: Duration) -> Result<ExitStatus> {
    let watch = Watch::start(child, deadline);
    let status = ended(child)?;
    watch.stop("the program")?;
    Ok(status)
}

/// Waits for a program's end, and counts its processor time.
fn ended(child: &mut Child) -> std::io::Result<ExitStatus> {
    if let Some(time) = meter::processor_of(child.id()) {
        meter::add_processor(time);
    }
    child.wait()
}

/// Ends a program's process group when its deadline passes or the recipe is interrupted.
struct Watch {
    done: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Option<&'static str>>,
}

impl Watch {
    fn start(child: &Child, deadline: Duration) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let group = i32::try_from(child.id()).ok().map(Pid::from_raw);
        let thread = std::thread::spawn(move || {
            let end = Instant::now() + deadline;
            let mut why = None;
            let mut force_at = None;
            while !flag.load(Ordering::Relaxed) {
                if why.is_none() {
                    why = if interrupted() {
                        Some("interrupted")
                    } else if Instant::now() >= end {
                        Some("took too long and was ended")
                    } else {
                        None
                    };
                    if let (Some(_), Some(group)) = (why, group) {
                        // A group that is gone already needs no signal.
                        killpg(group, Signal::SIGTERM).ok();
                        force_at = Some(Instant::now() + TERMINATION_TIMEOUT);
                    }
                } else if force_at.is_some_and(|at| Instant::now() >= at) {
                    if let Some(group) = group {
                        killpg(group, Signal::SIGKILL).ok();
                    }
                    force_at = None;
                }
                pause(POLL_INTERVAL);
            }
            why
        });
        Self { done, thread }
    }

    fn stop(self, what: &str) -> Result<()> {
        self.done.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(Some(why)) => bail!("`{what}`: {why}"),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod crate_tests {
    use super::*;

    #[test]
    fn a_failed_program_shows_what_it_said() {
        let error = Run::new("sh")
            .args(["-c", "echo cause >&2; exit 3"])
            .quiet()
            .unwrap_err()
            .to_string();
        assert!(error.contains("cause") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_it_started() {
        let begin = Instant::now();
        let run = Run::new("sh")
            .args(["-c", "sleep 600 & wait"])
            .deadline(Duration::from_millis(100));
        let error = run.quiet().unwrap_err().to_string();
        assert!(error.contains("took too long"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Run::new("no-such-program-here").quiet().unwrap_err().to_string();
        assert!(error.contains("no-such-program-here"), "{error}");
    }

    #[test]
    fn the_tail_is_the_end() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 5), "a");
        assert_eq!(last_lines("", 5), "");
    }
}
