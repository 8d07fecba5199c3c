//! The container's file: made by the first process, opened by all others.
#![allow(unsafe_code, reason = "the file is mapped, its path is a text of C")]

use core::ffi::CStr;

use flopwatch_ring::header::{BYTES_AT, MAGIC_AT, MONOTONIC_AT, REALTIME_AT, TICKS_ARE_TSC_AT, TICKS_AT, VERSION_AT};
use flopwatch_ring::{DEFAULT_BYTES, LEAST_BYTES, Layout, MAGIC, MAX_BYTES, VERSION, segment};

use crate::kernel::{File, link, process, unlink};
use crate::memory::Memory;
use crate::{clock, loader};

/// Names the folder of the file.
const FOLDER: &CStr = c"FLOPWATCH_RECORDER_DIR";
/// Says how many bytes a new file has.
const BYTES: &CStr = c"FLOPWATCH_RECORDER_BYTES";
/// The file's name.
const NAME: &[u8] = b"/recorder.ring";
/// How many bytes at the begin say what the file is.
const HEADER_BYTES: usize = 48;
/// Bytes of a path.
const MAX_PATH_BYTES: usize = 1024;

/// A path with the zero at its end.
struct Path {
    bytes: [u8; MAX_PATH_BYTES],
    length: usize,
}

impl Path {
    const EMPTY: Self = Self {
        bytes: [0; MAX_PATH_BYTES],
        length: 0,
    };

    fn push(&mut self, more: &[u8]) -> Option<()> {
        let end = self.length.checked_add(more.len())?;
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.length..end).filter(|_| end < MAX_PATH_BYTES)?;
        room.copy_from_slice(more);
        self.length = end;
        Some(())
    }

    /// A number in letters.
    fn push_number(&mut self, mut number: u64) -> Option<()> {
        for _ in 0..16 {
            let digit = u8::try_from(number & 15).ok()?;
            self.push(&[b'a'.wrapping_add(digit)])?;
            number >>= 4;
        }
        Some(())
    }

    fn text(&self) -> &CStr {
        // SAFETY: the last byte stays zero.
        unsafe { CStr::from_ptr(self.bytes.as_ptr().cast()) }
    }
}

/// Maps the file that the environment names; `None` where it names none or there is none to be had.
pub(crate) fn open() -> Option<Memory> {
    let folder = loader::variable(FOLDER)?.to_bytes();
    let mut path = Path::EMPTY;
    path.push(folder)?;
    path.push(NAME)?;
    if let Some(file) = File::open(path.text()) {
        return map(&file);
    }
    make(&path)?;
    map(&File::open(path.text())?)
}

/// Makes the file beside its name, whole, so that whoever opens it by its name finds it whole.
/// Where another process was faster, its file stays.
fn make(path: &Path) -> Option<()> {
    let layout = Layout::of(wanted_bytes())?;
    let are_tsc = clock::is_even();
    let moment = clock::moment(are_tsc);
    let mut beside = Path::EMPTY;
    beside.push(path.bytes.get(..path.length)?)?;
    beside.push(b".")?;
    beside.push_number(u64::from(process()))?;
    beside.push_number(moment.ticks)?;
    let beside = beside.text();
    let file = File::create(beside)?;
    let mut begin = [0; HEADER_BYTES];
    for (at, value) in [
        (MAGIC_AT, &MAGIC[..]),
        (VERSION_AT, &VERSION.to_le_bytes()),
        (TICKS_ARE_TSC_AT, &u32::from(are_tsc).to_le_bytes()),
        (BYTES_AT, &u64::try_from(layout.bytes).ok()?.to_le_bytes()),
        (TICKS_AT, &moment.ticks.to_le_bytes()),
        (MONOTONIC_AT, &moment.monotonic_ns.to_le_bytes()),
        (REALTIME_AT, &moment.realtime_ns.to_le_bytes()),
    ] {
        let room = begin.get_mut(at..)?.get_mut(..value.len())?;
        room.copy_from_slice(value);
    }
    if file.reserve(layout.bytes) && file.write(&begin) {
        link(beside, path.text());
    }
    unlink(beside);
    Some(())
}

/// Maps a file whose begin says that it is one, and that has its whole length.
fn map(file: &File) -> Option<Memory> {
    let mut begin = [0; HEADER_BYTES];
    if !file.begin(&mut begin) {
        return None;
    }
    let version = begin.get(VERSION_AT..)?.first_chunk()?;
    let bytes = begin.get(BYTES_AT..)?.first_chunk()?;
    if !begin.starts_with(&MAGIC) || u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let layout = Layout::of(usize::try_from(u64::from_le_bytes(*bytes)).ok()?)?;
    if !file.has(layout.bytes.checked_sub(1)?) {
        return None;
    }
    let begin = file.map(layout.bytes)?;
    // SAFETY: so many bytes were mapped there, and nothing unmaps them.
    Some(unsafe { Memory::new(begin, layout) })
}

/// Bytes of a new file, in whole segments and within the bounds.
fn wanted_bytes() -> usize {
    let said = loader::variable(BYTES).and_then(|text| number(text.to_bytes()));
    let bytes = said.unwrap_or(DEFAULT_BYTES).clamp(LEAST_BYTES, MAX_BYTES);
    bytes & !segment::BYTES.wrapping_sub(1)
}

/// A decimal number.
fn number(text: &[u8]) -> Option<usize> {
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
}
