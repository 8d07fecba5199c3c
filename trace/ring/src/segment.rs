//! A segment: what one thread recorded in a row. Places are in bytes from its begin.

/// Bytes of a segment: a page, so that no two threads write to one.
pub const BYTES: usize = 4096;

/// Which claim of the segment this is (upper 32 bits, from 1) and its [state](State) (lower 32
/// bits), 64 bits in all; 0 while nobody had it.
pub const CLAIM_AT: usize = 0;
/// Serial number of the thread, unique within the file, 64 bits.
pub const SERIAL_AT: usize = 8;
/// Events that the thread had recorded before, 64 bits.
pub const FIRST_EVENT_AT: usize = 16;
/// Process as its container numbers it, 32 bits.
pub const PROCESS_AT: usize = 24;
/// Thread as its container numbers it, 32 bits.
pub const THREAD_AT: usize = 28;
/// Ticks at the claim, 64 bits.
pub const TICKS_AT: usize = 32;
/// `CLOCK_MONOTONIC` at the claim in ns, 64 bits.
pub const MONOTONIC_AT: usize = 40;
/// `CLOCK_REALTIME` at the claim in ns, 64 bits.
pub const REALTIME_AT: usize = 48;
/// Slots that are used, 32 bits; for the thread alone, a reader looks at the slots.
pub const USED_AT: usize = 56;
/// Events in those slots, 32 bits; for the thread alone.
pub const EVENTS_AT: usize = 60;
/// Counters of names, [`COUNTERS`] of [`COUNTER_BYTES`].
pub const COUNTERS_AT: usize = 64;
/// Counters of names in a segment: what it adds to the table of names when it is left.
pub const COUNTERS: usize = 8;
/// A counter: number of the name 32 bits, ranges 32 bits, their ticks 64 bits, ticks at the end of
/// the last one 64 bits.
pub const COUNTER_BYTES: usize = 24;
/// Push/pop ranges of the thread that are open, [`OPEN`] of [`OPEN_BYTES`]; for the thread alone.
pub const OPEN_AT: usize = COUNTERS_AT + COUNTERS * COUNTER_BYTES;
/// Open ranges whose ends are counted; deeper ones are recorded and not counted.
pub const OPEN: usize = 13;
/// An open range: begin 64 bits, number of the name 32 bits, domain 32 bits.
pub const OPEN_BYTES: usize = 16;
/// How many ranges are open, 32 bits; for the thread alone.
pub const DEPTH_AT: usize = OPEN_AT + OPEN * OPEN_BYTES;
/// Ticks when the clocks were read again, 64 bits, written last and 0 meanwhile; 0 where they were
/// not.
pub const LATER_TICKS_AT: usize = DEPTH_AT + 8;
/// `CLOCK_MONOTONIC` at those ticks in ns, 64 bits.
pub const LATER_MONOTONIC_AT: usize = LATER_TICKS_AT + 8;
/// `CLOCK_REALTIME` at those ticks in ns, 64 bits.
pub const LATER_REALTIME_AT: usize = LATER_MONOTONIC_AT + 8;
/// The first slot.
pub const SLOTS_AT: usize = LATER_REALTIME_AT + 16;
/// Slots.
pub const SLOTS: usize = (BYTES - SLOTS_AT) / crate::slot::BYTES;

/// Who has a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A thread writes to it, or died before it was full.
    Open,
    /// A thread writes to it, or died before it was full, and the cursor has passed it once.
    Passed,
    /// Full: it may be taken.
    Full,
    /// It is being taken: what it holds is of nobody.
    Taken,
}

impl State {
    /// As it stands in a claim.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Open => 1,
            Self::Passed => 2,
            Self::Full => 3,
            Self::Taken => 4,
        }
    }

    /// The state of a claim; `None` for one that is none of them.
    pub const fn of(bits: u32) -> Option<Self> {
        match bits {
            1 => Some(Self::Open),
            2 => Some(Self::Passed),
            3 => Some(Self::Full),
            4 => Some(Self::Taken),
            _ => None,
        }
    }
}
