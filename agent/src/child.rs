//! Runs a program to its end within a deadline and keeps the end of what it said.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

/// Bytes of a program's output that are kept: the end, where errors stand.
const KEEP: usize = 4096;

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("{what} cannot be started")]
    Start {
        /// What the program was to do.
        what: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It ran longer than allowed and was killed.
    #[error("{what} took longer than {limit:?} and was ended")]
    Deadline {
        /// What the program was to do.
        what: String,
        /// Time that the program had.
        limit: Duration,
    },
    /// The program ended with another exit code than 0, or by a signal.
    #[error("{what} failed ({status}): {said}")]
    Failed {
        /// What the program was to do.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        said: String,
    },
}

/// Runs a command; on success returns the end of its output. The program is killed when the deadline passes or the future
/// is dropped.
pub async fn run(what: &str, mut command: Command, limit: Duration) -> Result<String, Error> {
    let what = || what.to_owned();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|source| Error::Start { what: what(), source })?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let finish = async {
        let (status, out, err) = tokio::join!(child.wait(), tail(out), tail(err));
        status.map(|status| (status, out, err))
    };
    let (status, out, err) = timeout(limit, finish)
        .await
        .map_err(|_elapsed| Error::Deadline { what: what(), limit })?
        .map_err(|source| Error::Start { what: what(), source })?;
    let said = [err, out]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    if status.success() {
        Ok(said)
    } else {
        Err(Error::Failed {
            what: what(),
            status,
            said,
        })
    }
}

/// Reads to the end and keeps the last bytes, as one line.
async fn tail(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut kept = Vec::new();
    let mut buffer = vec![0; KEEP];
    while let Ok(read) = stream.read(&mut buffer).await
        && read > 0
    {
        kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let excess = kept.len().saturating_sub(KEEP);
        kept.drain(..excess);
    }
    let text = String::from_utf8_lossy(&kept);
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" | ")
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

    #[tokio::test]
    async fn a_program_that_is_not_there_cannot_be_started() {
        let error = run("the importer", Command::new("/nonexistent"), Duration::from_secs(1))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Start { .. }), "{error}");
    }
}
