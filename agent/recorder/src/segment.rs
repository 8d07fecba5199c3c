//! A segment that this thread has: slots, open ranges, counters of names.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use flopwatch_ring::segment::{
    COUNTER_BYTES, COUNTERS, COUNTERS_AT, DEPTH_AT, EVENTS_AT, LATER_MONOTONIC_AT, LATER_REALTIME_AT, LATER_TICKS_AT,
    OPEN, OPEN_AT, OPEN_BYTES, SLOTS, SLOTS_AT, USED_AT,
};
use flopwatch_ring::slot;

use crate::clock::{self, Moment};
use crate::memory::{Memory, Page};
use crate::names;

/// A segment with the number of its claim.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) page: &'a Page,
    pub(crate) claim: u32,
}

/// Ticks after which the clocks are read again: about a tenth of a second of a counter, a quarter
/// of one of the kernel's clock.
const LONG_TICKS: u64 = 1 << 28;
const COUNTER_MASK: usize = COUNTERS - 1;
const _: () = assert!(COUNTERS.is_power_of_two());

impl Segment<'_> {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.page.word(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.page.word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn get_half(&self, at: usize) -> u32 {
        self.page.half(at).map_or(0, |half| half.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn set_half(&self, at: usize, value: u32) {
        if let Some(half) = self.page.half(at) {
            half.store(value, Ordering::Relaxed);
        }
    }

    /// Notes what the clocks say now, if the last time is long ago: an event's time is told from a
    /// moment close by.
    #[inline]
    pub(crate) fn keep_time(&self, ticks: u64, are_tsc: bool) {
        if ticks.wrapping_sub(self.get(LATER_TICKS_AT)) > LONG_TICKS {
            self.set_later(clock::moment(are_tsc));
        }
    }

    #[cold]
    pub(crate) fn set_later(&self, moment: Moment) {
        self.set(LATER_TICKS_AT, 0);
        fence(Ordering::Release);
        self.set(LATER_MONOTONIC_AT, moment.monotonic_ns);
        self.set(LATER_REALTIME_AT, moment.realtime_ns);
        fence(Ordering::Release);
        self.set(LATER_TICKS_AT, moment.ticks);
    }

    /// Slots that are used; never more than there are.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        let used = self.get_half(USED_AT);
        usize::try_from(used).map_or(SLOTS, |used| used.min(SLOTS))
    }

    /// Fills a slot, its tag last.
    #[inline]
    pub(crate) fn put(&self, slot: usize, value: u64, tag: u64) {
        let at = SLOTS_AT.wrapping_add(slot.wrapping_mul(slot::BYTES));
        self.set(at, value);
        if let Some(word) = self.page.word(at.wrapping_add(slot::TAG_AT)) {
            word.store(tag, Ordering::Release);
        }
    }

    /// Says that slots up to `used` are filled, the last one with an event.
    #[inline]
    pub(crate) fn filled(&self, used: usize) {
        self.set_half(USED_AT, u32::try_from(used).unwrap_or(u32::MAX));
        self.set_half(EVENTS_AT, self.get_half(EVENTS_AT).wrapping_add(1));
    }

    /// Opens a range and gives the number of those that were open.
    #[inline]
    pub(crate) fn open(&self, domain: u8, name: u16, ticks: u64) -> u32 {
        let depth = self.get_half(DEPTH_AT);
        if let Some(at) = open_at(depth) {
            self.set(at, ticks);
            self.set(at.wrapping_add(8), u64::from(name) | (u64::from(domain) << 32));
        }
        self.set_half(DEPTH_AT, depth.wrapping_add(1));
        depth
    }

    /// Closes the innermost range of the domain and counts it; gives the number of those that are
    /// open after it, `None` where none was.
    #[inline]
    pub(crate) fn close(&self, memory: &Memory, domain: u8, ticks: u64) -> Option<u32> {
        let top = self.get_half(DEPTH_AT).checked_sub(1)?;
        if open_at(top).is_none() {
            // Too deep to be counted.
            self.set_half(DEPTH_AT, top);
            return Some(top);
        }
        let mut place = top;
        let (begin, name) = loop {
            let at = open_at(place)?;
            let open = self.get(at.wrapping_add(8));
            if open >> 32 == u64::from(domain) {
                break (self.get(at), u16::try_from(open & 0xffff).unwrap_or(0));
            }
            place = place.checked_sub(1)?;
        };
        // Ranges of other domains that are further in stay open, one place further out.
        while place < top {
            let (to, from) = (open_at(place)?, open_at(place.wrapping_add(1))?);
            self.set(to, self.get(from));
            self.set(to.wrapping_add(8), self.get(from.wrapping_add(8)));
            place = place.wrapping_add(1);
        }
        self.set_half(DEPTH_AT, top);
        self.count(memory, name, begin, ticks);
        Some(top)
    }

    /// Adds a range to the counter of its name.
    #[inline]
    fn count(&self, memory: &Memory, name: u16, begin: u64, end: u64) {
        if name == 0 {
            return;
        }
        let place = usize::from(name) & COUNTER_MASK;
        let at = COUNTERS_AT.wrapping_add(place.wrapping_mul(COUNTER_BYTES));
        let key = self.get(at);
        let (total_at, last_at) = (at.wrapping_add(8), at.wrapping_add(16));
        let ticks = end.wrapping_sub(begin);
        if key & 0xffff_ffff == u64::from(name) {
            self.set(at, key.wrapping_add(1 << 32));
            self.set(total_at, self.get(total_at).wrapping_add(ticks));
        } else {
            self.flush_one(memory, at);
            self.set(total_at, ticks);
            self.set(at, u64::from(name) | (1 << 32));
        }
        self.set(last_at, end);
    }

    /// Adds a counter to the table of names and clears it.
    #[cold]
    fn flush_one(&self, memory: &Memory, at: usize) {
        let swap = |at: usize| {
            self.page
                .word(at)
                .map_or(0, |word: &AtomicU64| word.swap(0, Ordering::Relaxed))
        };
        let key = swap(at);
        let (ticks, last) = (swap(at.wrapping_add(8)), swap(at.wrapping_add(16)));
        let calls = key >> 32;
        if calls > 0 {
            names::add(memory, key & 0xffff_ffff, calls, ticks, last);
        }
    }

    /// Adds all counters to the table of names and clears them.
    pub(crate) fn flush(&self, memory: &Memory) {
        for place in 0..COUNTERS {
            self.flush_one(memory, COUNTERS_AT.wrapping_add(place.wrapping_mul(COUNTER_BYTES)));
        }
    }

    /// Takes over the ranges that are open in another segment of the same thread.
    pub(crate) fn inherit(&self, other: &Segment<'_>) {
        for place in 0..OPEN {
            let at = OPEN_AT.wrapping_add(place.wrapping_mul(OPEN_BYTES));
            self.set(at, other.get(at));
            self.set(at.wrapping_add(8), other.get(at.wrapping_add(8)));
        }
        self.set_half(DEPTH_AT, other.get_half(DEPTH_AT));
    }
}

/// Where the open range of that depth is; `None` for one that is too deep.
#[inline]
fn open_at(depth: u32) -> Option<usize> {
    let depth = usize::try_from(depth).ok()?;
    (depth < OPEN).then(|| OPEN_AT.wrapping_add(depth.wrapping_mul(OPEN_BYTES)))
}
