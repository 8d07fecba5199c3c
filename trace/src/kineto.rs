//! Reads Chrome traces as PyTorch's Kineto writes them (`.json`, `.json.gz`), archives of several
//! of them (`.tar`), and those that converters of other captures write.
//!
//! The category names of 2021 and of today are known, times may be absolute or relative to
//! `baseTimeNanoseconds`, ids may be texts. A trace is read event by event, on all cores, in memory
//! that its size does not decide; a damaged event is repaired or left out and counted, and a file
//! that ends too early gives what it has.
//!
//! Only strings that an event refers to are kept, redacted: names of events, of processes and of
//! threads, shapes and types of inputs, and what collectives say of themselves. Call stacks,
//! concrete inputs, `traceName` and other members of the file are not.
//!
//! GPU work names its device where calls name their process: of several processes in one trace,
//! what else the trace says tells whose the work is, which is told among the capture's losses
//! ([`LossReason::Inferred`](flopwatch_model::LossReason::Inferred)). A trace that our own writer
//! made comes back as the capture that it was made of.
//!
//! Kineto gives the sum of static and dynamic shared memory; it stands in the column of the dynamic
//! one. What allocators of memory say becomes [`Capture::allocations`]; how much is in use by then,
//! and counters, become series.

mod archive;
mod batch;
mod columns;
mod copies;
mod decimal;
mod dictionary;
mod document;
mod event;
mod finish;
mod gather;
mod input;
mod interner;
mod json;
mod key_predictor;
mod owners;
mod pairs;
mod part;
mod ranges;
mod rows;
mod series;
mod split;
mod writer_metadata;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::in_file::InFile;
use crate::limits::ReadLimits;
pub(crate) use archive::begins_like_an_archive;
pub use archive::{LOSSES, read_archive};
use flopwatch_model::{Capture, MergeError};
use gather::Gather;
use input::Input;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[from] io::Error),
    /// The file is neither JSON nor gzip of JSON.
    #[error("is no JSON at byte {offset} of its text; a trace is an object with `traceEvents` or a list of events")]
    NotJson {
        /// Where, in the inflated text.
        offset: u64,
    },
    /// The JSON holds no list of events.
    #[error("holds no list `traceEvents`: no Chrome trace, or one that ends before its events")]
    NoEvents,
    /// The archive holds several traces that have no clock in common.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The archive holds traces in which nothing happened.
    #[error(
        "none of its {processes} traces holds an event: their processes did nothing in the window that PyTorch records"
    )]
    Idle {
        /// How many processes there are.
        processes: u64,
    },
    /// A member beside the events is longer than one may be.
    #[error("the member at byte {offset} is longer than {limit} bytes")]
    Member {
        /// Where, in the inflated text.
        offset: u64,
        /// Limit that was passed.
        limit: u64,
    },
    /// The inflated text is longer than the limits allow.
    #[error("holds more than {limit} bytes of text; record fewer steps, or without stacks and shapes")]
    TooLong {
        /// Limit that was passed.
        limit: u64,
    },
    /// More events, rows or strings than the limits allow.
    #[error("holds more than {limit} {what}; record fewer steps")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

/// A [`Failure`] with the path of the trace.
pub type ReadError = InFile<Failure>;

/// Reads the trace at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    read_text(file, length, limits)
}

/// Reads a trace of `length` bytes.
fn read_text(file: impl Read + Send + 'static, length: u64, limits: &ReadLimits) -> Result<Capture, Failure> {
    let mut input = Input::open(file, length, limits.max_text_bytes)?;
    let mut gather = Gather::new(limits);
    document::read(&mut input, &mut gather, limits.max_chunk_bytes)?;
    gather.finish()
}
