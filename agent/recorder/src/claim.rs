//! Which segment a thread writes to, and how it gets the next one.
//!
//! Segments are taken in turn, by a cursor that all share: one that is full, one whose thread has
//! ended, and one that the cursor has passed before and whose thread has been quiet for a while
//! since. Such a thread notices at its next event, and takes another one.
#![allow(unsafe_code, reason = "a segment's address is kept in a thread's memory")]

use core::sync::atomic::Ordering;

use flopwatch_injected::kernel;
use flopwatch_ring::header::{CURSOR_AT, Count, SERIAL_AT};
use flopwatch_ring::segment::{
    CLAIM_AT, EVENTS_AT, FIRST_EVENT_AT, LATER_TICKS_AT, MONOTONIC_AT, PROCESS_AT, REALTIME_AT,
    SERIAL_AT as OF_SERIAL_AT, SLOTS, State, THREAD_AT, TICKS_AT, USED_AT,
};

use crate::clock;
use crate::memory::Page;
use crate::recorder::Recorder;
use crate::segment::Segment;
use crate::thread::Thread;

/// Segments that are looked at for one event: those of many threads that run may stand in a row.
const MAX_STEPS: usize = 256;
/// Ticks without an event after which a thread may lose its segment: a second or two of a counter,
/// four of the kernel's clock.
const QUIET_TICKS: u64 = 1 << 32;

/// A segment of the calling thread with room, and the slots that are used; `None` where there is
/// none to be had.
#[inline]
pub(crate) fn segment(recorder: &'static Recorder, slots: usize) -> Option<(Segment<'static>, usize)> {
    Thread::with(|thread| {
        if let Some(own) = own(recorder, thread) {
            let used = own.used();
            if used.wrapping_add(slots) <= SLOTS {
                return Some((own, used));
            }
        }
        next(recorder, thread)
    })
}

/// The segment that the thread has, unless somebody took it or this is the child of the process
/// that had it.
#[inline]
fn own(recorder: &Recorder, thread: &Thread) -> Option<Segment<'static>> {
    let epoch = recorder.epoch.now();
    let page = thread.page.get()?;
    // SAFETY: the address is one of a segment, whose mapping stays for good.
    let page: &'static Page = unsafe { page.as_ref() };
    let claim = thread.claim.get();
    let segment = Segment { page, claim };
    (epoch != 0 && epoch == thread.epoch.get() && segment.get(CLAIM_AT) >> 32 == u64::from(claim)).then_some(segment)
}

#[cold]
#[inline(never)]
fn next(recorder: &'static Recorder, thread: &Thread) -> Option<(Segment<'static>, usize)> {
    let memory = &recorder.memory;
    let (epoch, is_new) = recorder.epoch.begin();
    if is_new {
        memory.count(Count::Processes);
    }
    let full = own(recorder, thread);
    let Some(next) = take(recorder) else {
        memory.count(Count::EventsWithoutSegment);
        return None;
    };
    next.flush(memory);
    memory.add(Count::EventsOverwritten, next.get_half(EVENTS_AT));
    let moment = clock::moment(recorder.ticks_are_tsc);
    next.set(TICKS_AT, moment.ticks);
    next.set(MONOTONIC_AT, moment.monotonic_ns);
    next.set(REALTIME_AT, moment.realtime_ns);
    next.set_later(moment);
    next.set_half(PROCESS_AT, kernel::process());
    next.set_half(THREAD_AT, kernel::thread());
    next.set_half(USED_AT, 0);
    next.set_half(EVENTS_AT, 0);
    let first_event = if let Some(full) = full {
        next.inherit(&full);
        let events = u64::from(full.get_half(EVENTS_AT));
        full.get(FIRST_EVENT_AT).wrapping_add(events)
    } else {
        thread.serial.set(memory.next(SERIAL_AT).wrapping_add(1));
        next.set_half(flopwatch_ring::segment::DEPTH_AT, 0);
        0
    };
    next.set(OF_SERIAL_AT, thread.serial.get());
    next.set(FIRST_EVENT_AT, first_event);
    turn(&next, State::Open);
    if let Some(full) = full {
        full.flush(memory);
        turn(&full, State::Full);
    }
    thread.page.set(Some(next.page.into()));
    thread.claim.set(next.claim);
    thread.epoch.set(epoch);
    Some((next, 0))
}

/// Changes the state of a segment, as long as the claim is this one.
fn turn(segment: &Segment<'_>, state: State) {
    let Some(word) = segment.page.word(CLAIM_AT) else {
        return;
    };
    let mut known = word.load(Ordering::Relaxed);
    // The cursor can pass a claim once: the second try is the last one.
    for _ in 0..2 {
        if known >> 32 != u64::from(segment.claim) {
            return;
        }
        match word.compare_exchange(
            known,
            claimed(segment.claim, state),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            Ok(_) => return,
            Err(other) => known = other,
        }
    }
}

fn claimed(claim: u32, state: State) -> u64 {
    (u64::from(claim) << 32) | u64::from(state.bits())
}

/// Takes the next segment whose turn it is.
fn take(recorder: &Recorder) -> Option<Segment<'static>> {
    let memory = &recorder.memory;
    let segments = u64::try_from(memory.layout().segments).ok()?;
    for _ in 0..MAX_STEPS {
        let at = memory.next(CURSOR_AT).checked_rem(segments)?;
        let page = memory.segment(usize::try_from(at).ok()?)?;
        // SAFETY: the segment's mapping stays for good.
        let page: &'static Page = unsafe { page.as_ref() };
        let word = page.word(CLAIM_AT)?;
        let known = word.load(Ordering::Relaxed);
        let claim = u32::try_from(known >> 32).unwrap_or(0);
        let held = Segment { page, claim };
        let is_free = match State::of(u32::try_from(known & 0xffff_ffff).unwrap_or(0)) {
            Some(State::Open) => is_of_nobody(&held),
            Some(State::Passed) => is_of_nobody(&held) || is_quiet(recorder, &held),
            // Until whoever takes it has said who that is. One that is killed over it leaves it so:
            // a page for each such moment of a microsecond.
            Some(State::Taken) => continue,
            // Nobody's, or what somebody else wrote there.
            Some(State::Full) | None => true,
        };
        let (next, state) = if is_free {
            (claim.wrapping_add(1).max(1), State::Taken)
        } else {
            (claim, State::Passed)
        };
        let taken = word.compare_exchange(known, claimed(next, state), Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() && is_free {
            return Some(Segment { page, claim: next });
        }
    }
    None
}

/// Whether the thread that had a segment has ended.
fn is_of_nobody(segment: &Segment<'_>) -> bool {
    kernel::has_ended(segment.get_half(PROCESS_AT), segment.get_half(THREAD_AT))
}

/// Whether a thread has written nothing for so long that it is not in the middle of it.
fn is_quiet(recorder: &Recorder, segment: &Segment<'_>) -> bool {
    let now = clock::ticks(recorder.ticks_are_tsc);
    now.wrapping_sub(segment.get(LATER_TICKS_AT)) > QUIET_TICKS
}

/// A number that no other thread of any process of the file gives.
pub(crate) fn unique(recorder: &'static Recorder) -> Option<u64> {
    let (segment, _) = segment(recorder, 1)?;
    let events = segment
        .get(FIRST_EVENT_AT)
        .wrapping_add(u64::from(segment.get_half(EVENTS_AT)));
    Some((segment.get(OF_SERIAL_AT) << 40) | (events & 0xff_ffff_ffff))
}
