//! Reads profiles of JAX, XLA and TensorFlow: an `XSpace` message (`.xplane.pb`) of planes, lines
//! and events.
//!
//! - Lines of a GPU named `Stream #N` become kernels, copies and memsets. All its other lines
//!   (`XLA Ops`, `XLA Modules`, `Steps`, `Framework Ops`, ...) are derived from those and repeat
//!   their time: they become [`Category::Derived`], a row each.
//! - `XLA Ops` and `Async XLA Ops` of an accelerator without streams (TPU) are its operations; its
//!   other lines are derived.
//! - Lines of the host are threads: calls with a correlation id, functions of Python
//!   (`$file.py:1 f`), steps, annotations.
//! - `MemoryAllocation` and `MemoryDeallocation` also become [`Capture::allocations`].
//! - The line `_counters_` holds samples, which become series.
//! - An aggregated event has a number of occurrences and no start: it is counted as not shown.
//!
//! Times are picoseconds; starts and ends are cut to whole nanoseconds, so that what nests or
//! follows still does. Only names of events, lines and devices, and of the operations and programs
//! that work belongs to, are kept, redacted, and HLO modules as they are, unless something in them
//! looks like a secret. Source stacks and other texts are not.

mod counters;
mod details;
mod fill;
mod memory;
mod modules;
mod plane;
mod program;

use std::fs::File;
use std::io;
use std::path::Path;

use crate::in_file::InFile;
use crate::limits::{ReadLimits, read_at_most};
use crate::wire::{Damage, Message};
use fill::Fill;
use flopwatch_model::Capture;
use plane::Plane;

#[cfg(doc)]
use flopwatch_model::Category;

/// Maximum size of a profile in bytes, which is what protocol buffers allow for one message.
const MAX_MESSAGE_BYTES: u64 = 2 << 30;

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[from] io::Error),
    /// The file is no `XSpace` message; the text says which part is missing.
    #[error("is no XSpace message (.xplane.pb): {0}")]
    NotASpace(&'static str),
    /// A message in the profile is cut off or damaged, at this offset in bytes from the start of
    /// the file.
    #[error("damaged at byte {0}; was it copied while it was being written?")]
    Damaged(usize),
    /// More bytes, events, rows or strings than the limits allow.
    #[error("holds more than {limit} {what}; profile a shorter window")]
    TooMany {
        /// What there is too much of, as `events`.
        what: &'static str,
        /// The limit that was exceeded.
        limit: u64,
    },
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage.0)
    }
}

/// A [`Failure`] with the path of the profile.
pub type ReadError = InFile<Failure>;

/// Reads the profile at `path` into a capture. Fails where the file cannot be opened, is no
/// profile, is damaged, or exceeds `limits`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let limit = limits.max_text_bytes.min(MAX_MESSAGE_BYTES);
    let bytes = read_at_most(File::open(path)?, limit)?;
    space(&bytes.ok_or(Failure::TooMany { what: "bytes", limit })?, limits)
}

/// Reads an `XSpace` message, whose fields are: planes 1, errors 2, warnings 3, names of hosts 4.
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

/// Whether `bytes`, the start of a file, begin an `XSpace` message: its first plane must have a
/// name like `/device:GPU:0` or `/host:CPU`.
pub(crate) fn begins_like_a_space(bytes: &[u8]) -> bool {
    // The plane itself may be longer than what is there; its name comes first, behind a number at
    // most.
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
