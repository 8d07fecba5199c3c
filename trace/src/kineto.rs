//! Reads Chrome traces as PyTorch's Kineto writes them (`.json`, `.json.gz`), archives of several of them (`.tar`), and those that converters of other captures write.
//!
//! The category names of 2021 and of today are known, times may be absolute or relative to `baseTimeNanoseconds`, ids may be
//! texts. A trace is read event by event, on all cores, in memory that its size does not decide; a damaged event is repaired
//! or left out and counted, and a file that ends too early gives what it has.
//!
//! Only strings that an event refers to are kept, redacted: names of events, of processes and of threads, shapes and types of
//! inputs, and what collectives say of themselves. Call stacks, concrete inputs, `traceName` and other members of the file are not.
//!
//! GPU work names its device where calls name their process: of several processes in one trace, what
//! else the trace says tells whose the work is, which is told among the capture's losses
//! ([`LossReason::Inferred`](flopwatch_model::LossReason::Inferred)). A trace that our own writer made comes
//! back as the capture that it was made of.
//!
//! Kineto gives the sum of static and dynamic shared memory; it stands in the column of the dynamic one. What
//! allocators of memory say becomes [`Capture::allocations`]; how much is in use by then, and counters, become series.

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
mod guide;
mod input;
mod json;
mod numbered;
mod own;
mod owners;
mod pairs;
mod part;
mod ranges;
mod rows;
mod series;
mod split;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::ReadLimits;
pub(crate) use archive::begins_like_an_archive;
pub use archive::{LOSSES, read_archive};
use flopwatch_model::{Capture, MergeError};
use gather::Gather;
use input::Input;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or may not be read.
    #[error("{path}: cannot be read: {source}")]
    Open {
        /// Path of the trace.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is no JSON, nor gzip of it.
    #[error(
        "{path}: is no JSON at byte {offset} of its text; a trace is an object with `traceEvents` or a list of events"
    )]
    NotJson {
        /// Path of the trace.
        path: PathBuf,
        /// Where, in the inflated text.
        offset: u64,
    },
    /// It is JSON, but there is no list of events in it.
    #[error("{path}: holds no list `traceEvents`: no Chrome trace, or one that ends before its events")]
    NoEvents {
        /// Path of the trace.
        path: PathBuf,
    },
    /// It is an archive of several traces that have no clock in common.
    #[error("{path}: {source}")]
    Merge {
        /// Path of the archive.
        path: PathBuf,
        /// What they lack.
        source: MergeError,
    },
    /// It is an archive of traces in which nothing happened.
    #[error(
        "{path}: none of its {processes} traces holds an event: their processes did nothing in the window that PyTorch records"
    )]
    Idle {
        /// Path of the archive.
        path: PathBuf,
        /// How many processes there are.
        processes: u64,
    },
    /// A member beside the events is longer than one may be.
    #[error("{path}: the member at byte {offset} is longer than {limit} bytes")]
    Member {
        /// Path of the trace.
        path: PathBuf,
        /// Where, in the inflated text.
        offset: u64,
        /// Limit that was passed.
        limit: u64,
    },
    /// The inflated text is longer than the limits allow.
    #[error("{path}: holds more than {limit} bytes of text; record fewer steps, or without stacks and shapes")]
    TooLong {
        /// Path of the trace.
        path: PathBuf,
        /// Limit that was passed.
        limit: u64,
    },
    /// More events, rows or strings than the limits allow.
    #[error("{path}: holds more than {limit} {what}; record fewer steps")]
    TooMany {
        /// Path of the trace.
        path: PathBuf,
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

/// Reads the trace at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (length, file) = opened.map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    read_text(file, length, path, limits)
}

/// Reads a trace of `length` bytes, of which `path` is the name in messages.
fn read_text(
    file: impl Read + Send + 'static,
    length: u64,
    path: &Path,
    limits: &ReadLimits,
) -> Result<Capture, ReadError> {
    let mut input = Input::open(file, length, limits.max_text_bytes).map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    let mut gather = Gather::new(limits);
    let read = document::read(&mut input, &mut gather, limits.max_chunk_bytes).and_then(|()| gather.finish());
    read.map_err(|failure| failure.at(path, limits))
}

/// A [`ReadError`] before the path is known.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    NotJson { offset: u64 },
    NoEvents,
    Member { offset: u64 },
    TooLong,
    TooMany { what: &'static str, limit: u64 },
}

impl Failure {
    fn at(self, path: &Path, limits: &ReadLimits) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::NotJson { offset } => ReadError::NotJson { path, offset },
            Self::NoEvents => ReadError::NoEvents { path },
            Self::Member { offset } => ReadError::Member {
                path,
                offset,
                limit: limits.max_chunk_bytes,
            },
            Self::TooLong => ReadError::TooLong {
                path,
                limit: limits.max_text_bytes,
            },
            Self::TooMany { what, limit } => ReadError::TooMany { path, what, limit },
        }
    }
}
