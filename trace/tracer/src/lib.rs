//! The file of the CUDA tracer, which its library (`flopwatch-tracer`) writes in the programs of a
//! container and its readers read from outside, while it is written. The crate does no I/O,
//! depends on no library, and has no unsafe code.
//!
//! A file has five parts, one after the other:
//!
//! | part | module | size |
//! |---|---|---|
//! | header, with what the agent wants | [`header`], [`wanted`] | [`HEADER_BYTES`] |
//! | slots of processes | [`process`] | 256 of 512 bytes |
//! | table of names | [`name`] | an entry of 16 bytes for each 1,024 bytes of the file |
//! | heap of names | [`name`] | a sixteenth of the file |
//! | segments of records, claimed in turn | [`segment`], [`slot`], [`record`] | 64 KiB each |
//!
//! Invariants:
//!
//! - All numbers are little-endian, all offsets named `*_AT` are bytes from the part's start.
//! - The layout follows from the file's length alone ([`Layout::of`]).
//! - A file has 1 MiB to 1 GiB ([`LEAST_BYTES`], [`MAX_BYTES`]), 64 MiB by default.
//! - A slot's tag is written last: a slot whose tag is of the segment's claim is whole.
//! - A segment that another process of the container writes to is never taken from it, so what a
//!   program was killed over stays readable until the file has gone round.
//!
//! A [`Reader`] drains the file again and again. The file therefore bounds how far a reader may be
//! behind, and no window. What was drained is kept in a drained file, which has the same parts
//! ([`DRAINED_MAGIC`], [`Layout::drained`]): as many segments as were filled, in the turns 0, 1 and
//! so on, all closed. The same [`Reader`] reads it.
//!
//! # Example: a kernel is written and drained
//!
//! Process 77 has slot 0 and claims the first segment in turn 0. It writes a kernel as two slots:
//! the shape, and the kernel behind it. The reader asks for bytes through [`Source`], here of a
//! vector.
//!
//! ```
//! use flopwatch_tracer_file::process::{self, Count};
//! use flopwatch_tracer_file::record::{Kernel, KernelRun, Record};
//! use flopwatch_tracer_file::segment::{self, State};
//! use flopwatch_tracer_file::{LEAST_BYTES, Layout, Reader, Seen, Source, header, slot};
//!
//! struct Bytes(Vec<u8>);
//!
//! impl Source for Bytes {
//!     type Error = std::io::Error;
//!
//!     fn read(&mut self, at: usize, into: &mut [u8]) -> Result<(), Self::Error> {
//!         let part = self.0.get(at..).and_then(|rest| rest.get(..into.len()));
//!         into.copy_from_slice(part.ok_or(std::io::ErrorKind::UnexpectedEof)?);
//!         Ok(())
//!     }
//! }
//!
//! let layout = Layout::of(LEAST_BYTES).ok_or("no such file")?;
//! let mut file = Bytes(vec![0; layout.bytes]);
//! let mut put = |at: usize, bytes: &[u8]| file.0[at..at + bytes.len()].copy_from_slice(bytes);
//! put(0, &header::identity(layout.bytes as u64));
//!
//! // The process, in the first claim of slot 0.
//! let own = layout.process(0).ok_or("no slot")?;
//! put(own + process::PID_AT, &77_u32.to_le_bytes());
//! put(own + Count::Records.at(), &1_u64.to_le_bytes());
//! put(own + process::CLAIM_AT, &process::claim(1, process::USED).to_le_bytes());
//!
//! // The segment of turn 0, and the kernel in it.
//! let begin = layout.segment(0).ok_or("no segment")?;
//! let number = segment::number_of_turn(0);
//! put(header::CURSOR_AT, &1_u64.to_le_bytes());
//! put(begin + segment::SERIAL_AT, &1_u32.to_le_bytes());
//! put(begin + segment::PID_AT, &77_u32.to_le_bytes());
//! put(begin + segment::CLAIM_AT, &segment::claim(number, State::Open).to_le_bytes());
//! let run = KernelRun { start_ns: 1_000, end_ns: 1_500, correlation: 3, ..KernelRun::default() };
//! let kernel = Record::Kernel(Kernel { run, ..Kernel::default() });
//! let (shape, last) = kernel.slots();
//! for (place, (kind, body)) in shape.into_iter().chain([last]).enumerate() {
//!     let at = begin + segment::SLOTS_AT + place * slot::BYTES;
//!     put(at, &body);
//!     put(at + slot::TAG_AT, &slot::tag(number, kind).to_le_bytes());
//! }
//!
//! let mut reader = Reader::new(&mut file, vec![Seen::default(); layout.segments])?;
//! let mut found = Vec::new();
//! reader.drain(&mut file, |origin, record| found.push((origin.pid, record)))?;
//! assert_eq!(found, [(77, kernel)]);
//! // Nothing new, and nothing lost.
//! reader.drain(&mut file, |_, _| unreachable!())?;
//! assert_eq!(reader.losses(&mut file, 0)?.map(|losses| losses.overwritten), Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]

mod bytes;
mod clock;
pub mod header;
pub mod name;
pub mod process;
mod reader;
pub mod record;
pub mod segment;
pub mod slot;
pub mod wanted;

pub use clock::Moment;
pub use reader::{Drained, Losses, Name, Origin, ReadError, Reader, Seen, Source};

/// The first 8 bytes of every file.
pub const MAGIC: [u8; 8] = *b"FLPWCUDA";
/// The first 8 bytes of every drained file.
pub const DRAINED_MAGIC: [u8; 8] = *b"FLPWCUDR";
/// Version of this layout; a reader refuses any other.
pub const VERSION: u32 = 1;
/// Size of the header in bytes.
pub const HEADER_BYTES: usize = 4096;
/// Default size of a file in bytes: 64 MiB.
pub const DEFAULT_BYTES: usize = 64 << 20;
/// Minimum size of a file in bytes: 1 MiB.
pub const LEAST_BYTES: usize = 1 << 20;
/// Maximum size of a file in bytes: 1 GiB.
pub const MAX_BYTES: usize = 1 << 30;
/// Most segments of a drained file: 64 GiB.
pub const MAX_DRAINED_SEGMENTS: usize = 1 << 20;

/// Offsets and sizes of the parts of a file, which follow from its length alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Length of the file in bytes; of a drained file, that of the one which was drained.
    pub bytes: usize,
    /// Number of entries in the table of names, a power of two.
    pub names: usize,
    /// Offset of the heap of names in bytes.
    pub heap_at: usize,
    /// Bytes of the heap of names.
    pub heap_bytes: usize,
    /// Offset of the first segment in bytes.
    pub segments_at: usize,
    /// Number of segments.
    pub segments: usize,
}

/// Offset of the table of names in bytes.
pub const NAMES_AT: usize = HEADER_BYTES + process::SLOTS * process::BYTES;

impl Layout {
    /// The layout of a file of `bytes` bytes; `None` where that is no length of a file: no power
    /// of two, or outside of [`LEAST_BYTES`] to [`MAX_BYTES`].
    pub const fn of(bytes: usize) -> Option<Self> {
        if bytes < LEAST_BYTES || bytes > MAX_BYTES || !bytes.is_power_of_two() {
            return None;
        }
        let names = if bytes / 1024 > name::MAX_ENTRIES {
            name::MAX_ENTRIES
        } else {
            bytes / 1024
        };
        let heap_at = NAMES_AT + names * name::BYTES;
        let heap_bytes = bytes / 16;
        let segments_at = heap_at + heap_bytes;
        Some(Self {
            bytes,
            names,
            heap_at,
            heap_bytes,
            segments_at,
            segments: (bytes - segments_at) / segment::BYTES,
        })
    }

    /// The layout of a drained file: that of the file of `bytes` bytes which was drained, with so
    /// many segments; `None` where there is no such file, or beyond [`MAX_DRAINED_SEGMENTS`].
    pub const fn drained(bytes: usize, segments: usize) -> Option<Self> {
        match Self::of(bytes) {
            Some(layout) if segments <= MAX_DRAINED_SEGMENTS => Some(Self { segments, ..layout }),
            _ => None,
        }
    }

    /// The layout of a file of `length` bytes that begins so; `None` where it is neither a tracer's
    /// file nor a drained one, is of another version, or has another length than its begin says.
    pub fn of_file(begin: &[u8; header::IDENTITY_BYTES], length: u64) -> Option<Self> {
        let kind = header::FileKind::of(begin)?;
        let layout = Self::of(kind.bytes())?;
        let length = usize::try_from(length).ok()?;
        match kind {
            header::FileKind::Live { bytes } => (length == bytes).then_some(layout),
            header::FileKind::Drained { bytes } => {
                let segments = length.checked_sub(layout.segments_at)?;
                Self::drained(bytes, segments / segment::BYTES)
            }
        }
    }

    /// Offset in bytes of the slot of a process; `None` where there are fewer slots.
    pub const fn process(&self, at: usize) -> Option<usize> {
        if at < process::SLOTS {
            Some(HEADER_BYTES + at * process::BYTES)
        } else {
            None
        }
    }

    /// Offset in bytes of the entry of the table of names with index `at`; `None` where there are
    /// fewer entries.
    pub const fn name(&self, at: usize) -> Option<usize> {
        if at < self.names {
            Some(NAMES_AT + at * name::BYTES)
        } else {
            None
        }
    }

    /// Offset in bytes of the segment with index `at`; `None` where there are fewer segments.
    pub const fn segment(&self, at: usize) -> Option<usize> {
        if at < self.segments {
            Some(self.segments_at + at * segment::BYTES)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_every_file_follow_each_other_and_fit_it() {
        let mut bytes = LEAST_BYTES;
        while bytes <= MAX_BYTES {
            let layout = Layout::of(bytes).unwrap();
            assert!(layout.names.is_power_of_two() && layout.names <= name::MAX_ENTRIES);
            assert_eq!(layout.segments_at % 64, 0);
            assert!(layout.segments >= 8, "{layout:?}");
            assert!(layout.segments_at + layout.segments * segment::BYTES <= bytes);
            assert_eq!(layout.segment(layout.segments), None);
            assert_eq!(layout.name(layout.names), None);
            assert_eq!(layout.process(process::SLOTS), None);
            assert_eq!(layout.process(255).unwrap() + process::BYTES, NAMES_AT);
            bytes *= 2;
        }
    }

    #[test]
    fn a_drained_file_has_the_parts_of_the_other_and_the_segments_of_its_own_length() {
        let live = Layout::of(LEAST_BYTES).unwrap();
        let length = |segments: usize| u64::try_from(live.segments_at + segments * segment::BYTES).unwrap();
        let bytes = u64::try_from(LEAST_BYTES).unwrap();
        let drained = header::drained_identity(bytes);
        for segments in [0, 1, 1000, MAX_DRAINED_SEGMENTS] {
            let layout = Layout::of_file(&drained, length(segments)).unwrap();
            assert_eq!(layout, Layout { segments, ..live });
        }
        assert_eq!(Layout::of_file(&drained, length(MAX_DRAINED_SEGMENTS + 1)), None);
        assert_eq!(Layout::of_file(&drained, length(0) - 1), None);
        assert_eq!(Layout::of_file(&header::identity(bytes), bytes), Some(live));
        assert_eq!(Layout::of_file(&header::identity(bytes), bytes * 2), None);
        assert_eq!(Layout::of_file(&header::identity(bytes + 1), bytes + 1), None);
        assert_eq!(Layout::of_file(&[0; header::IDENTITY_BYTES], bytes), None);
    }

    #[test]
    fn a_file_of_another_length_has_no_layout() {
        for bytes in [0, LEAST_BYTES / 2, LEAST_BYTES + 64, MAX_BYTES * 2, usize::MAX] {
            assert_eq!(Layout::of(bytes), None);
        }
    }
}
