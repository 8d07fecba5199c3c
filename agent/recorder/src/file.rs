//! The container's ring: how its file begins.

use core::ffi::CStr;

use flopwatch_injected::file::{self, Kind};
use flopwatch_injected::{loader, number};
use flopwatch_ring::header::{BYTES_AT, MAGIC_AT, MONOTONIC_AT, REALTIME_AT, TICKS_ARE_TSC_AT, TICKS_AT, VERSION_AT};
use flopwatch_ring::{DEFAULT_BYTES, LEAST_BYTES, Layout, MAGIC, MAX_BYTES, VERSION, segment};

use crate::clock::{self, Moment};
use crate::memory::Memory;

/// Names the folder of the file.
const FOLDER: &CStr = c"FLOPWATCH_RECORDER_DIR";
/// Says how many bytes a new file has.
const BYTES: &CStr = c"FLOPWATCH_RECORDER_BYTES";
/// The file's name.
const NAME: &[u8] = b"/recorder.ring";
/// How many bytes at the begin say what the file is.
const HEADER_BYTES: usize = 48;

/// Maps the file that the environment names; `None` where it names none or there is none to be had.
pub(crate) fn open() -> Option<Memory> {
    let folder = loader::variable(FOLDER)?.to_bytes();
    let are_tsc = clock::is_even();
    let ring = Ring {
        are_tsc,
        moment: clock::moment(are_tsc),
    };
    let (mapped, bytes) = file::open(&ring, folder, NAME, ring.moment.ticks)?;
    Some(Memory::new(mapped, Layout::of(bytes)?))
}

/// A ring that is made now.
struct Ring {
    are_tsc: bool,
    moment: Moment,
}

impl Kind for Ring {
    type Identity = [u8; HEADER_BYTES];

    const EMPTY: Self::Identity = [0; HEADER_BYTES];

    fn made(&self) -> Option<(usize, Self::Identity)> {
        let layout = Layout::of(wanted_bytes())?;
        let mut begin = Self::EMPTY;
        for (at, value) in [
            (MAGIC_AT, &MAGIC[..]),
            (VERSION_AT, &VERSION.to_le_bytes()),
            (TICKS_ARE_TSC_AT, &u32::from(self.are_tsc).to_le_bytes()),
            (BYTES_AT, &u64::try_from(layout.bytes).ok()?.to_le_bytes()),
            (TICKS_AT, &self.moment.ticks.to_le_bytes()),
            (MONOTONIC_AT, &self.moment.monotonic_ns.to_le_bytes()),
            (REALTIME_AT, &self.moment.realtime_ns.to_le_bytes()),
        ] {
            let room = begin.get_mut(at..)?.get_mut(..value.len())?;
            room.copy_from_slice(value);
        }
        Some((layout.bytes, begin))
    }

    fn bytes(&self, begin: &Self::Identity) -> Option<usize> {
        let version = begin.get(VERSION_AT..)?.first_chunk()?;
        let bytes = begin.get(BYTES_AT..)?.first_chunk()?;
        if !begin.starts_with(&MAGIC) || u32::from_le_bytes(*version) != VERSION {
            return None;
        }
        let bytes = usize::try_from(u64::from_le_bytes(*bytes)).ok()?;
        Layout::of(bytes).map(|layout| layout.bytes)
    }
}

/// Bytes of a new file, in whole segments and within the bounds.
fn wanted_bytes() -> usize {
    let said = loader::variable(BYTES).and_then(|text| number(text.to_bytes()));
    let bytes = said.unwrap_or(DEFAULT_BYTES).clamp(LEAST_BYTES, MAX_BYTES);
    bytes & !segment::BYTES.wrapping_sub(1)
}
