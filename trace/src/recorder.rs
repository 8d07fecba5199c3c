//! Reads the flight recorder's file (`docs/recorder.md`): the last NVTX ranges of every process of
//! a container, from outside, while they are written, after a process was killed and after the
//! container's end.
//!
//! Whoever writes to the file is not trusted: every place, length and number is checked, no loop is
//! longer than the file, and what makes no sense is left out and counted. The file is read and not
//! mapped, since another may cut it at any time.

mod clock;
mod fill;
mod heartbeat;
mod names;
mod ranges;
mod segments;

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use flopwatch_ring::header::{BYTES_AT, MONOTONIC_AT, REALTIME_AT, TICKS_ARE_TSC_AT, TICKS_AT, VERSION_AT};
use flopwatch_ring::{HEADER_BYTES, Layout, MAGIC, MAX_BYTES, VERSION, segment};

use crate::in_file::InFile;
use crate::limits::{ReadLimits, read_at_most};
use clock::Anchor;
use fill::Fill;
use flopwatch_model::{Capture, count};

pub use heartbeat::{Extent, Heartbeat, NamedRanges};

/// Why a recorder's file cannot be read or copied.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[source] io::Error),
    /// A copy of the file cannot be written.
    #[error("cannot be copied: {0}")]
    Copy(#[source] io::Error),
    /// The file is none of a flight recorder, or not one of this version.
    #[error("is no file of a flight recorder that is read here: {0}")]
    NotARing(&'static str),
    /// The file has more bytes, events, threads or strings than the limits allow.
    #[error("holds more than {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

/// A [`Failure`] with the path of the file.
pub type ReadError = InFile<Failure>;

/// First bytes of every file.
pub(crate) const RING_MAGIC: &[u8] = &MAGIC;

/// Reads the file at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let ring = Ring::open(path, limits).map_err(ReadError::at(path))?;
    Fill::new(limits).ring(&ring).map_err(ReadError::at(path))
}

/// Reads of the file at `path` what ran in a window, in ns since the Unix epoch. A range that began
/// before it is cut at its begin, and one that ended after it at its end; both are counted.
pub fn read_between(path: &Path, limits: &ReadLimits, window: Range<u64>) -> Result<Capture, ReadError> {
    let ring = Ring::open(path, limits).map_err(ReadError::at(path))?;
    let fill = Fill::new(limits).between(window);
    fill.ring(&ring).map_err(ReadError::at(path))
}

/// Copies the file of a flight recorder while programs write to it: what comes of it reads as
/// `from` does now. Events of segments that were overwritten meanwhile are counted as not whole.
/// Returns the bytes.
pub fn snapshot(from: &File, to: &mut File, limits: &ReadLimits) -> Result<u64, Failure> {
    let mut ring = Ring::of_file(from, limits)?;
    for (at, claim) in ring.claims.iter().enumerate() {
        let tail = ring.layout.segment(at).and_then(|begin| ring.bytes.get_mut(begin..));
        // Slots of the claim that is no more do not match the new one.
        if let Some(own) = tail.and_then(|segment| segment.first_chunk_mut::<8>()) {
            *own = claim.to_le_bytes();
        }
    }
    to.write_all(&ring.bytes).map_err(Failure::Copy)?;
    Ok(count(ring.bytes.len()))
}

/// Push/pop ranges of each name that have ended since the file was made, whether or not it still
/// holds them: what a program did, without its timeline.
pub fn counts(path: &Path) -> Result<Vec<NamedRanges>, ReadError> {
    let counted = || {
        let file = File::open(path).map_err(Failure::Open)?;
        Heartbeat::open(&file)?.read(&file, Extent::Whole)
    };
    counted().map_err(ReadError::at(path))
}

/// A file as it was read: all of it, then its open segments and the claims of all once more.
struct Ring {
    bytes: Vec<u8>,
    layout: Layout,
    /// Whether ticks are of a counter, whose pace must be found.
    ticks_are_tsc: bool,
    /// When it was made.
    made: Anchor,
    /// Claims after the rest was read; shorter than the segments where the file ends early.
    claims: Vec<u64>,
}

impl Ring {
    fn open(path: &Path, limits: &ReadLimits) -> Result<Self, Failure> {
        let file = File::open(path).map_err(Failure::Open)?;
        Self::of_file(&file, limits)
    }

    fn of_file(mut file: &File, limits: &ReadLimits) -> Result<Self, Failure> {
        // One that is held open may have been read before.
        file.rewind().map_err(Failure::Open)?;
        let limit = limits.max_text_bytes.min(u64::try_from(MAX_BYTES).unwrap_or(u64::MAX));
        let bytes = read_at_most(file, limit).map_err(Failure::Open)?;
        let bytes = bytes.ok_or(Failure::TooMany { what: "bytes", limit })?;
        let mut ring = Self::of(bytes)?;
        ring.settle(file);
        for at in 0..ring.layout.segments {
            let mut claim = [0; 8];
            let Some(offset) = ring.layout.segment(at).and_then(|offset| u64::try_from(offset).ok()) else {
                break;
            };
            // What the file no longer has was not read twice.
            if file.read_exact_at(&mut claim, offset).is_err() {
                break;
            }
            ring.claims.push(u64::from_le_bytes(claim));
        }
        Ok(ring)
    }

    fn of(bytes: Vec<u8>) -> Result<Self, Failure> {
        let header = header(&bytes)?;
        Ok(Self {
            layout: header.layout,
            ticks_are_tsc: header.ticks_are_tsc,
            made: header.made,
            bytes,
            claims: Vec::new(),
        })
    }

    /// Reads the segments once more that threads write to.
    fn settle(&mut self, file: &File) {
        let mut later = vec![0; segment::BYTES];
        for at in 0..self.layout.segments {
            let Some(begin) = self.layout.segment(at) else { return };
            let own = self
                .bytes
                .get_mut(begin..)
                .and_then(|rest| rest.get_mut(..segment::BYTES));
            let (Some(own), Ok(offset)) = (own, u64::try_from(begin)) else {
                return;
            };
            if segments::is_open(own) && file.read_exact_at(&mut later, offset).is_ok() {
                segments::settle(own, &later);
            }
        }
    }

    /// The bytes of the segment at `at`; `None` where the file ends before it does.
    fn segment(&self, at: usize) -> Option<&[u8]> {
        let begin = self.layout.segment(at)?;
        self.bytes.get(begin..)?.get(..segment::BYTES)
    }
}

/// What a file's header says of the rest.
struct Header {
    layout: Layout,
    ticks_are_tsc: bool,
    made: Anchor,
}

/// The header of a file that begins with these bytes.
fn header(bytes: &[u8]) -> Result<Header, Failure> {
    if !bytes.starts_with(RING_MAGIC) {
        return Err(Failure::NotARing("it does not begin like one"));
    }
    if bytes.len() < HEADER_BYTES {
        return Err(Failure::NotARing("it ends within its header"));
    }
    if half(bytes, VERSION_AT) != VERSION {
        return Err(Failure::NotARing("its version is another one"));
    }
    let length = usize::try_from(word(bytes, BYTES_AT)).ok();
    let layout = length
        .and_then(Layout::of)
        .ok_or(Failure::NotARing("it says a length that no file has"))?;
    Ok(Header {
        layout,
        ticks_are_tsc: half(bytes, TICKS_ARE_TSC_AT) == 1,
        made: Anchor {
            ticks: word(bytes, TICKS_AT),
            monotonic_ns: word(bytes, MONOTONIC_AT),
            realtime_ns: word(bytes, REALTIME_AT),
        },
    })
}

/// The number of 64 bits at a place; 0 behind the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The number of 32 bits at a place; 0 behind the end.
fn half(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
