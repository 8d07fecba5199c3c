//! Nsight Compute on this machine: only its own program opens its reports. It runs where the transform does, in the sandbox of a child.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flopwatch_trace::model::Capture;
use flopwatch_trace::ncu::{ReadError, most_bytes, read_report, report_version};
use flopwatch_trace::redact::redact;
use flopwatch_trace::{ReadLimits, Version};

use crate::child::{self, Bounds};

/// Environment variable that names the program, where it is not `ncu` on the PATH.
pub const NCU: &str = "FLOPWATCH_NCU";

/// Longest time for the program to say its version.
const VERSION: Duration = Duration::from_secs(30);
/// Bytes of what it says then.
const VERSION_BYTES: u64 = 64 << 10;
/// Letters of what it says that are repeated.
const LONGEST_REASON: usize = 600;
/// What a page begins with where the program could not open the report; it ends well all the same.
const REFUSAL: &[u8] = b"==ERROR==";

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No program to open it.
    #[error(
        "{path}: a report of Nsight Compute {report}, which only its ncu can open, and there is none: install it, or name it in {NCU}"
    )]
    NoProgram {
        /// The report.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
    },
    /// The installed ncu is too old for it.
    #[error(
        "{path}: written by Nsight Compute {report}, newer than the installed ncu {installed}, which cannot open it: install {report} or \
         later"
    )]
    Newer {
        /// The report.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
        /// Version of the program.
        installed: String,
    },
    /// The program did not open it.
    #[error("{path}: ncu {installed} cannot open this report of version {report}: {reason}")]
    Refused {
        /// The report.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
        /// Version of the program.
        installed: String,
        /// What it said.
        reason: String,
    },
    /// What it wrote cannot be read.
    #[error(transparent)]
    Pages(#[from] ReadError),
}

/// The program that [`NCU`] names, or else the one on the PATH.
pub(crate) fn program() -> Option<PathBuf> {
    let named = std::env::var_os(NCU).map(PathBuf::from);
    named.filter(|program| program.is_file()).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("ncu"))
            .find(|program| program.is_file())
    })
}

/// Reads the report at `path` with the program of this machine.
pub(crate) fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, Error> {
    let report = report_version(path);
    let Some(program) = program() else {
        return Err(Error::NoProgram {
            path: path.to_owned(),
            report: text(report),
        });
    };
    let bounds = Bounds {
        limit: VERSION,
        most_bytes: Some(VERSION_BYTES),
    };
    let message = child::run_here("ncu --version", alone(&program).arg("--version"), &bounds).unwrap_or_default();
    let installed = Version::message(&message.output);
    let bounds = Bounds {
        limit: limits.max_query_time,
        most_bytes: Some(most_bytes(limits)),
    };
    read_report(path, limits, |arguments| {
        let refused = |reason: String| Error::Refused {
            path: path.to_owned(),
            report: text(report),
            installed: text(installed),
            reason: shown(&reason),
        };
        let ran = child::run_here("ncu --import", alone(&program).args(arguments), &bounds);
        match ran {
            Ok(message) if !message.output.starts_with(REFUSAL) => return Ok(message.output),
            Err(child::Error::TooLong { limit, .. }) => {
                return Err(Error::Pages(ReadError::TooMany {
                    path: path.to_owned(),
                    what: "bytes",
                    limit,
                }));
            }
            Err(
                error @ (child::Error::Start { .. } | child::Error::Deadline { .. } | child::Error::GivenUp { .. }),
            ) => {
                return Err(refused(crate::failure::chain(&error)));
            }
            Ok(_) | Err(child::Error::Failed { .. }) => {}
        }
        let newer = installed
            .zip(report)
            .filter(|(installed, report)| installed.is_older_than(*report));
        if newer.is_some() {
            return Err(Error::Newer {
                path: path.to_owned(),
                report: text(report),
                installed: text(installed),
            });
        }
        Err(refused(match ran {
            Ok(message) => {
                String::from_utf8_lossy(message.output.get(..message.output.len().min(300)).unwrap_or_default())
                    .into_owned()
            }
            Err(error) => error.to_string(),
        }))
    })
}

/// The program with neither our secrets nor our settings.
fn alone(program: &Path) -> Command {
    let scratch = std::env::temp_dir();
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([("HOME", &scratch), ("TMPDIR", &scratch)])
        .current_dir(&scratch);
    command
}

/// What the program said, fit for a message.
fn shown(message: &str) -> String {
    let (clean, _) = redact(message);
    clean
        .chars()
        .filter(|letter| !letter.is_control())
        .take(LONGEST_REASON)
        .collect()
}

fn text(version: Option<Version>) -> String {
    version.map_or_else(|| "of unknown version".to_owned(), |version| version.to_string())
}
