//! Reads profiles in the format of pprof (`profile.proto`), plain or gzip: what
//! `jax.profiler.save_device_memory_profile` writes, and profiles of any other kind that programs
//! write so, such as Go's of its heap or of the CPU.
//!
//! Samples have no time: they become [`Capture::stacks`]. All kinds of values are kept, and the
//! labels (`kind`, `device`). Of a location with several lines the first is the innermost, a
//! function that was made part of the next. A location without a line is named by its address. Only
//! texts that a frame, a label or a kind refers to are kept, redacted; mappings of programs and
//! comments are not.

mod table;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::gzip::{self, Members};
use crate::in_file::InFile;
use crate::limits::{ReadLimits, read_at_most};
use crate::wire::{Damage, Message};
use flopwatch_model::{Capture, StackProfile, count};
use table::Table;

/// Bytes of a message that is read: those of large servers have some 10 MB.
const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[from] io::Error),
    /// The file holds no profile.
    #[error("is no profile in the format of pprof: {0}")]
    NotAProfile(&'static str),
    /// A message in it, or its gzip, is cut off or damaged, at so many bytes from the begin of the
    /// profile, inflated.
    #[error("damaged at byte {0} of the profile, inflated where it is gzip")]
    Damaged(usize),
    /// Something in the profile refers to what the profile does not hold.
    #[error("damaged: a {0} is referred to that is not there; was it copied while it was being written?")]
    Missing(&'static str),
    /// More bytes, samples, frames or strings than the limits allow.
    #[error("holds more than {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
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

/// Reads the profile at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let limit = limits.max_text_bytes.min(MAX_MESSAGE_BYTES);
    let too_long = || Failure::TooMany { what: "bytes", limit };
    let mut bytes = read_at_most(File::open(path)?, limit)?.ok_or_else(too_long)?;
    if bytes.starts_with(gzip::MAGIC) {
        let mut inflated = Vec::new();
        let read = Members::new(bytes.as_slice())
            .take(limit.saturating_add(1))
            .read_to_end(&mut inflated);
        if count(inflated.len()) > limit {
            return Err(too_long());
        }
        if read.is_err() {
            return Err(Failure::Damaged(inflated.len()));
        }
        bytes = inflated;
    }
    profile(&bytes, limits)
}

fn profile(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, Failure> {
    let table = Table::read(Message { bytes, offset: 0 }, limits)?;
    let mut capture = Capture::default();
    "pprof".clone_into(&mut capture.source.tool);
    let stacks: StackProfile = table.profile(limits, &mut capture.redactions)?;
    capture.session_start_utc_ns = stacks.taken_utc_ns;
    capture.stacks = Some(stacks);
    Ok(capture)
}

/// Whether `bytes`, of which there may be more, are the begin of a profile: a kind of values and a
/// unit, then fields that a profile has.
pub(crate) fn begins_like_a_profile(bytes: &[u8]) -> bool {
    let mut known = 0;
    for field in (Message { bytes, offset: 0 }).fields() {
        let Ok((number, value)) = field else {
            // The begin of a file may end inside of a field.
            break;
        };
        let fits = match number {
            1 | 11 => value.message().is_some_and(is_a_kind),
            2..=5 => known > 0 && value.message().is_some(),
            6 => value.message().is_some(),
            7..=10 | 12 | 14 | 15 => value.number().is_some(),
            13 => value.number().is_some() || value.message().is_some(),
            _ => false,
        };
        if !fits {
            return false;
        }
        known += u32::from(number == 1);
        if known > 0 && number == 2 {
            return true;
        }
    }
    known > 0
}

/// `ValueType`: the numbers of two texts, at least the first of which says something.
fn is_a_kind(message: Message<'_>) -> bool {
    let mut names = 0;
    for field in message.fields() {
        match field {
            Ok((1 | 2, value)) if value.number().is_some_and(|text| text < 1 << 20) => names += 1,
            _ => return false,
        }
    }
    names > 0
}
