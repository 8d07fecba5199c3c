//! Reads Nsight Compute: reports (`.ncu-rep`), without Nsight Compute, and what
//! `ncu --import --csv` writes of the details page or the raw page.
//!
//! A kernel profiler replays launches one by one, so that there are no times: each launch becomes a
//! [`KernelProfile`](flopwatch_model::KernelProfile). Metrics of the raw page, and those that were
//! asked for by name, keep the profiler's own names
//! (`sm__throughput.avg.pct_of_peak_sustained_elapsed`); those of the details page have the name of
//! their section before them (`GPU Speed Of Light Throughput: DRAM Frequency`), since sections
//! repeat names.
//!
//! Messages of NVIDIA's rules are kept. Names of processes and hosts are not; values that are no
//! numbers are counted.

mod report;
mod table;
mod unit;

use std::fs::File;
use std::io;
use std::path::Path;

use crate::in_file::InFile;
use crate::limits::{ReadLimits, read_at_most};
use crate::version::Version;
use crate::wire::Damage;
use flopwatch_model::Capture;
use table::Profiles;

/// Bytes with which a report begins.
pub(crate) const REPORT: &[u8] = b"NVR\0";

/// Bytes of a CSV file, which is held in memory. Ten thousand launches with a thousand metrics have
/// some 100 MB.
const MAX_CSV_BYTES: u64 = 1 << 30;

/// Why a report or its CSV cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[from] io::Error),
    /// It is neither a report nor CSV of the details or the raw page.
    #[error("{0}; make it with `ncu --import REPORT --csv --page raw`, or `--page details`")]
    NotAPage(&'static str),
    /// A line of it is no CSV.
    #[error("record {record}: {reason}")]
    Record {
        /// Which, counted from 0, the header included.
        record: u64,
        /// What is wrong.
        reason: String,
    },
    /// More bytes, launches, metrics or strings than the limits allow.
    #[error("holds more than {limit} {what}; profile fewer kernels or fewer metrics")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
    /// A report is damaged, at so many bytes from its beginning.
    #[error("a report of Nsight Compute that is damaged at byte {0}")]
    Damaged(usize),
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage.0)
    }
}

/// A [`Failure`] with the path of the report or the page.
pub type ReadError = InFile<Failure>;

/// Reads the report or the CSV file at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let limit = limits.max_text_bytes.min(MAX_CSV_BYTES);
    let bytes = read_at_most(File::open(path)?, limit)?;
    let bytes = bytes.ok_or(Failure::TooMany { what: "bytes", limit })?;
    let mut profiles = Profiles::new(limits);
    let mut version = None;
    if bytes.starts_with(REPORT) {
        version = Version::message(&bytes);
        report::read(&bytes, limits, &mut profiles)?;
    } else {
        profiles.add(&bytes)?;
    }
    Ok(profiles.finish(&version.map_or_else(String::new, |version| version.to_string())))
}

/// Where the header of CSV that ncu wrote begins: behind lines in which it says what it does.
pub(crate) fn header(text: &[u8]) -> Option<usize> {
    const HEADER: &[u8] = b"\"ID\",";
    if text.starts_with(HEADER) {
        return Some(0);
    }
    memchr::memmem::find(text, b"\n\"ID\",").map(|newline| newline + 1)
}
