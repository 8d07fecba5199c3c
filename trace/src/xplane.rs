//! Reads what JAX, XLA and TensorFlow write: an `XSpace` message (`.xplane.pb`) of planes, lines and events.
//!
//! - Lines of a GPU named `Stream #N` become kernels, copies and memsets. All its other lines (`XLA Ops`, `XLA Modules`, `Steps`,
//!   `Framework Ops`, ...) are derived from those and repeat their time: they become [`Category::Derived`], a row each.
//! - `XLA Ops` and `Async XLA Ops` of an accelerator without streams (TPU) are its operations; its other lines are derived.
//! - Lines of the host are threads: calls with a correlation id, functions of Python (`$file.py:1 f`), steps, annotations.
//! - `MemoryAllocation` and `MemoryDeallocation` also become [`Capture::allocations`].
//! - The line `_counters_` holds samples, which become series.
//! - An aggregated event has a number of occurrences and no start: it is counted as not shown.
//!
//! Times are picoseconds; starts and ends are cut to whole nanoseconds, so that what nests or follows still does.
//! Only names of events, lines and devices, and of the operations and programs that work belongs to, are kept, redacted, and HLO modules
//! as they are, unless something in them looks like a secret. Source stacks and other texts are not.

mod counters;
mod details;
mod fill;
mod memory;
mod modules;
mod plane;
mod program;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::{ReadLimits, read_at_most};
use crate::wire::{Damage, Message};
use fill::Fill;
use flopwatch_model::Capture;
use plane::Plane;

#[cfg(doc)]
use flopwatch_model::Category;

/// Bytes of a message that protocol buffers allow.
const LONGEST: u64 = 2 << 30;

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or may not be read.
    #[error("{path}: cannot be read: {source}")]
    Open {
        /// Path of the XPlane.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is no `XSpace` message.
    #[error("{path}: is no XSpace message (.xplane.pb): {what}")]
    NotASpace {
        /// Path of the XPlane.
        path: PathBuf,
        /// What it lacks.
        what: &'static str,
    },
    /// A message in it is cut off or damaged.
    #[error("{path}: damaged at byte {offset}; was it copied while it was being written?")]
    Damaged {
        /// Path of the XPlane.
        path: PathBuf,
        /// Where, in bytes from its beginning.
        offset: u64,
    },
    /// More bytes, events, rows or strings than the limits allow.
    #[error("{path}: holds more than {limit} {what}; profile a shorter window")]
    TooMany {
        /// Path of the XPlane.
        path: PathBuf,
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

/// Reads the profile at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let open_error = |source| ReadError::Open {
        path: path.to_owned(),
        source,
    };
    let limit = limits.max_text_bytes.min(LONGEST);
    let file = File::open(path).map_err(open_error)?;
    let Some(bytes) = read_at_most(file, limit).map_err(open_error)? else {
        return Err(Failure::TooMany { what: "bytes", limit }.at(path));
    };
    space(&bytes, limits).map_err(|failure| failure.at(path))
}

/// A [`ReadError`] before the path is known.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    NotASpace(&'static str),
    Damaged(usize),
    TooMany { what: &'static str, limit: u64 },
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage.0)
    }
}

impl Failure {
    fn at(self, path: &Path) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::NotASpace(what) => ReadError::NotASpace { path, what },
            Self::Damaged(offset) => ReadError::Damaged {
                path,
                offset: u64::try_from(offset).unwrap_or(u64::MAX),
            },
            Self::TooMany { what, limit } => ReadError::TooMany { path, what, limit },
        }
    }
}

/// `XSpace`: planes 1, errors 2, warnings 3, names of hosts 4.
fn space(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, Failure> {
    if !begins_like_a_space(bytes) {
        return Err(Failure::NotASpace("it does not begin with a plane that has a name"));
    }
    let mut fill = Fill::new(limits);
    for field in (Message { bytes, offset: 0 }).fields() {
        let (number, value) = field?;
        match (number, value.message()) {
            (1, Some(message)) => fill.plane(&Plane::read(message)?)?,
            (2, Some(_)) => fill.message_of_the_profiler("errors of the profiler"),
            (3, Some(_)) => fill.message_of_the_profiler("warnings of the profiler"),
            (4, Some(_)) => {}
            _ => return Err(Failure::NotASpace("it has other fields")),
        }
    }
    Ok(fill.finish())
}

/// Whether the first plane of `bytes`, of which there may be more, has a name as planes have: `/device:GPU:0`, `/host:CPU`.
pub(crate) fn begins_like_a_space(bytes: &[u8]) -> bool {
    // The plane itself may be longer than what is there; its name comes first, behind a number at most.
    let Some((&[0x0a], rest)) = bytes.split_first_chunk::<1>() else {
        return false;
    };
    let length = rest.iter().take(10).take_while(|byte| **byte >= 0x80).count() + 1;
    let inside = rest.get(length..).unwrap_or_default();
    let inside = inside.get(..inside.len().min(256)).unwrap_or_default();
    for field in (Message {
        bytes: inside,
        offset: 0,
    })
    .fields()
    {
        match field {
            Ok((1, _)) => {}
            Ok((2, value)) => {
                let name = value.bytes().unwrap_or_default();
                return name.starts_with(b"/") || name == b"Task Environment";
            }
            _ => return false,
        }
    }
    false
}
