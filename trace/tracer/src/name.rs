//! The table of names and its heap: each text once, found by its hash.
//!
//! The number of a name is the number of its entry and one; 0 stands for none. A name's entry is
//! the first free one from its hash's place on. Kernels of templates have names of a kilobyte and
//! more, so texts lie in a heap behind the table.

use crate::bytes::{u32_at, u64_at};

/// Bytes of an entry.
pub const BYTES: usize = 16;
/// Most entries.
pub const MAX_ENTRIES: usize = 65_536;
/// Entries that are looked at for a hash.
pub const PROBES: usize = 16;

/// The hash, 64 bits; 0 for a free entry.
pub const HASH_AT: usize = 0;
/// Where the text is in the heap, 32 bits.
pub const PLACE_AT: usize = 8;
/// Bytes of the text, and [`CUT`] where the text was longer; 0 until the text is there. 32 bits.
pub const LENGTH_AT: usize = 12;
/// Most bytes of a text.
pub const MAX_NAME_BYTES: usize = 2048;
/// Says in a length that the text was longer.
pub const CUT: u32 = 1 << 31;

/// Where a name's text lies, of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the heap's begin.
    pub at: usize,
    /// Bytes of the text, from 1 to [`MAX_NAME_BYTES`].
    pub bytes: usize,
    /// Whether the text was longer.
    pub is_cut: bool,
}

impl Place {
    /// The place in an entry; `None` where the entry has no text yet, or one that does not lie
    /// within a heap of `heap_bytes`.
    pub fn of_entry(entry: &[u8; BYTES], heap_bytes: usize) -> Option<Self> {
        let length = u32_at(entry, LENGTH_AT)?;
        let bytes = usize::try_from(length & !CUT).ok()?;
        let at = usize::try_from(u32_at(entry, PLACE_AT)?).ok()?;
        let fits = (1..=MAX_NAME_BYTES).contains(&bytes) && at.checked_add(bytes)? <= heap_bytes;
        (fits && u64_at(entry, HASH_AT)? != 0).then_some(Self {
            at,
            bytes,
            is_cut: length & CUT != 0,
        })
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a text, never 0.
pub fn hash(text: &[u8]) -> u64 {
    let mut hash = u64::try_from(text.len()).unwrap_or(0);
    for part in text.chunks(8) {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(part) {
            *to = *from;
        }
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(ODD);
        hash ^= hash >> 29;
    }
    if hash == 0 { ODD } else { hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(hash: u64, at: u32, length: u32) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        bytes[8..12].copy_from_slice(&at.to_le_bytes());
        bytes[12..].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    #[test]
    fn only_a_text_within_the_heap_has_a_place() {
        let whole = Place {
            at: 8,
            bytes: 5,
            is_cut: false,
        };
        assert_eq!(Place::of_entry(&entry(3, 8, 5), 13), Some(whole));
        assert!(Place::of_entry(&entry(3, 8, 5 | CUT), 13).unwrap().is_cut);
        for (hash, at, length, heap) in [
            (3, 8, 5, 12),
            (0, 8, 5, 13),
            (3, 8, 0, 13),
            (3, u32::MAX, 5, 13),
            (3, 0, 2049, 1 << 20),
            (3, 0, u32::MAX, 1 << 20),
        ] {
            assert_eq!(Place::of_entry(&entry(hash, at, length), heap), None);
        }
    }

    #[test]
    fn different_texts_have_different_hashes() {
        assert_ne!(hash(b"kernel"), hash(b"kernel\0"));
        assert_ne!(hash(b"kernel_1"), hash(b"kernel_2"));
        assert_ne!(hash(b""), 0);
    }
}
