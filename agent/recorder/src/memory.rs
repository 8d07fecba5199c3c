//! The mapped file: words within it, each access within its bounds.
#![allow(unsafe_code, reason = "the file is shared memory")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flopwatch_ring::header::{self, Count};
use flopwatch_ring::{Layout, segment};

/// The mapped file. Other processes write to it at any time: whatever is read from it may be
/// anything.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    begin: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// # Safety
    ///
    /// At `begin`, a page's begin, so many bytes as `layout` says are mapped and stay so.
    pub(crate) const unsafe fn new(begin: NonNull<u8>, layout: Layout) -> Self {
        Self { begin, layout }
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The word of 64 bits at a multiple of eight.
    pub(crate) fn word(&self, at: usize) -> Option<&'static AtomicU64> {
        let fits = at.is_multiple_of(8) && at.checked_add(8)? <= self.layout.bytes;
        // SAFETY: the word lies within the mapping and is aligned as the mapping is; only atomics
        // ever refer to it.
        fits.then(|| unsafe { self.begin.add(at).cast().as_ref() })
    }

    /// The word of 32 bits at a multiple of four.
    pub(crate) fn half(&self, at: usize) -> Option<&'static AtomicU32> {
        let fits = at.is_multiple_of(4) && at.checked_add(4)? <= self.layout.bytes;
        // SAFETY: as above.
        fits.then(|| unsafe { self.begin.add(at).cast().as_ref() })
    }

    /// The segment at `at`.
    pub(crate) fn segment(&self, at: usize) -> Option<NonNull<Page>> {
        let place = self.layout.segment(at)?;
        // SAFETY: a layout's segments lie within the mapping.
        Some(unsafe { self.begin.add(place) }.cast())
    }

    /// Counts one.
    pub(crate) fn count(&self, what: Count) {
        self.add(what, 1);
    }

    /// Counts some.
    pub(crate) fn add(&self, what: Count, more: u32) {
        if let Some(count) = self.word(what.at()) {
            count.fetch_add(u64::from(more), Ordering::Relaxed);
        }
    }

    /// The next number of a counter of the header.
    pub(crate) fn next(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |number| number.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether ticks are those of the time-stamp counter.
    pub(crate) fn ticks_are_tsc(&self) -> bool {
        self.half(header::TICKS_ARE_TSC_AT)
            .is_some_and(|flag| flag.load(Ordering::Relaxed) == 1)
    }
}

/// A segment as memory.
#[repr(C, align(4096))]
pub(crate) struct Page([AtomicU64; segment::BYTES / 8]);

impl Page {
    /// The word of 64 bits at a place of the segment.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.0.get(at >> 3)
    }

    /// The word of 32 bits at a place of the segment.
    #[inline]
    pub(crate) fn half(&self, at: usize) -> Option<&AtomicU32> {
        let word: *const AtomicU64 = self.word(at)?;
        let upper = (at >> 2) & 1;
        // SAFETY: both halves of a word lie within it, and only atomics ever refer to either.
        Some(unsafe { &*word.cast::<AtomicU32>().add(upper) })
    }
}
