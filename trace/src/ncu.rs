//! Reads Nsight Compute: what `ncu --import --csv` writes of a report, of the details page or the raw page, as a file or while a report
//! (`.ncu-rep`) is read. Only ncu itself opens reports, and whoever reads one runs it: see [`read_report`].
//!
//! A kernel profiler replays launches one by one, so that there are no times: each launch becomes a
//! [`KernelProfile`](crate::model::KernelProfile). Metrics of the raw page, and those that were asked for by name, keep
//! the profiler's own names (`sm__throughput.avg.pct_of_peak_sustained_elapsed`); those of the details page have the name of
//! their section before them (`GPU Speed Of Light Throughput: DRAM Frequency`), since sections repeat names.
//!
//! Names of processes and hosts are not kept. Results of rules, and values that are no numbers, are counted.

mod table;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::ReadLimits;
use crate::model::Capture;
use crate::version::{self, Version};
use table::Profiles;

/// Bytes with which a report begins.
pub(crate) const REPORT: &[u8] = b"NVR\0";

/// Bytes of a CSV file, which is held in memory. Ten thousand launches with a thousand metrics have some 100 MB.
const LONGEST: u64 = 1 << 30;

/// The pages that are read of a report.
const PAGES: [&str; 2] = ["raw", "details"];

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
    /// A report, which this crate does not open.
    #[error(
        "{path}: a report of Nsight Compute {report}, which only its ncu can open: run `ncu --import REPORT --csv --page raw` of {report} \
         or later, or give it to `flopwatch-agent convert`"
    )]
    Report {
        /// Path of the report.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
    },
}

/// Reads the CSV file at `path`.
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
    if begin == REPORT {
        return Err(ReadError::Report {
            path: path.to_owned(),
            report: version::text(report_version(path)),
        });
    }
    let mut profiles = Profiles::new(limits);
    let limit = most_bytes(limits);
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

/// Reads the report at `path`. `import` gives the CSV that ncu writes when it is run with the arguments that it gets.
///
/// ```no_run
/// use flopwatch_trace::{ReadLimits, ncu};
/// use std::{io, path::Path, process::Command};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let capture = ncu::read_report(Path::new("kernels.ncu-rep"), &ReadLimits::default(), |arguments| {
///     let written = Command::new("ncu").args(arguments).output()?;
///     Ok::<_, Box<dyn std::error::Error>>(written.stdout)
/// })?;
/// # drop(capture);
/// # Ok(())
/// # }
/// ```
pub fn read_report<E: From<ReadError>>(
    path: &Path,
    limits: &ReadLimits,
    mut import: impl FnMut(Vec<OsString>) -> Result<Vec<u8>, E>,
) -> Result<Capture, E> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut profiles = Profiles::new(limits);
    for page in PAGES {
        let arguments = [
            "--import".into(),
            absolute.clone().into(),
            "--csv".into(),
            "--page".into(),
            page.into(),
        ];
        let csv = import(arguments.into())?;
        profiles.add(&csv).map_err(|failure| failure.at(path))?;
    }
    let report = report_version(path).map_or_else(String::new, |version| version.to_string());
    Ok(profiles.finish(&report))
}

/// The version that wrote the report at `path`, where it says so.
pub fn report_version(path: &Path) -> Option<Version> {
    Version::written_in(path)
}

/// Bytes of the CSV of one page that these limits allow.
pub fn most_bytes(limits: &ReadLimits) -> u64 {
    limits.max_text_bytes.min(LONGEST)
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
