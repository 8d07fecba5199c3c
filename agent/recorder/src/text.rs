//! Texts of the program: read within bounds, with their hash.
#![allow(unsafe_code, reason = "texts of C have no length")]

use core::ffi::c_char;

use flopwatch_ring::name::MAX_NAME_BYTES;

/// A text of the program for as long as its call lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    /// Its bytes, at most [`MAX_NAME_BYTES`] or little more.
    pub(crate) bytes: &'a [u8],
    /// Whether there are more of them.
    pub(crate) cut: bool,
    /// Hash of the bytes that are there; never 0.
    pub(crate) hash: u64,
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const PAGE_BYTES: usize = 4096;

#[inline]
const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(ODD);
    hash ^ (hash >> 29)
}

#[inline]
const fn end(hash: u64, length: usize) -> u64 {
    // A length fits 64 bits.
    #[allow(clippy::as_conversions, reason = "no conversion of a trait in a constant function")]
    let hash = mix(hash, length as u64);
    if hash == 0 { ODD } else { hash }
}

impl<'a> Text<'a> {
    /// The text at `begin`; `None` for null and for an empty one.
    ///
    /// # Safety
    ///
    /// `begin` is null or a terminated string that stays for `'a`.
    #[inline]
    pub(crate) unsafe fn of_c(begin: *const c_char) -> Option<Self> {
        if begin.is_null() {
            return None;
        }
        let begin: *const u8 = begin.cast();
        let (mut hash, mut length, mut cut) = (0, 0_usize, false);
        loop {
            // SAFETY: no byte up to here is the end, so this one is still of the string.
            let word = unsafe { word(begin.add(length)) };
            let zeros = word.wrapping_sub(LOW) & !word & HIGH;
            if zeros != 0 {
                let bits = zeros.trailing_zeros() & !7;
                if bits > 0 {
                    hash = mix(hash, word & (1_u64 << bits).wrapping_sub(1));
                }
                length = length.wrapping_add(usize::try_from(bits >> 3).unwrap_or(0));
                break;
            }
            hash = mix(hash, word);
            length = length.wrapping_add(8);
            if length >= MAX_NAME_BYTES {
                cut = true;
                break;
            }
        }
        // SAFETY: so many bytes are there before the end.
        let bytes = unsafe { core::slice::from_raw_parts(begin, length) };
        (length > 0).then_some(Self {
            bytes,
            cut,
            hash: end(hash, length),
        })
    }

    /// The text of those bytes.
    pub(crate) fn of_bytes(bytes: &'a [u8], cut: bool) -> Option<Self> {
        let mut hash = 0;
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(part) {
                *to = *from;
            }
            hash = mix(hash, u64::from_le_bytes(word));
        }
        let hash = end(hash, bytes.len());
        (!bytes.is_empty()).then_some(Self { bytes, cut, hash })
    }
}

/// Eight bytes of a string from `at` on; behind its end anything.
///
/// # Safety
///
/// `at` is within a terminated string.
#[inline]
unsafe fn word(at: *const u8) -> u64 {
    if at.addr() & (PAGE_BYTES - 1) <= PAGE_BYTES - 8 {
        let word: u64;
        // SAFETY: the eight bytes lie in the page of the first one, which is readable; what lies
        // behind the string's end is read by an instruction and of no consequence.
        unsafe {
            core::arch::asm!("mov {}, [{}]", out(reg) word, in(reg) at, options(nostack, readonly, preserves_flags, pure));
        }
        return word;
    }
    let mut word = [0_u8; 8];
    for (place, to) in word.iter_mut().enumerate() {
        // SAFETY: no byte before it is the end.
        *to = unsafe { *at.add(place) };
        if *to == 0 {
            break;
        }
    }
    u64::from_le_bytes(word)
}

/// A text of wide characters as UTF-8.
pub(crate) struct Wide {
    bytes: [u8; MAX_NAME_BYTES],
    length: usize,
    cut: bool,
}

impl Wide {
    /// The text at `begin`.
    ///
    /// # Safety
    ///
    /// `begin` is null or a terminated string of `wchar_t`.
    pub(crate) unsafe fn of_c(begin: *const u32) -> Self {
        let mut wide = Self {
            bytes: [0; MAX_NAME_BYTES],
            length: 0,
            cut: false,
        };
        if begin.is_null() {
            return wide;
        }
        for at in 0..MAX_NAME_BYTES {
            // SAFETY: no character before it is the end.
            let character = unsafe { begin.add(at).read_unaligned() };
            if character == 0 {
                return wide;
            }
            let mut encoded = [0; 4];
            let encoded = char::from_u32(character)
                .unwrap_or(char::REPLACEMENT_CHARACTER)
                .encode_utf8(&mut encoded);
            let after = wide.length.wrapping_add(encoded.len());
            let Some(room) = wide.bytes.get_mut(wide.length..after) else {
                break;
            };
            room.copy_from_slice(encoded.as_bytes());
            wide.length = after;
        }
        wide.cut = true;
        wide
    }

    /// The UTF-8 bytes as a text.
    pub(crate) fn text(&self) -> Option<Text<'_>> {
        Text::of_bytes(self.bytes.get(..self.length)?, self.cut)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    fn of(text: &str) -> Option<(Vec<u8>, bool, u64)> {
        let owned = CString::new(text).unwrap();
        // SAFETY: it is terminated and lives until the end.
        unsafe { Text::of_c(owned.as_ptr()) }.map(|text| (text.bytes.to_vec(), text.cut, text.hash))
    }

    #[test]
    fn a_text_of_every_length_and_place_is_read_whole_and_has_the_hash_of_its_bytes() {
        for length in 1..200 {
            for start in 0..16 {
                let whole = "abcdefghijklmnop"[..start].to_owned() + &"x".repeat(length);
                let owned = CString::new(whole).unwrap();
                // SAFETY: it is terminated and lives until the end.
                let text = unsafe { Text::of_c(owned.as_ptr().add(start)) }.unwrap();
                assert_eq!(text.bytes, "x".repeat(length).as_bytes());
                let same = Text::of_bytes(text.bytes, false).unwrap();
                assert_eq!((text.hash, text.cut), (same.hash, false));
            }
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let (bytes, cut, _) = of(&"z".repeat(5000)).unwrap();
        assert_eq!((bytes.len(), cut), (MAX_NAME_BYTES, true));
    }

    #[test]
    fn empty_and_missing_texts_are_none() {
        assert_eq!(of(""), None);
        // SAFETY: null is allowed.
        assert!(unsafe { Text::of_c(core::ptr::null()) }.is_none());
    }

    #[test]
    fn different_texts_have_different_hashes() {
        let mut hashes: Vec<u64> = (0..10_000).map(|at| of(&format!("step {at}")).unwrap().2).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 10_000);
    }

    #[test]
    fn wide_characters_become_utf8() {
        let wide: Vec<u32> = "größe 🎯\0".chars().map(u32::from).collect();
        // SAFETY: it is terminated.
        let text = unsafe { Wide::of_c(wide.as_ptr()) };
        assert_eq!(text.text().unwrap().bytes, "größe 🎯".as_bytes());
        // SAFETY: null is allowed.
        assert!(unsafe { Wide::of_c(core::ptr::null()) }.text().is_none());
    }
}
