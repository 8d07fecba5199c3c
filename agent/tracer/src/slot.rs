//! The slot in which the process says what it does.

use core::sync::atomic::{Ordering, fence};

use flopwatch_injected::kernel::{self, File};
use flopwatch_injected::{Path, number};
use flopwatch_tracer_file::Moment;
use flopwatch_tracer_file::header::PROCESSES_LEFT_OUT_AT;
use flopwatch_tracer_file::process::{
    BYTES, CALL_SINCE_AT, CLAIM_AT, CUPTI_NS_AT, Count, GENERATION_AT, HELD_AT, HOLDER_AT, Holder, MONOTONIC_NS_AT,
    PHASE_AT, PID_AT, Phase, REALTIME_NS_AT, REASON_AT, RESULT_AT, Reason, SLOTS, STARTED_AT, TAKEN, USED, claim,
};

use crate::file::TraceFile;

/// Why the process does not record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    /// CUPTI's code; 0 for none.
    pub(crate) result: u32,
    pub(crate) holder: Holder,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            result: 0,
            holder: Holder::None,
        }
    }
}

/// The process's slot.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    file: TraceFile,
    at: usize,
    /// Index of the slot.
    pub(crate) index: u32,
    /// Which claim of the slot this is.
    pub(crate) serial: u32,
    pid: u32,
}

impl Slot {
    /// Takes a slot: one that nobody had, or one whose process has ended or was this one with the
    /// program that it ran before.
    pub(crate) fn take(file: TraceFile) -> Option<Self> {
        let pid = kernel::process();
        let started = started(None)?;
        let places = || (0..SLOTS).filter_map(|index| Some((index, file.layout.process(index)?)));
        for (_, at) in places() {
            if is_of(file, at, pid, started) {
                file.set_half(at.wrapping_add(PHASE_AT), Phase::Replaced.bits());
            }
        }
        let free = || places().find(|(_, at)| file.get(at.wrapping_add(CLAIM_AT)) == 0);
        // The one of the oldest process: what the others counted stays to be read.
        let oldest = || {
            let ended = places().filter(|(_, at)| has_ended(file, *at));
            ended.min_by_key(|(_, at)| file.get(at.wrapping_add(STARTED_AT)))
        };
        // Another process may be faster each time, but does not come again.
        for _ in 0..SLOTS {
            let Some((index, at)) = free().or_else(oldest) else {
                break;
            };
            if let Some(serial) = claim_slot(file, at) {
                let index = u32::try_from(index).ok()?;
                let slot = Self {
                    file,
                    at,
                    index,
                    serial,
                    pid,
                };
                slot.fill(started);
                return Some(slot);
            }
        }
        file.add(PROCESSES_LEFT_OUT_AT, 1);
        None
    }

    fn fill(&self, started: u64) {
        for place in (8..BYTES).step_by(8) {
            self.file.set(self.at.wrapping_add(place), 0);
        }
        self.set(PID_AT, self.pid);
        self.file.set(self.at.wrapping_add(STARTED_AT), started);
        if let Some(word) = self.file.word(self.at.wrapping_add(CLAIM_AT)) {
            word.store(claim(self.serial, USED), Ordering::Release);
        }
    }

    /// The process as its PID namespace numbers it.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes a number of the slot.
    pub(crate) fn set(&self, place: usize, value: u32) {
        self.file.set_half(self.at.wrapping_add(place), value);
    }

    /// Says what the process does for an order, after everything that belongs to it.
    pub(crate) fn enter(&self, phase: Phase, generation: u32) {
        if phase != Phase::Refused && phase != Phase::Stuck {
            self.explain(Reason::None.into());
        }
        self.set(GENERATION_AT, generation);
        if let Some(word) = self.file.half(self.at.wrapping_add(PHASE_AT)) {
            word.store(phase.bits(), Ordering::Release);
        }
    }

    /// Says that the process does not record for an order, and why.
    pub(crate) fn refuse(&self, refusal: Refusal, generation: u32) {
        self.explain(refusal);
        let is_stuck = refusal.reason == Reason::Stuck;
        self.enter(if is_stuck { Phase::Stuck } else { Phase::Refused }, generation);
    }

    fn explain(&self, refusal: Refusal) {
        self.set(REASON_AT, refusal.reason.bits());
        self.set(RESULT_AT, refusal.result);
        self.set(HOLDER_AT, refusal.holder.bits());
    }

    /// Counts some.
    pub(crate) fn count(&self, what: Count, more: u64) {
        if more > 0 {
            self.file.add(self.at.wrapping_add(what.at()), more);
        }
    }

    /// Says that CUPTI has one more of our buffers.
    pub(crate) fn lend(&self) {
        self.file.add(self.at.wrapping_add(HELD_AT), 1);
    }

    /// Says that CUPTI has one less of our buffers, whose records are in the file.
    pub(crate) fn take_back(&self) {
        // As -1: the sum wraps.
        self.file.add(self.at.wrapping_add(HELD_AT), u64::MAX);
    }

    /// Says since when the library is in a call of CUPTI; 0 for no longer.
    pub(crate) fn set_call_since(&self, monotonic_ns: u64) {
        self.file.set(self.at.wrapping_add(CALL_SINCE_AT), monotonic_ns);
    }

    /// Since when the library is in a call of CUPTI; 0 for not.
    pub(crate) fn call_since(&self) -> u64 {
        self.file.get(self.at.wrapping_add(CALL_SINCE_AT))
    }

    /// Tells a moment; CUPTI's clock is written last, and 0 meanwhile.
    pub(crate) fn set_moment(&self, moment: Moment) {
        let place = |place| self.at.wrapping_add(place);
        self.file.set(place(CUPTI_NS_AT), 0);
        fence(Ordering::Release);
        self.file.set(place(MONOTONIC_NS_AT), moment.monotonic_ns);
        self.file.set(place(REALTIME_NS_AT), moment.realtime_ns);
        fence(Ordering::Release);
        self.file.set(place(CUPTI_NS_AT), moment.cupti_ns);
    }

    /// The last moment; without CUPTI's clock where none was told.
    pub(crate) fn moment(&self) -> Moment {
        let get = |place| self.file.get(self.at.wrapping_add(place));
        let moment = Moment {
            cupti_ns: get(CUPTI_NS_AT),
            monotonic_ns: get(MONOTONIC_NS_AT),
            realtime_ns: get(REALTIME_NS_AT),
        };
        fence(Ordering::Acquire);
        if get(CUPTI_NS_AT) == moment.cupti_ns {
            moment
        } else {
            Moment::default()
        }
    }
}

/// Begins a claim of a slot and gives its number; `None` where another process was faster.
fn claim_slot(file: TraceFile, at: usize) -> Option<u32> {
    let word = file.word(at.wrapping_add(CLAIM_AT))?;
    let known = word.load(Ordering::Relaxed);
    let serial = u32::try_from(known >> 32).unwrap_or(0).wrapping_add(1).max(1);
    word.compare_exchange(known, claim(serial, TAKEN), Ordering::Acquire, Ordering::Relaxed)
        .ok()
        .map(|_| serial)
}

fn is_used(file: TraceFile, at: usize) -> bool {
    file.get(at.wrapping_add(CLAIM_AT)) & 0xffff_ffff == u64::from(USED)
}

/// Whether a slot is one of a process.
fn is_of(file: TraceFile, at: usize, pid: u32, began: u64) -> bool {
    is_used(file, at) && file.get_half(at.wrapping_add(PID_AT)) == pid && file.get(at.wrapping_add(STARTED_AT)) == began
}

/// Whether nobody will write to a used slot any more. Of a process that `/proc` hides, only the
/// kernel says whether it is there.
fn has_ended(file: TraceFile, at: usize) -> bool {
    let pid = file.get_half(at.wrapping_add(PID_AT));
    let is_over = file.get_half(at.wrapping_add(PHASE_AT)) == Phase::Replaced.bits()
        || kernel::has_ended(pid, pid)
        || started(Some(pid)).is_some_and(|began| began != file.get(at.wrapping_add(STARTED_AT)));
    is_used(file, at) && is_over
}

/// When a process began, in ticks since the boot: this one without a number.
fn started(pid: Option<u32>) -> Option<u64> {
    let mut path = Path::of(&[b"/proc/"])?;
    match pid {
        Some(pid) => path.push_decimal(pid)?,
        None => path.push(b"self")?,
    }
    path.push(b"/stat")?;
    let mut text = [0; 512];
    let bytes = File::open_to_read(path.text())?.read_at(0, &mut text)?;
    started_of(text.get(..bytes)?)
}

/// The field of `/proc/PID/stat` that says when the process began.
fn started_of(stat: &[u8]) -> Option<u64> {
    // The name of the program stands in parentheses, and may have any bytes.
    let behind = stat.iter().rposition(|byte| *byte == b')')?.checked_add(2)?;
    let mut fields = stat.get(behind..)?.split(|byte| *byte == b' ');
    u64::try_from(number(fields.nth(19)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_begin_of_a_process_is_the_twenty_second_field() {
        let stat =
            b"77 (a ) 1 b) S 1 77 77 0 -1 4194304 99 0 0 0 1 2 0 0 20 0 5 0 123456 9000 10 18446744073709551615 1";
        assert_eq!(started_of(stat), Some(123_456));
        assert_eq!(started_of(b"77 (cut) S 1"), None);
        assert!(started(None).is_some_and(|began| began > 0));
        assert_eq!(started(Some(std::process::id())), started(None));
    }
}
