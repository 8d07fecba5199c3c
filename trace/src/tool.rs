//! Profilers' own programs, which alone can open their reports: found, asked for their version, run within bounds.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use regex::bytes::Regex;

use crate::version::Version;

/// Bytes of what a program says that are kept for messages.
const LONGEST_SAYING: u64 = 64 << 10;

/// Bytes of a report that are searched for the version of what wrote it.
const SEARCHED: u64 = 256 << 20;

/// A program that opens reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) program: PathBuf,
    /// As it says itself.
    pub(crate) version: Option<Version>,
}

/// Why a program gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// It could not be started, or its output not be read.
    #[error("it cannot be run: {0}")]
    Start(io::Error),
    /// It did not end in time and was ended.
    #[error("it did not end within {} s", .0.as_secs())]
    Deadline(Duration),
    /// It wrote more than the limit and was ended.
    #[error("it said more than {0} bytes")]
    TooLong(u64),
    /// It failed; what it said.
    #[error("{0}")]
    Failed(String),
}

/// The program that an environment variable names, or else that of this name on the PATH.
pub(crate) fn find(variable: &str, name: &str) -> Option<Tool> {
    let named = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_file());
    let program = named.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    })?;
    let message = run(
        &program,
        &["--version".as_ref()],
        Duration::from_secs(30),
        LONGEST_SAYING,
    )
    .unwrap_or_default();
    let version = version_in(&message);
    Some(Tool { program, version })
}

/// Runs a program; what it wrote to its output.
pub(crate) fn run(
    program: &Path,
    arguments: &[&std::ffi::OsStr],
    deadline: Duration,
    longest: u64,
) -> Result<Vec<u8>, ToolError> {
    let mut command = Command::new(program);
    // Neither our secrets nor our settings concern it.
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let scratch = std::env::temp_dir();
    command
        .envs([("HOME", &scratch), ("TMPDIR", &scratch)])
        .args(arguments)
        .current_dir(&scratch);
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(ToolError::Start)?;
    let output = reader(child.stdout.take(), longest.saturating_add(1));
    let saying = reader(child.stderr.take(), LONGEST_SAYING);
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(ToolError::Start)? {
            Some(status) => break status,
            None if begin.elapsed() >= deadline => {
                end(&mut child);
                return Err(ToolError::Deadline(deadline));
            }
            // A reader that has enough ends, and the program fails to write or waits for it.
            None if output.is_finished() && begin.elapsed() >= Duration::from_secs(1) => {
                let Ok(Some(status)) = wait_a_moment(&mut child) else {
                    end(&mut child);
                    return Err(ToolError::TooLong(longest));
                };
                break status;
            }
            None => pause(),
        }
    };
    let output = output.join().unwrap_or_default();
    let mut saying = saying.join().unwrap_or_default();
    if u64::try_from(output.len()).unwrap_or(u64::MAX) > longest {
        return Err(ToolError::TooLong(longest));
    }
    if !status.success() {
        let tail = output.len().saturating_sub(2048);
        saying.extend_from_slice(output.get(tail..).unwrap_or_default());
        return Err(ToolError::Failed(last_lines(&saying)));
    }
    Ok(output)
}

#[allow(clippy::disallowed_methods, reason = "the crate has no runtime")]
fn pause() {
    thread::sleep(Duration::from_millis(10));
}

fn wait_a_moment(child: &mut Child) -> io::Result<Option<std::process::ExitStatus>> {
    for _ in 0..200 {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        pause();
    }
    Ok(None)
}

fn end(child: &mut Child) {
    // It may have ended by itself meanwhile.
    drop(child.kill());
    drop(child.wait());
}

fn reader<R: Read + Send + 'static>(pipe: Option<R>, longest: u64) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What came before an error is all there is to say.
            drop(pipe.take(longest).read_to_end(&mut bytes));
        }
        bytes
    })
}

/// The end of what a program said, in one line.
fn last_lines(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tail = lines.len().saturating_sub(3);
    let joined = lines.get(tail..).unwrap_or_default().join("; ");
    let (clean, _) = crate::redact::redact(&joined);
    clean.chars().filter(|letter| !letter.is_control()).take(600).collect()
}

/// A version with four numbers, or three.
static VERSION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)\b(20[12][0-9](?:\.[0-9]{1,4}){2,3})(?:-[0-9a-z]| \(build)").ok());

fn version_in(bytes: &[u8]) -> Option<Version> {
    let found = VERSION.as_ref()?.captures(bytes)?.get(1)?;
    Version::parse(&String::from_utf8_lossy(found.as_bytes()))
}

/// The version of the profiler that wrote a report, where the report says it in plain text.
pub(crate) fn report_version(path: &Path) -> Option<Version> {
    let mut file = File::open(path).ok()?.take(SEARCHED);
    let mut window = Vec::new();
    loop {
        let read = Read::by_ref(&mut file).take(1 << 20).read_to_end(&mut window).ok()?;
        if let Some(version) = version_in(&window) {
            return Some(version);
        }
        if read == 0 {
            return None;
        }
        // A version may be cut in two.
        window.drain(..window.len().saturating_sub(64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_and_reports_say() {
        for (text, version) in [
            ("NVIDIA Nsight Systems version 2022.4.2.1-df9881f", Some("2022.4.2.1")),
            (
                "Version 2022.3.0.0 (build 31729285) (public-release)",
                Some("2022.3.0.0"),
            ),
            ("python 2023.1 of 2022-11-30", None),
        ] {
            let found = version_in(text.as_bytes()).map(|version| version.to_string());
            assert_eq!(found.as_deref(), version, "{text}");
        }
    }

    /// Those that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn a_program_is_bounded_in_time_and_output() {
            let shell = Path::new("/bin/sh");
            let message = |script: &str, deadline| run(shell, &["-c".as_ref(), script.as_ref()], deadline, 1000);
            let long = Duration::from_secs(20);
            assert_eq!(message("echo hello", long).unwrap(), b"hello\n");
            assert!(matches!(message("echo no >&2; exit 3", long), Err(ToolError::Failed(why)) if why == "no"));
            assert!(matches!(
                message("sleep 30", Duration::from_millis(100)),
                Err(ToolError::Deadline(_))
            ));
            let endless = message("while echo yes; do :; done", long);
            assert!(
                matches!(endless, Err(ToolError::TooLong(1000) | ToolError::Failed(_))),
                "{endless:?}"
            );
        }
    }
}
