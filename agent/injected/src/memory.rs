//! The mapped file: words and lines within it, each access within its bounds.
#![allow(unsafe_code, reason = "the file is shared memory")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::cache;

/// Bytes of a line: what processors move at once between memory and their caches.
pub const LINE_BYTES: usize = 64;

/// A line, as words.
pub type Line = [AtomicU64; LINE_BYTES / 8];

/// A mapped file. Other processes write to it at any time: whatever is read from it may be
/// anything.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, and only atomics refer to it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Words of the mapping at `begin`.
    ///
    /// # Safety
    ///
    /// At `begin`, a page's begin, so many bytes are mapped and stay so.
    pub const unsafe fn new(begin: NonNull<u8>, bytes: usize) -> Self {
        Self { begin, bytes }
    }

    /// The word of 64 bits at a multiple of eight.
    #[inline]
    pub fn word(&self, at: usize) -> Option<&'static AtomicU64> {
        let fits = at.is_multiple_of(8) && at.checked_add(8)? <= self.bytes;
        // SAFETY: the word lies within the mapping and is aligned as the mapping is; only atomics
        // ever refer to it.
        fits.then(|| unsafe { self.begin.add(at).cast().as_ref() })
    }

    /// The word of 32 bits at a multiple of four.
    #[inline]
    pub fn half(&self, at: usize) -> Option<&'static AtomicU32> {
        let fits = at.is_multiple_of(4) && at.checked_add(4)? <= self.bytes;
        // SAFETY: as above.
        fits.then(|| unsafe { self.begin.add(at).cast().as_ref() })
    }

    /// The line at a multiple of [`LINE_BYTES`].
    #[inline]
    pub fn line(&self, at: usize) -> Option<&'static Line> {
        let fits = at.is_multiple_of(LINE_BYTES) && at.checked_add(LINE_BYTES)? <= self.bytes;
        // SAFETY: the line lies within the mapping, its words are aligned as the mapping is, and
        // only atomics ever refer to them.
        fits.then(|| unsafe { self.begin.add(at).cast().as_ref() })
    }

    /// Has the line at a place brought near, which is written soon; one behind the file's end is
    /// left alone.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        if at < self.bytes {
            cache::prefetch(self.begin.addr().get().wrapping_add(at));
        }
    }

    /// The address of `bytes` bytes at `at`; `None` where they do not lie within the file.
    pub fn part(&self, at: usize, bytes: usize) -> Option<NonNull<u8>> {
        let fits = at.checked_add(bytes)? <= self.bytes;
        // SAFETY: the part lies within the mapping.
        fits.then(|| unsafe { self.begin.add(at) })
    }
}
