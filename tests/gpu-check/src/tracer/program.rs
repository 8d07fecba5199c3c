//! A program that does what it is told, line by line: the bundle's own, or one with PyTorch.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::until::Until;
use crate::graft::program::pause;

/// How a program says that it cannot run here.
const UNAVAILABLE: &str = "unavailable ";
/// How a program says that the driver refused something.
const FAILED: &str = "failed ";
/// Lines that a program may be ahead of who reads them.
const MAX_LINES: usize = 64;
/// How long a killed program may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A running program; one that is still there when it is dropped is killed.
pub(super) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: PathBuf,
}

/// What a program answered to its first line.
pub(super) enum Begun {
    /// CUDA is ready, in the version that the program says.
    Ready(u32),
    /// It cannot run here.
    Unavailable(String),
}

impl Program {
    /// Starts it; what it says on standard error goes into a file of `folder`.
    pub(super) fn start(mut command: Command, folder: &Path) -> Result<Self> {
        let errors = folder.join("stderr");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let output = child.stdout.take().context("the program has no output")?;
        let (said, lines) = sync_channel(MAX_LINES);
        std::thread::spawn(move || {
            // It ends with the program's output, or with who listens.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            input: child.stdin.take(),
            child,
            lines,
            errors,
        })
    }

    /// Has CUDA begin in it.
    pub(super) fn begin(&mut self, until: Until) -> Result<Begun> {
        self.tell("init")?;
        let line = self.line(until)?;
        if let Some(reason) = line.strip_prefix(UNAVAILABLE) {
            return Ok(Begun::Unavailable(reason.to_owned()));
        }
        let version = numbers(&line, "ready")?.first().copied().unwrap_or(0);
        Ok(Begun::Ready(u32::try_from(version)?))
    }

    /// As [`begin`](Self::begin), where it has begun in another process before.
    pub(super) fn must_begin(&mut self, until: Until) -> Result<()> {
        match self.begin(until)? {
            Begun::Ready(_) => Ok(()),
            Begun::Unavailable(reason) => bail!("CUDA begins no more: {reason}"),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has a line done, without waiting.
    pub(super) fn tell(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("the program's input is closed")?;
        writeln!(input, "{line}").with_context(|| format!("the program takes no more: {line}"))
    }

    /// The next line that it says.
    pub(super) fn line(&mut self, until: Until) -> Result<String> {
        loop {
            if let Some(line) = self.said(until)? {
                return Ok(line);
            }
        }
    }

    /// The next line where there is one within a moment.
    pub(super) fn said(&mut self, until: Until) -> Result<Option<String>> {
        let Some(left) = until.left() else {
            bail!("the program took too long to answer");
        };
        match self.lines.recv_timeout(left.min(POLL_INTERVAL)) {
            Ok(line) if line.starts_with(FAILED) => bail!("the program says: {line}"),
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.ended(until)?;
                bail!("the program ended with {status}: {}", self.last_words())
            }
        }
    }

    /// Has a line done; the numbers of its answer, which begins with `word`.
    pub(super) fn ask(&mut self, line: &str, word: &str, until: Until) -> Result<Vec<u64>> {
        self.tell(line)?;
        numbers(&self.line(until)?, word)
    }

    /// Has kernels launched, or a graph; how many kernels the GPU says it ran.
    pub(super) fn counted(&mut self, line: &str, word: &str, until: Until) -> Result<u64> {
        let answer = self.ask(line, word, until)?;
        answer.get(1).copied().with_context(|| format!("{line}: no count"))
    }

    /// Has the program launch for so many ms; ns per launch.
    pub(super) fn pace(&mut self, line: &str, until: Until) -> Result<u64> {
        ns_per_launch(&self.ask(line, "paced", until)?)
    }

    /// Bytes of the GPU's memory that nobody has.
    pub(super) fn free_bytes(&mut self, until: Until) -> Result<u64> {
        let answer = self.ask("free", "free", until)?;
        answer.first().copied().context("the program knows of no memory")
    }

    /// Ends it with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("the program cannot be killed")
    }

    /// How it ended, once it has.
    pub(super) fn ended(&mut self, until: Until) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            until.check("the end of the program")?;
            pause(POLL_INTERVAL);
        }
    }

    /// Closes its input, and waits for its end.
    pub(super) fn end(mut self, until: Until) -> Result<ExitStatus> {
        drop(self.input.take());
        self.ended(until)
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.errors).unwrap_or_default();
        text.lines().last().unwrap_or_default().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended cannot be killed; one that the driver holds back is left behind.
        self.child.kill().ok();
        self.ended(Until::after(END_TIMEOUT)).ok();
    }
}

/// The numbers behind an answer's first word.
fn numbers(answer: &str, word: &str) -> Result<Vec<u64>> {
    let mut words = answer.split(' ');
    if words.next() != Some(word) {
        bail!("the program answered {answer:?} in the place of {word}");
    }
    let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
    numbers.with_context(|| format!("the program answered {answer:?}"))
}

/// Of launches and the ns that they took together.
pub(super) fn ns_per_launch(answer: &[u64]) -> Result<u64> {
    match answer {
        [launches, ns] if *launches > 0 => Ok(ns / launches),
        _ => bail!("the program launched nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_word_and_numbers() {
        assert_eq!(numbers("launched 50 49", "launched").unwrap(), [50, 49]);
        assert!(numbers("launched 50 x", "launched").is_err());
        assert!(numbers("copied 50", "launched").is_err());
        assert_eq!(ns_per_launch(&[1000, 2_500_000]).unwrap(), 2500);
        assert!(ns_per_launch(&[0, 5]).is_err());
    }

    #[test]
    fn a_program_that_says_nothing_or_ends_is_an_error_and_no_wait_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Program::start(command, folder.path()).unwrap()
        };
        let until = || Until::after(Duration::from_millis(200));
        let error = shell("read line; exec sleep 5")
            .ask("init", "ready", until())
            .unwrap_err();
        assert!(error.to_string().contains("took too long"), "{error:#}");
        let error = shell("read line; echo broken >&2; exit 5").ask("init", "ready", Until::after(END_TIMEOUT));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("exit status: 5") && error.contains("broken"), "{error}");
        let error = shell("read line; echo failed cuInit 100").ask("init", "ready", Until::after(END_TIMEOUT));
        assert!(error.unwrap_err().to_string().contains("failed cuInit 100"));
    }
}
