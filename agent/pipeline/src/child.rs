//! Runs a program to its end, within a deadline: the one way in which this program waits for
//! another outside of a sandbox of its own. The profilers' own commands around a session run so,
//! and DCGM's.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Bytes of a program's output that are kept for messages: the end, where errors stand.
const MAX_OUTPUT_BYTES: usize = 4096;

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
pub async fn run(what: &str, command: Command, limit: Duration) -> Result<String, Error> {
    let what = || what.to_owned();
    let started = |source| Error::Start { what: what(), source };
    let mut command = tokio::process::Command::from(command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(started)?;
    let (errors, output) = (child.stderr.take(), child.stdout.take());
    let ended = timeout(limit, async {
        tokio::join!(end_of(errors), end_of(output), child.wait())
    });
    let Ok((errors, output, status)) = ended.await else {
        // Awaited, so that nothing of it is left. It may have ended by itself meanwhile.
        child.kill().await.ok();
        return Err(Error::Deadline { what: what(), limit });
    };
    let status = status.map_err(started)?;
    // Errors first.
    let message = last_words(&[errors, output]);
    if status.success() {
        return Ok(message);
    }
    Err(Error::Failed {
        what: what(),
        status,
        message,
    })
}

/// Runs a command for a caller that blocks, on a thread of its own; on success returns the end of
/// its output as one line.
pub fn run_here(what: &str, command: Command, limit: Duration) -> Result<String, Error> {
    let failed = |source| Error::Start {
        what: what.to_owned(),
        source,
    };
    let work = || {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        runtime.block_on(run(what, command, limit))
    };
    let ended = thread::scope(|scope| scope.spawn(work).join());
    ended.unwrap_or_else(|_panic| Err(failed(io::Error::other("the thread that waits for it ended early"))))
}

/// Reads to the end and keeps the last bytes.
async fn end_of(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else {
        return kept;
    };
    let mut buffer = vec![0; MAX_OUTPUT_BYTES];
    while let Ok(read) = stream.read(&mut buffer).await
        && read > 0
    {
        kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
        kept.drain(..kept.len().saturating_sub(MAX_OUTPUT_BYTES));
    }
    kept
}

/// What a program said, as one line.
fn last_words(said: &[Vec<u8>]) -> String {
    let lines = said.iter().map(|bytes| one_line(bytes));
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
    use std::time::Instant;

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
        let message = |script: &str, limit| run_here("the reader", shell(script), limit);
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
        let left = run_here("the importer", shell("sleep 5 & exit 0"), limit);
        assert!(matches!(left, Err(Error::Deadline { .. })), "{left:?}");
        assert!(begin.elapsed() < Duration::from_secs(4));
    }

    #[tokio::test]
    async fn a_program_is_ended_when_nobody_waits_for_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let script = format!("sleep 1; touch {}", file.display());
        let waiting = run("the importer", shell(&script), Duration::from_secs(20));
        assert!(timeout(Duration::from_millis(100), waiting).await.is_err());
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
