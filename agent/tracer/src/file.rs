//! The container's file, as this library maps it.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flopwatch_injected::clock::{MONOTONIC, nanoseconds};
use flopwatch_injected::file::{self, Kind};
use flopwatch_injected::memory::{Line, Memory};
use flopwatch_injected::{kernel, loader, number};
use flopwatch_tracer_file::header::{BYTES_AT, IDENTITY_BYTES, VERSION_AT, identity};
use flopwatch_tracer_file::{DEFAULT_BYTES, LEAST_BYTES, Layout, MAGIC, MAX_BYTES, VERSION};

/// Names the folder of the file.
const FOLDER: &CStr = c"FLOPWATCH_CUDA_DIR";
/// Says how many bytes a new file has.
const BYTES: &CStr = c"FLOPWATCH_CUDA_BYTES";
/// The file's name.
const NAME: &[u8] = b"/cuda.trace";

/// The mapped file with its parts.
#[derive(Clone, Copy)]
pub(crate) struct TraceFile {
    memory: Memory,
    pub(crate) layout: Layout,
}

impl TraceFile {
    /// Maps the file that the environment names; `None` where it names none or there is none to be
    /// had.
    pub(crate) fn open() -> Option<Self> {
        let folder = loader::variable(FOLDER)?.to_bytes();
        let (memory, bytes) = file::open(&Trace, folder, NAME, nanoseconds(MONOTONIC))?;
        let layout = Layout::of(bytes)?;
        Some(Self { memory, layout })
    }

    /// The word of 64 bits at a multiple of eight.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> Option<&'static AtomicU64> {
        self.memory.word(at)
    }

    /// The word of 32 bits at a multiple of four.
    #[inline]
    pub(crate) fn half(&self, at: usize) -> Option<&'static AtomicU32> {
        self.memory.half(at)
    }

    /// The line at a multiple of 64.
    #[inline]
    pub(crate) fn line(&self, at: usize) -> Option<&'static Line> {
        self.memory.line(at)
    }

    /// Has the line at a place brought near, which is written soon.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        self.memory.prefetch(at);
    }

    /// Maps the pages of a part that begins with one, which is written soon.
    pub(crate) fn populate(&self, at: usize, bytes: usize) {
        if let Some(begin) = self.memory.part(at, bytes) {
            kernel::populate(begin, bytes);
        }
    }

    /// What stands in a word; 0 for one that is not there.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// What stands in a word of 32 bits; 0 for one that is not there.
    #[inline]
    pub(crate) fn get_half(&self, at: usize) -> u32 {
        self.half(at).map_or(0, |half| half.load(Ordering::Relaxed))
    }

    /// Writes a word.
    #[inline]
    pub(crate) fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Writes a word of 32 bits.
    #[inline]
    pub(crate) fn set_half(&self, at: usize, value: u32) {
        if let Some(half) = self.half(at) {
            half.store(value, Ordering::Relaxed);
        }
    }

    /// Adds to a word, and gives what stood there before.
    pub(crate) fn add(&self, at: usize, more: u64) -> u64 {
        self.word(at).map_or(0, |word| word.fetch_add(more, Ordering::Relaxed))
    }

    /// Writes bytes from a multiple of eight on; the last word is filled up with zeros.
    pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
        for (place, part) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(part) {
                *to = *from;
            }
            self.set(at.wrapping_add(place.wrapping_mul(8)), u64::from_le_bytes(word));
        }
    }
}

/// The kind of the file.
struct Trace;

impl Kind for Trace {
    type Identity = [u8; IDENTITY_BYTES];

    const EMPTY: Self::Identity = [0; IDENTITY_BYTES];

    fn made(&self) -> Option<(usize, Self::Identity)> {
        let bytes = wanted_bytes();
        Some((bytes, identity(u64::try_from(bytes).ok()?)))
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

/// Bytes of a new file: a power of two within the bounds.
fn wanted_bytes() -> usize {
    let said = loader::variable(BYTES).and_then(|text| number(text.to_bytes()));
    let bytes = said.unwrap_or(DEFAULT_BYTES).clamp(LEAST_BYTES, MAX_BYTES);
    bytes.checked_next_power_of_two().unwrap_or(DEFAULT_BYTES)
}
