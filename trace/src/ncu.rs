//! Reads Nsight Compute: reports (`.ncu-rep`) through the installed `ncu --import --csv`, and such CSV files themselves, of the
//! details page or the raw page.
//!
//! A kernel profiler replays launches one by one, so that there are no times: each launch becomes a
//! [`KernelProfile`](crate::model::KernelProfile). Metrics of the raw page, and those that were asked for by name, keep
//! the profiler's own names (`sm__throughput.avg.pct_of_peak_sustained_elapsed`); those of the details page have the name of
//! their section before them (`GPU Speed Of Light Throughput: DRAM Frequency`), since sections repeat names.
//!
//! Names of processes and hosts are not kept. Results of rules, and values that are no numbers, are counted.

mod table;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::ReadLimits;
use crate::model::Capture;
use crate::tool::{self, Tool, ToolError};
use crate::version::{self, Version};
use table::Profiles;

/// Bytes with which a report begins.
pub(crate) const REPORT: &[u8] = b"NVR\0";

/// Bytes of a CSV file, which is held in memory. Ten thousand launches with a thousand metrics have some 100 MB.
const LONGEST: u64 = 1 << 30;

/// Environment variable that names the program, where it is not `ncu` on the PATH.
pub const NCU: &str = "FLOPWATCH_NCU";

/// Why a report or its CSV cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or may not be read.
    #[error("{path}: cannot be read: {source}")]
    Open {
        /// Path of the report or the page.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is neither a report nor CSV of the details or the raw page.
    #[error("{path}: {what}; make it with `ncu --import REPORT --csv --page raw`, or `--page details`")]
    NotAPage {
        /// Path of the report or the page.
        path: PathBuf,
        /// What it lacks.
        what: &'static str,
    },
    /// A line of it is no CSV.
    #[error("{path}: record {record}: {reason}")]
    Record {
        /// Path of the report or the page.
        path: PathBuf,
        /// Which, counted from 0, the header included.
        record: u64,
        /// What is wrong.
        reason: String,
    },
    /// More bytes, launches, metrics or strings than the limits allow.
    #[error("{path}: holds more than {limit} {what}; profile fewer kernels or fewer metrics")]
    TooMany {
        /// Path of the report or the page.
        path: PathBuf,
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
    /// A report, and no program to open it.
    #[error(
        "{path}: a report of Nsight Compute {report}, which only its ncu can open, and there is none: install it, or name it in {NCU}"
    )]
    NoTool {
        /// Path of the report or the page.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
    },
    /// A report that the installed ncu is too old for.
    #[error(
        "{path}: written by Nsight Compute {report}, newer than the installed ncu {tool}, which cannot open it: install {report} or later"
    )]
    Newer {
        /// Path of the report or the page.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
        /// Version of the program.
        tool: String,
    },
    /// The program did not open the report.
    #[error("{path}: ncu {tool} cannot open this report of version {report}: {reason}")]
    Tool {
        /// Path of the report or the page.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
        /// Version of the program.
        tool: String,
        /// What it said.
        reason: String,
    },
}

/// Reads the report or CSV file at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let open_error = |source| ReadError::Open {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(open_error)?;
    let mut begin = Vec::new();
    Read::by_ref(&mut file)
        .take(4)
        .read_to_end(&mut begin)
        .map_err(open_error)?;
    let mut profiles = Profiles::new(limits);
    if begin == REPORT {
        let report = tool::report_version(path);
        let Some(ncu) = tool::find(NCU, "ncu") else {
            let (path, report) = (path.to_owned(), version::text(report));
            return Err(ReadError::NoTool { path, report });
        };
        for page in ["raw", "details"] {
            let csv = import(path, report, &ncu, page, limits)?;
            profiles.add(&csv).map_err(|failure| failure.at(path))?;
        }
        let report = report.map_or_else(String::new, |version| version.to_string());
        return Ok(profiles.finish(&report));
    }
    let limit = limits.max_text_bytes.min(LONGEST);
    let mut csv = begin;
    file.take(limit).read_to_end(&mut csv).map_err(open_error)?;
    if u64::try_from(csv.len()).unwrap_or(u64::MAX) > limit {
        let path = path.to_owned();
        return Err(ReadError::TooMany {
            path,
            what: "bytes",
            limit,
        });
    }
    profiles.add(&csv).map_err(|failure| failure.at(path))?;
    Ok(profiles.finish(""))
}

/// A page of a report as CSV.
fn import(
    path: &Path,
    report: Option<Version>,
    ncu: &Tool,
    page: &str,
    limits: &ReadLimits,
) -> Result<Vec<u8>, ReadError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let arguments = [
        "--import".as_ref(),
        absolute.as_os_str(),
        "--csv".as_ref(),
        "--page".as_ref(),
        page.as_ref(),
    ];
    let limit = limits.max_text_bytes.min(LONGEST);
    let failure = match tool::run(&ncu.program, &arguments, limits.max_query_time, limit) {
        // It ends well also where it could not load the report.
        Ok(csv) if !csv.starts_with(b"==ERROR==") => return Ok(csv),
        Ok(csv) => {
            ToolError::Failed(String::from_utf8_lossy(csv.get(..csv.len().min(300)).unwrap_or_default()).into_owned())
        }
        Err(failure) => failure,
    };
    let is_newer = ncu
        .version
        .zip(report)
        .is_some_and(|(tool, report)| tool.is_older_than(report));
    let (path, tool, report) = (path.to_owned(), version::text(ncu.version), version::text(report));
    let reason = match failure {
        ToolError::TooLong(limit) => {
            return Err(ReadError::TooMany {
                path,
                what: "bytes",
                limit,
            });
        }
        ToolError::Failed(_) if is_newer => return Err(ReadError::Newer { path, report, tool }),
        other => other.to_string(),
    };
    Err(ReadError::Tool {
        path,
        report,
        tool,
        reason,
    })
}

/// A [`ReadError`] before the path is known.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    NotAPage(&'static str),
    Record { record: u64, reason: String },
    TooMany { what: &'static str, limit: u64 },
}

impl Failure {
    fn at(self, path: &Path) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::NotAPage(what) => ReadError::NotAPage { path, what },
            Self::Record { record, reason } => ReadError::Record { path, record, reason },
            Self::TooMany { what, limit } => ReadError::TooMany { path, what, limit },
        }
    }
}

/// Where the header of CSV that ncu wrote begins: behind lines in which it says what it does.
pub(crate) fn header(text: &[u8]) -> Option<usize> {
    const HEADER: &[u8] = b"\"ID\",";
    if text.starts_with(HEADER) {
        return Some(0);
    }
    memchr::memmem::find(text, b"\n\"ID\",").map(|newline| newline + 1)
}
