//! The layout of the flight recorder's file, which its writer (`flopwatch-recorder`) and its
//! readers (`flopwatch_trace::recorder`) share. The crate has offsets and sizes only: it does no
//! I/O and depends on no library.
//!
//! A file has four parts, one after the other:
//!
//! | part | module | size |
//! |---|---|---|
//! | header | [`header`] | [`HEADER_BYTES`] |
//! | table of labels: names of threads and categories | [`label`] | 1,024 entries of 16 bytes |
//! | table of names of ranges | [`name`] | up to 32,768 entries of 128 bytes |
//! | segments of events, which threads claim one after the other | [`segment`], [`slot`] | 4 KiB each |
//!
//! Invariants:
//!
//! - All numbers are little-endian, all offsets named `*_AT` are bytes from the part's start.
//! - The layout follows from the file's length alone ([`Layout::of`]): a power of two of names,
//!   whole segments up to the end of the file.
//! - A file has 256 KiB to 256 MiB ([`LEAST_BYTES`], [`MAX_BYTES`]), 8 MiB by default.
//!
//! `docs/recorder.md` has the contract in words.
//!
//! # Example: one range in one segment
//!
//! A thread claims the first segment of the default file as its first claim, pushes the range whose
//! name has number 3 of the table of names, in domain 0, and pops it. Each event is one slot: the
//! ticks first, and then the tag, by which a reader knows that the slot is whole and of this claim.
//! A tag of an earlier claim, or 0, ends what the segment holds.
//!
//! ```
//! use flopwatch_ring::slot::{self, Kind};
//! use flopwatch_ring::{DEFAULT_BYTES, Layout, segment};
//!
//! let layout = Layout::of(DEFAULT_BYTES).ok_or("no such file")?;
//! let begin = layout.segment(0).ok_or("no segment")?;
//! let slots = begin + segment::SLOTS_AT;
//! // The push, and the pop behind it: where each is in the file, and its tag.
//! let push = (slots, slot::tag(1, Kind::Push, 0, 3));
//! let pop = (slots + slot::BYTES, slot::tag(1, Kind::Pop, 0, 0));
//! assert_eq!(push.1, 0x0000_0001_01_00_0003);
//! assert_eq!(pop.1, 0x0000_0001_02_00_0000);
//! assert_eq!(slot::of_tag(push.1), (1, Kind::Push.bits(), 0, 3));
//! // The next segment begins a page behind this one, with room for 224 slots.
//! assert_eq!(layout.segment(1), Some(begin + 4096));
//! assert_eq!(segment::SLOTS, 224);
//! # Ok::<(), &str>(())
//! ```

#![no_std]

pub mod header;
pub mod label;
pub mod name;
pub mod segment;
pub mod slot;

/// The first 8 bytes of every recorder file.
pub const MAGIC: [u8; 8] = *b"FLPWRING";
/// Version of this layout; a reader refuses any other.
pub const VERSION: u32 = 2;
/// Size of the header in bytes.
pub const HEADER_BYTES: usize = 4096;
/// Default size of a recorder file in bytes: 8 MiB.
pub const DEFAULT_BYTES: usize = 8 << 20;
/// Minimum size of a recorder file in bytes: 256 KiB.
pub const LEAST_BYTES: usize = 256 << 10;
/// Maximum size of a recorder file in bytes: 256 MiB.
pub const MAX_BYTES: usize = 256 << 20;

/// Offsets and sizes of the parts of a recorder file, which follow from its length alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Length of the file in bytes.
    pub bytes: usize,
    /// Offset of the table of names in bytes.
    pub names_at: usize,
    /// Number of entries in the table of names, a power of two and at most [`name::MAX_ENTRIES`].
    pub names: usize,
    /// Offset of the first segment in bytes.
    pub segments_at: usize,
    /// Number of segments.
    pub segments: usize,
}

impl Layout {
    /// The layout of a file of `bytes` bytes; `None` where that is no length of a recorder file: no
    /// whole number of segments, or outside of [`LEAST_BYTES`] to [`MAX_BYTES`].
    pub const fn of(bytes: usize) -> Option<Self> {
        if bytes < LEAST_BYTES || bytes > MAX_BYTES || !bytes.is_multiple_of(segment::BYTES) {
            return None;
        }
        // About a sixteenth of the file holds names.
        let wanted = bytes / 16 / name::BYTES;
        let names = match wanted.checked_next_power_of_two() {
            Some(above) if above > wanted => above / 2,
            Some(exact) => exact,
            None => return None,
        };
        let names = if names > name::MAX_ENTRIES {
            name::MAX_ENTRIES
        } else {
            names
        };
        let names_at = HEADER_BYTES + label::TABLE_BYTES;
        let segments_at = names_at + names * name::BYTES;
        Some(Self {
            bytes,
            names_at,
            names,
            segments_at,
            segments: (bytes - segments_at) / segment::BYTES,
        })
    }

    /// Offset in bytes of the segment with index `at`; `None` where there are fewer segments.
    pub const fn segment(&self, at: usize) -> Option<usize> {
        if at < self.segments {
            Some(self.segments_at + at * segment::BYTES)
        } else {
            None
        }
    }

    /// Offset in bytes of the entry of the table of names with index `at`; `None` where there are
    /// fewer entries.
    pub const fn name(&self, at: usize) -> Option<usize> {
        if at < self.names {
            Some(self.names_at + at * name::BYTES)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_every_file_follow_each_other_and_fill_it() {
        let mut bytes = LEAST_BYTES;
        while bytes <= MAX_BYTES {
            let layout = Layout::of(bytes).unwrap();
            assert!(layout.names.is_power_of_two() && layout.names <= name::MAX_ENTRIES);
            assert_eq!(layout.names_at % 64, 0);
            assert_eq!(layout.segments_at % segment::BYTES, 0, "{layout:?}");
            assert_eq!(layout.segments_at + layout.segments * segment::BYTES, bytes);
            assert_eq!(layout.segment(layout.segments), None);
            assert_eq!(layout.name(layout.names), None);
            bytes *= 2;
        }
    }

    #[test]
    fn a_file_of_an_odd_length_has_no_layout() {
        for bytes in [
            0,
            LEAST_BYTES - 1,
            LEAST_BYTES + 1,
            MAX_BYTES + segment::BYTES,
            usize::MAX,
        ] {
            assert_eq!(Layout::of(bytes), None);
        }
    }
}
