//! Runs a program to its end, within a deadline: the one way in which this program waits for
//! another outside of a sandbox of its own. The profilers' own commands around a session run so,
//! and DCGM's.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a program's output that are kept for messages: the end, where errors stand.
const MAX_OUTPUT_BYTES: usize = 4096;
/// Between two looks whether a program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started.
    #[error("{what} cannot be started")]
    Start {
        /// What the program was to do.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The program ran longer than allowed and was killed.
    #[error("{what} took longer than {limit:?} and was ended")]
    Deadline {
        /// What the program was to do.
        what: String,
        /// Time that the program had.
        limit: Duration,
    },
    /// Nobody waits for it any more, and it was killed.
    #[error("{what} was interrupted")]
    GivenUp {
        /// What the program was to do.
        what: String,
    },
    /// The program ended with another exit code than 0, or by a signal.
    #[error("{what} failed ({status}): {message}")]
    Failed {
        /// What the program was to do.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        message: String,
    },
}

/// Runs a command; on success returns the end of its output as one line. The program is killed when
/// the deadline passes or the future is dropped.
pub async fn run(what: &str, mut command: Command, limit: Duration) -> Result<String, Error> {
    let given_up = GivenUp(Arc::default());
    let flag = Arc::clone(&given_up.0);
    let name = what.to_owned();
    let ran = tokio::task::spawn_blocking(move || run_until(&name, &mut command, limit, &flag)).await;
    ran.unwrap_or_else(|error| {
        Err(Error::Start {
            what: what.to_owned(),
            source: io::Error::other(error),
        })
    })
}

/// Set when whoever waits is dropped.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a command on this thread; on success returns the end of its output as one line.
pub fn run_here(what: &str, command: &mut Command, limit: Duration) -> Result<String, Error> {
    run_until(what, command, limit, &AtomicBool::new(false))
}

fn run_until(what: &str, command: &mut Command, limit: Duration, given_up: &AtomicBool) -> Result<String, Error> {
    let what = || what.to_owned();
    let started = |source| Error::Start { what: what(), source };
    let begin = Instant::now();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Running(command.spawn().map_err(started)?);
    // Errors first.
    let streams = [reader(child.0.stderr.take()), reader(child.0.stdout.take())];
    let mut said: [Option<Vec<u8>>; 2] = [None, None];
    let mut ended = None;
    while ended.is_none() || said.contains(&None) {
        if given_up.load(Ordering::Relaxed) {
            return Err(Error::GivenUp { what: what() });
        }
        let Some(left) = limit.checked_sub(begin.elapsed()) else {
            return Err(Error::Deadline { what: what(), limit });
        };
        if ended.is_none() {
            ended = child.0.try_wait().map_err(started)?;
        }
        for (stream, said) in streams.iter().zip(&mut said) {
            if said.is_none() {
                *said = stream.recv_timeout(POLL_INTERVAL.min(left)).ok();
            }
        }
        if ended.is_none() && !said.contains(&None) {
            pause(POLL_INTERVAL.min(left));
        }
    }
    let message = last_words(&said);
    match ended {
        Some(status) if !status.success() => Err(Error::Failed {
            what: what(),
            status,
            message,
        }),
        _ => Ok(message),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "this thread waits for the program and does nothing else"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}

/// A program that is ended with whoever waits for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself meanwhile.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Reads a stream on a thread of its own, and keeps its end.
fn reader(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (told, read) = sync_channel(1);
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut stream) = stream {
            end_of(&mut stream, &mut kept);
        }
        // Nobody listens any more where it came too late.
        told.send(kept).ok();
    });
    read
}

/// Reads to the end and keeps the last bytes.
fn end_of(stream: &mut impl Read, kept: &mut Vec<u8>) {
    let mut buffer = vec![0; MAX_OUTPUT_BYTES];
    while let Ok(read) = stream.read(&mut buffer)
        && read > 0
    {
        kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
        kept.drain(..kept.len().saturating_sub(MAX_OUTPUT_BYTES));
    }
}

/// What a program said, as one line.
fn last_words(said: &[Option<Vec<u8>>]) -> String {
    let lines = said.iter().flatten().map(|bytes| one_line(bytes));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" | ")
}

#[cfg(test)]
mod crate_tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn a_failure_carries_the_end_of_the_output() {
        let error = run(
            "the importer",
            shell("yes | head -5000; echo broken >&2; exit 3"),
            Duration::from_secs(20),
        )
        .await;
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("the importer failed (exit status: 3): broken"),
            "{text}"
        );
        assert!(text.len() < 10_000);
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_at_its_deadline() {
        let error = run("the importer", shell("sleep 600"), Duration::from_millis(50))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
    }

    #[test]
    fn a_program_is_bounded_in_time_however_much_it_says() {
        let message = |script: &str, limit| run_here("the reader", &mut shell(script), limit);
        let (long, short) = (Duration::from_secs(20), Duration::from_millis(100));
        assert_eq!(message("echo hello; echo no >&2", long).unwrap(), "no; hello");
        assert!(matches!(message("echo no >&2; exit 3", long), Err(Error::Failed { message, .. }) if message == "no"));
        for endless in ["sleep 30", "while echo yes; do :; done"] {
            let ended = message(endless, short);
            assert!(matches!(ended, Err(Error::Deadline { .. })), "{ended:?}");
        }
    }

    #[test]
    fn what_a_program_leaves_behind_with_its_output_does_not_outlast_the_deadline() {
        let limit = Duration::from_millis(300);
        let begin = Instant::now();
        let left = run_here("the importer", &mut shell("sleep 5 & exit 0"), limit);
        assert!(matches!(left, Err(Error::Deadline { .. })), "{left:?}");
        assert!(begin.elapsed() < Duration::from_secs(4));
    }

    #[tokio::test]
    async fn a_program_is_ended_when_nobody_waits_for_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let script = format!("sleep 1; touch {}", file.display());
        let waiting = run("the importer", shell(&script), Duration::from_secs(20));
        assert!(tokio::time::timeout(Duration::from_millis(100), waiting).await.is_err());
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_cannot_be_started() {
        let error = run("the importer", Command::new("/nonexistent"), Duration::from_secs(1))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Start { .. }), "{error}");
    }
}
