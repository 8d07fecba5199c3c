//! The mapped file: its words, its segments, and what it counts.
#![allow(unsafe_code, reason = "the file is shared memory")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flopwatch_injected::memory::Memory as Mapped;
use flopwatch_ring::header::{self, Count};
use flopwatch_ring::{Layout, segment};

/// The mapped file with its parts.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    mapped: Mapped,
    layout: Layout,
}

impl Memory {
    pub(crate) const fn new(mapped: Mapped, layout: Layout) -> Self {
        Self { mapped, layout }
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The word of 64 bits at a multiple of eight.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> Option<&'static AtomicU64> {
        self.mapped.word(at)
    }

    /// The word of 32 bits at a multiple of four.
    #[inline]
    pub(crate) fn half(&self, at: usize) -> Option<&'static AtomicU32> {
        self.mapped.half(at)
    }

    /// The segment at `at`.
    pub(crate) fn segment(&self, at: usize) -> Option<NonNull<Page>> {
        let place = self.layout.segment(at)?;
        self.mapped.part(place, segment::BYTES).map(NonNull::cast)
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
