//! Writes records into segments of the file, and takes segments in turn.
//!
//! A segment is taken by a cursor that all processes share: one that nobody had, that is closed, or
//! whose process has ended. One that a living process writes to is passed over. A buffer's last
//! segment stays open for the next buffer.
//!
//! The file is larger than the processor's caches: a slot is out of them when its turn comes again.
//! So the slots that are filled next are brought near while others are filled, and none of another
//! segment, which may be another thread's.
//!
//! The pages of a segment that the process takes for the first time are mapped by one call of the
//! kernel: a fault for each takes longer than the records on it.

use core::sync::atomic::{AtomicU64, Ordering};

use flopwatch_injected::kernel;
use flopwatch_injected::memory::LINE_BYTES;
use flopwatch_tracer_file::MAX_BYTES;
use flopwatch_tracer_file::header::CURSOR_AT;
use flopwatch_tracer_file::process::Count;
use flopwatch_tracer_file::record::{Call, Kernel, Record};
use flopwatch_tracer_file::segment::{
    self, CLAIM_AT, CUPTI_NS_AT, MONOTONIC_NS_AT, PID_AT, PROCESS_AT, REALTIME_NS_AT, SERIAL_AT, SLOTS, SLOTS_AT,
    State, claim, number_of_turn, of_claim,
};
use flopwatch_tracer_file::slot::{self, Kind, Words, words};

use crate::file::TraceFile;
use crate::tracer::Tracer;

/// Segments that are looked at for one that is free.
const MAX_STEPS: usize = 256;
/// Slots by which one is brought near before it is filled: some 300 ns of work, as long as memory
/// takes where the address of the page is to be found too.
const SLOTS_AHEAD: usize = 16;

// A slot is a line, whose last word is the tag.
const _: () = assert!(slot::BYTES == LINE_BYTES && slot::TAG_AT + 8 == LINE_BYTES && SLOTS_AT & (LINE_BYTES - 1) == 0);

/// Words with a bit for each segment of the largest file.
const MAPPED_WORDS: usize = MAX_BYTES / segment::BYTES / 64;

/// The segments whose pages this process has had mapped, a bit each.
static MAPPED: [AtomicU64; MAPPED_WORDS] = [const { AtomicU64::new(0) }; MAPPED_WORDS];

/// The segment that was left open: its claim (32 bits), index (16) and used slots (16); 0 for none.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// A segment that is written to.
#[derive(Clone, Copy)]
struct Open {
    index: usize,
    begin: usize,
    claim: u32,
    used: usize,
}

/// Writes records of one buffer.
pub(crate) struct Writer {
    tracer: &'static Tracer,
    open: Option<Open>,
    records: u64,
    unplaced: u64,
}

impl Writer {
    /// Goes on with the segment that was left open, where there is one.
    pub(crate) fn new(tracer: &'static Tracer) -> Self {
        Self {
            tracer,
            open: Open::of_word(&tracer.file, LEFT.swap(0, Ordering::Acquire)),
            records: 0,
            unplaced: 0,
        }
    }

    /// Writes a record.
    pub(crate) fn put(&mut self, record: &Record) {
        let (first, (kind, body)) = record.slots();
        let first = first.map(|(kind, body)| (kind, words(&body)));
        let first = first.as_ref().map(|(kind, words)| (*kind, words));
        self.fill(first, kind, &words(&body));
    }

    /// Writes a kernel. Most records are kernels or calls, and the compiler leaves out what others
    /// would need.
    #[inline]
    pub(crate) fn kernel(&mut self, kernel: &Kernel) {
        let [(shape_kind, shape), (kind, run)] = kernel.slots();
        self.fill(Some((shape_kind, &words(&shape))), kind, &words(&run));
    }

    /// Writes a call.
    #[inline]
    pub(crate) fn call(&mut self, call: &Call) {
        let (kind, body) = call.slot();
        self.fill(None, kind, &words(&body));
    }

    /// Fills the slot of a record, and the one before it where it takes two.
    #[inline]
    fn fill(&mut self, first: Option<(Kind, &Words)>, kind: Kind, words: &Words) {
        let file = &self.tracer.file;
        let slots = if first.is_some() { 2 } else { 1 };
        let Some(open) = self.room(slots) else {
            self.unplaced = self.unplaced.wrapping_add(1);
            return;
        };
        if let Some((kind, words)) = first {
            open.put(file, kind, words);
        }
        open.put(file, kind, words);
        self.records = self.records.wrapping_add(1);
    }

    /// A segment with room for so many slots.
    #[inline]
    fn room(&mut self, slots: usize) -> Option<&mut Open> {
        if self.open.is_none_or(|open| open.used.wrapping_add(slots) > SLOTS) {
            self.advance();
        }
        self.open.as_mut()
    }

    /// Closes the segment that is full, and takes another.
    #[cold]
    #[inline(never)]
    fn advance(&mut self) {
        if let Some(full) = self.open.take() {
            full.close(&self.tracer.file);
        }
        self.open = take(self.tracer);
    }

    /// Leaves the segment open for the next buffer, and counts.
    pub(crate) fn end(self) {
        let slot = &self.tracer.slot;
        slot.count(Count::Records, self.records);
        slot.count(Count::RecordsUnplaced, self.unplaced);
        if let Some(open) = self.open {
            leave(&self.tracer.file, open.word());
        }
    }
}

/// Leaves a segment open, or none for 0; the one that was left before is closed.
fn leave(file: &TraceFile, word: u64) {
    if let Some(other) = Open::of_word(file, LEFT.swap(word, Ordering::AcqRel)) {
        other.close(file);
    }
}

/// Closes the segment that was left open.
pub(crate) fn close(tracer: &Tracer) {
    leave(&tracer.file, 0);
}

impl Open {
    fn word(&self) -> u64 {
        let part = |number: usize| u64::try_from(number & 0xffff).unwrap_or(0);
        (u64::from(self.claim) << 32) | (part(self.index) << 16) | part(self.used)
    }

    fn of_word(file: &TraceFile, word: u64) -> Option<Self> {
        let part = |shift: u32| usize::try_from(word.wrapping_shr(shift) & 0xffff).ok();
        let index = part(16)?;
        (word != 0).then_some(Self {
            index,
            begin: file.layout.segment(index)?,
            claim: u32::try_from(word >> 32).ok()?,
            used: part(0)?,
        })
    }

    /// Where a slot is in the file.
    #[inline]
    fn place(&self, slot: usize) -> usize {
        let within = SLOTS_AT.wrapping_add(slot.wrapping_mul(slot::BYTES));
        self.begin.wrapping_add(within)
    }

    /// Fills the next slot, its tag last.
    #[inline]
    fn put(&mut self, file: &TraceFile, kind: Kind, words: &Words) {
        let ahead = self.used.wrapping_add(SLOTS_AHEAD);
        if ahead < SLOTS {
            file.prefetch(self.place(ahead));
        }
        if let Some([body @ .., tag]) = file.line(self.place(self.used)) {
            for (to, from) in body.iter().zip(words) {
                to.store(*from, Ordering::Relaxed);
            }
            tag.store(slot::tag(self.claim, kind), Ordering::Release);
        }
        self.used = self.used.wrapping_add(1);
    }

    fn close(&self, file: &TraceFile) {
        let (open, closed) = (claim(self.claim, State::Open), claim(self.claim, State::Closed));
        if let Some(word) = file.word(self.begin.wrapping_add(CLAIM_AT)) {
            // Where it is no longer ours, it is no longer ours to close.
            word.compare_exchange(open, closed, Ordering::Release, Ordering::Relaxed)
                .ok();
        }
    }
}

/// Takes the next segment that is free; `None` where there is none to be had.
#[cold]
#[inline(never)]
fn take(tracer: &Tracer) -> Option<Open> {
    let file = &tracer.file;
    let segments = u64::try_from(file.layout.segments).ok()?;
    for _ in 0..MAX_STEPS {
        let turn = file.add(CURSOR_AT, 1);
        let index = usize::try_from(turn.checked_rem(segments)?).ok()?;
        let begin = file.layout.segment(index)?;
        let word = file.word(begin.wrapping_add(CLAIM_AT))?;
        let known = word.load(Ordering::Relaxed);
        let is_free = match of_claim(known).1 {
            Some(State::Open) => {
                let pid = file.get_half(begin.wrapping_add(PID_AT));
                kernel::has_ended(pid, pid)
            }
            // Until whoever takes it has said who that is. A process that is killed over it leaves
            // it so, a segment for each such moment.
            Some(State::Taken) => false,
            Some(State::Closed) | None => true,
        };
        let number = number_of_turn(turn);
        let taken = claim(number, State::Taken);
        if is_free
            && word
                .compare_exchange(known, taken, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            let (moment, set) = (tracer.slot.moment(), |place: usize, value| {
                file.set_half(begin.wrapping_add(place), value);
            });
            set(PROCESS_AT, tracer.slot.index);
            set(SERIAL_AT, tracer.slot.serial);
            set(PID_AT, tracer.slot.pid());
            file.set(begin.wrapping_add(CUPTI_NS_AT), moment.cupti_ns);
            file.set(begin.wrapping_add(MONOTONIC_NS_AT), moment.monotonic_ns);
            file.set(begin.wrapping_add(REALTIME_NS_AT), moment.realtime_ns);
            word.store(claim(number, State::Open), Ordering::Release);
            // Once it says whose it is: a process that is killed meanwhile leaves it to others.
            map(file, index, begin);
            let open = Open {
                index,
                begin,
                claim: number,
                used: 0,
            };
            for slot in 0..SLOTS_AHEAD {
                file.prefetch(open.place(slot));
            }
            return Some(open);
        }
    }
    None
}

/// Maps the pages of a segment, the first time that this process has it.
fn map(file: &TraceFile, index: usize, begin: usize) {
    let bit = 1_u64.wrapping_shl(u32::try_from(index & 63).unwrap_or(0));
    let Some(word) = MAPPED.get(index >> 6) else { return };
    if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        file.populate(begin, segment::BYTES);
    }
}
