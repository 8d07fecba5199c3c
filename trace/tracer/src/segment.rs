//! A segment: records of one process in a row. Places are in bytes from its begin.

use crate::bytes::{halves, joined};

/// Bytes of a segment.
pub const BYTES: usize = 64 << 10;

/// Which claim of the segment this is (upper 32 bits, from 1) and its [state](State) (lower 32
/// bits), 64 bits in all; 0 while nobody had it.
pub const CLAIM_AT: usize = 0;
/// The process's slot, 32 bits.
pub const PROCESS_AT: usize = 8;
/// Which claim of that slot it is, 32 bits.
pub const SERIAL_AT: usize = 12;
/// The process as its container numbers it, 32 bits.
pub const PID_AT: usize = 16;
/// CUPTI's clock at the process's last moment before the claim, 64 bits.
pub const CUPTI_NS_AT: usize = 24;
/// `CLOCK_MONOTONIC` at that moment, 64 bits.
pub const MONOTONIC_NS_AT: usize = 32;
/// `CLOCK_REALTIME` at that moment, 64 bits.
pub const REALTIME_NS_AT: usize = 40;
/// The first slot.
pub const SLOTS_AT: usize = 128;
/// Slots.
pub const SLOTS: usize = (BYTES - SLOTS_AT) / crate::slot::BYTES;

/// Who has a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A process writes to it, or died before it was full.
    Open,
    /// Nobody writes to it any more: it may be taken.
    Closed,
    /// It is being taken: what it holds is of nobody.
    Taken,
}

impl State {
    /// As it stands in a claim.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Open => 1,
            Self::Closed => 2,
            Self::Taken => 3,
        }
    }

    /// The state of a claim; `None` for one that is none of them.
    pub const fn of(bits: u32) -> Option<Self> {
        match bits {
            1 => Some(Self::Open),
            2 => Some(Self::Closed),
            3 => Some(Self::Taken),
            _ => None,
        }
    }
}

/// The word of a claim.
pub fn claim(number: u32, state: State) -> u64 {
    joined(state.bits(), number)
}

/// Number and state of the word of a claim; no state where the word makes no sense.
pub fn of_claim(word: u64) -> (u32, Option<State>) {
    let (state, number) = halves(word);
    (number, State::of(state))
}

/// The number of the claim of a turn; never 0.
pub fn number_of_turn(turn: u64) -> u32 {
    halves(turn.wrapping_add(1)).0.max(1)
}
