//! Reads the CUDA tracer's file (`flopwatch_tracer_file`) from outside, while programs write it:
//! kernels, copies, memsets, waits, graphs and calls of every process of a container, on one axis
//! of real time.
//!
//! [`read`] takes what the file holds now. A window that is longer than the file is
//! [opened](Tracing::open) and [drained](Tracing::drain) while it runs, or [`Drain`] keeps its
//! records in a drained file, which [`read`] takes too. Whoever writes to the file is not trusted:
//! its own crate checks every number, and what is kept is bounded here.
//!
//! Each process has a clock of CUPTI's. A process's times are moved by one distance, that of its
//! first moment that is seen: durations, and what comes before what within a process, stay as CUPTI
//! has them.

mod columns;
mod drain;
mod external;
mod fill;
mod names;
mod places;
mod refusal;
mod segment;
mod tally;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use flopwatch_model::Capture;
use flopwatch_tracer_file::header::IDENTITY_BYTES;
use flopwatch_tracer_file::process::SLOTS;
use flopwatch_tracer_file::{Layout, Losses, ReadError as FileError, Reader, Seen, Source};

use crate::in_file::InFile;
use crate::limits::ReadLimits;
use fill::Fill;

pub use drain::Drain;
pub use flopwatch_tracer_file::Drained;
pub use refusal::{lasts, why_not};
pub use tally::{LatestKernel, Tally};

/// Why a tracer's file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there, or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[source] io::Error),
    /// The file ends before it did: somebody cut it while it was read.
    #[error("was cut while it was read; record again, with a file that nothing else writes to")]
    Cut,
    /// What is drained of the file cannot be written.
    #[error("what is drained of it cannot be written: {0}")]
    Write(#[source] io::Error),
    /// The file is none of a tracer, or not one of this version.
    #[error("is no file of a CUDA tracer that is read here")]
    NotATrace,
    /// The file has more events, rows, names or strings than the limits allow.
    #[error("holds more than {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

impl From<FileError<io::Error>> for Failure {
    fn from(error: FileError<io::Error>) -> Self {
        match error {
            FileError::Source(error) => Self::of_read(error),
            FileError::NotATracerFile | FileError::TooFewSeen => Self::NotATrace,
        }
    }
}

impl Failure {
    /// Why a part of a file was not read that its length has.
    fn of_read(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Cut,
            _ => Self::Open(error),
        }
    }
}

/// A [`Failure`] with the path of the file.
pub type ReadError = InFile<Failure>;

/// First bytes of every file.
pub(crate) const TRACE_MAGIC: &[u8] = &flopwatch_tracer_file::MAGIC;
/// First bytes of every drained file.
pub(crate) const DRAINED_MAGIC: &[u8] = &flopwatch_tracer_file::DRAINED_MAGIC;

/// Reads what the file at `path` holds.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let whole = || {
        let mut tracing = Tracing::open(path, limits)?;
        tracing.drain()?;
        tracing.finish(None)
    };
    whole().map_err(ReadError::at(path))
}

/// Reads of the file at `path` what ran in a window, in ns since the Unix epoch. An event that
/// began before it is cut at its begin, and one that ended after it at its end; both are counted.
pub fn read_between(path: &Path, limits: &ReadLimits, window: Range<u64>) -> Result<Capture, ReadError> {
    let part = || {
        let mut tracing = Tracing::open(path, limits)?;
        tracing.drain()?;
        tracing.finish(Some(window))
    };
    part().map_err(ReadError::at(path))
}

/// A file that is drained while programs write it. What was drained stays in memory, as columns of
/// events, until [`finish`](Self::finish).
pub struct Tracing {
    file: FileBytes,
    reader: Reader<Vec<Seen>>,
    fill: Fill,
}

impl Tracing {
    /// Opens a file from the oldest record on that it holds.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is none of a tracer.
    pub fn open(path: &Path, limits: &ReadLimits) -> Result<Self, Failure> {
        let mut file = FileBytes::new(File::open(path).map_err(Failure::Open)?);
        let reader = file.reader()?;
        Ok(Self {
            file,
            reader,
            fill: Fill::new(*limits),
        })
    }

    /// Takes what was written since the last time. To be called so often that a file never goes
    /// round between two calls; what it did is counted.
    ///
    /// # Errors
    ///
    /// When the file cannot be read any more, or holds more than the limits allow.
    pub fn drain(&mut self) -> Result<Drained, Failure> {
        let fill = &mut self.fill;
        let drained = self
            .reader
            .drain(&mut self.file, |origin, record| fill.add(&origin, &record))?;
        self.fill.count_nonsense(drained.nonsense);
        self.fill.check()?;
        Ok(drained)
    }

    /// The capture of all that was drained, or of what ran in a window, in ns since the Unix epoch.
    ///
    /// # Errors
    ///
    /// When the file cannot be read any more, or its strings are more than the limits allow.
    pub fn finish(mut self, window: Option<Range<u64>>) -> Result<Capture, Failure> {
        let mut losses: Vec<Losses> = Vec::new();
        for slot in 0..SLOTS {
            losses.extend(self.reader.losses(&mut self.file, slot)?);
        }
        self.fill.leave_out(self.reader.left_out(&mut self.file)?);
        let is_over = self.reader.is_drained();
        for one in &losses {
            self.fill.lose(one, losses.len() > 1, is_over);
        }
        let (reader, file) = (&self.reader, &mut self.file);
        let mut text = Box::new([0; flopwatch_tracer_file::name::MAX_NAME_BYTES]);
        self.fill.finish(window, |number, use_it| {
            let name = reader.name(file, number, &mut text)?;
            use_it(name);
            Ok(())
        })
    }
}

/// A file that is read by its descriptor, and not mapped: another may cut it at any time, and who
/// reads a page that is gone is killed.
#[derive(Debug)]
pub struct FileBytes(File);

impl FileBytes {
    /// Of an open file.
    pub const fn new(file: File) -> Self {
        Self(file)
    }

    /// A reader from the oldest record on that the file holds.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is none of a tracer.
    pub fn reader(&mut self) -> Result<Reader<Vec<Seen>>, Failure> {
        let length = self.0.metadata().map_err(Failure::Open)?.len();
        if length < u64::try_from(IDENTITY_BYTES).unwrap_or(u64::MAX) {
            return Err(Failure::NotATrace);
        }
        let mut begin = [0; IDENTITY_BYTES];
        self.read(0, &mut begin).map_err(Failure::of_read)?;
        let layout = Layout::of_file(&begin, length).ok_or(Failure::NotATrace)?;
        Ok(Reader::new(self, vec![Seen::default(); layout.segments])?)
    }
}

impl Source for FileBytes {
    type Error = io::Error;

    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<(), io::Error> {
        self.0.read_exact_at(into, u64::try_from(at).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
