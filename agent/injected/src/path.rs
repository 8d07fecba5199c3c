//! Paths and numbers in fixed memory.
#![allow(unsafe_code, reason = "a path is a text of C")]

use core::ffi::CStr;

/// Bytes of a path, with the zero at its end.
const MAX_PATH_BYTES: usize = 1024;

/// A path with the zero at its end.
#[derive(Debug)]
pub struct Path {
    bytes: [u8; MAX_PATH_BYTES],
    length: usize,
}

impl Path {
    /// The empty path.
    pub const EMPTY: Self = Self {
        bytes: [0; MAX_PATH_BYTES],
        length: 0,
    };

    /// The parts behind each other; `None` where they are too long together.
    pub fn of(parts: &[&[u8]]) -> Option<Self> {
        let mut path = Self::EMPTY;
        for part in parts {
            path.push(part)?;
        }
        Some(path)
    }

    /// Appends bytes; `None` where they do not fit.
    pub fn push(&mut self, more: &[u8]) -> Option<()> {
        let end = self.length.checked_add(more.len())?;
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.length..end).filter(|_| end < MAX_PATH_BYTES)?;
        room.copy_from_slice(more);
        self.length = end;
        Some(())
    }

    /// Appends a number in letters.
    pub fn push_letters(&mut self, mut number: u64) -> Option<()> {
        for _ in 0..16 {
            let digit = u8::try_from(number & 15).ok()?;
            self.push(&[b'a'.wrapping_add(digit)])?;
            number >>= 4;
        }
        Some(())
    }

    /// Appends a number in decimal digits.
    pub fn push_decimal(&mut self, number: u32) -> Option<()> {
        let mut divisor = 1_000_000_000;
        while divisor > 1 && number < divisor {
            divisor = divisor.checked_div(10)?;
        }
        while divisor > 0 {
            let digit = number.checked_div(divisor)?.checked_rem(10)?;
            self.push(&[b'0'.wrapping_add(u8::try_from(digit).ok()?)])?;
            divisor = divisor.checked_div(10)?;
        }
        Some(())
    }

    /// Its bytes, without the zero.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The path as C has it.
    pub fn text(&self) -> &CStr {
        // SAFETY: the last byte stays zero.
        unsafe { CStr::from_ptr(self.bytes.as_ptr().cast()) }
    }
}

/// A decimal number.
pub fn number(text: &[u8]) -> Option<usize> {
    let mut number: usize = 0;
    for byte in text {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = number.checked_mul(10)?.checked_add(usize::from(digit))?;
    }
    (!text.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decimal_numbers_are_numbers() {
        assert_eq!(number(b"8388608"), Some(8 << 20));
        for text in ["", "8M", "-1", "99999999999999999999999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_path_that_is_too_long_is_none() {
        let mut path = Path::EMPTY;
        assert_eq!(path.push(&[b'x'; MAX_PATH_BYTES]), None);
        assert_eq!(path.push(&[b'x'; MAX_PATH_BYTES - 1]), Some(()));
        assert_eq!(path.text().count_bytes(), MAX_PATH_BYTES - 1);
    }

    #[test]
    fn numbers_are_appended_in_decimal_digits() {
        for number in [0, 7, 10, 4_096, 1_000_000_000, u32::MAX] {
            let mut path = Path::of(&[b"/proc/"]).unwrap();
            path.push_decimal(number).unwrap();
            let digits = path.bytes().strip_prefix(b"/proc/").unwrap();
            assert_eq!(super::number(digits), usize::try_from(number).ok());
        }
    }
}
