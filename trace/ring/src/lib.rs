//! The layout of the flight recorder's file, which its writer and its readers share: numbers and places, no I/O, no library.
//!
//! A file has four parts, one after the other: the header of [`HEADER_BYTES`], the table of labels, the table of names, and segments of
//! [`segment::BYTES`], which threads claim one after the other. All numbers are little-endian. `docs/recorder.md` has the contract in words.

#![no_std]

pub mod header;
pub mod label;
pub mod name;
pub mod segment;
pub mod slot;

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"FLPWRING";
/// Version of this layout; a reader refuses any other.
pub const VERSION: u32 = 2;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a file where nobody says another number.
pub const DEFAULT_BYTES: usize = 8 << 20;
/// Fewest bytes of a file.
pub const LEAST_BYTES: usize = 256 << 10;
/// Most bytes of a file.
pub const MOST_BYTES: usize = 256 << 20;

/// Where the parts of a file of some length are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the file.
    pub bytes: usize,
    /// Where the table of names begins.
    pub names_at: usize,
    /// Entries of the table of names, a power of two.
    pub names: usize,
    /// Where the first segment begins.
    pub segments_at: usize,
    /// Segments.
    pub segments: usize,
}

impl Layout {
    /// The layout of a file of so many bytes; `None` where files are not that long: it is no whole number of segments, or out of
    /// [`LEAST_BYTES`] to [`MOST_BYTES`].
    pub const fn of(bytes: usize) -> Option<Self> {
        if bytes < LEAST_BYTES || bytes > MOST_BYTES || !bytes.is_multiple_of(segment::BYTES) {
            return None;
        }
        // About a sixteenth of the file holds names.
        let wanted = bytes / 16 / name::BYTES;
        let names = match wanted.checked_next_power_of_two() {
            Some(above) if above > wanted => above / 2,
            Some(exact) => exact,
            None => return None,
        };
        let names = if names > name::MOST { name::MOST } else { names };
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

    /// Where the segment at `at` begins; `None` behind the last one.
    pub const fn segment(&self, at: usize) -> Option<usize> {
        if at < self.segments {
            Some(self.segments_at + at * segment::BYTES)
        } else {
            None
        }
    }

    /// Where the name at `at` begins; `None` behind the last one.
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
        while bytes <= MOST_BYTES {
            let layout = Layout::of(bytes).unwrap();
            assert!(layout.names.is_power_of_two() && layout.names <= name::MOST);
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
            MOST_BYTES + segment::BYTES,
            usize::MAX,
        ] {
            assert_eq!(Layout::of(bytes), None);
        }
    }
}
