//! A slot: a stretch of time in which each drawn pod has one window.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

/// A slot, by its start in seconds since 1970. Two slots of a schedule never have the same start,
/// not even after its interval was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(i64);

impl Slot {
    /// The slot that starts in that second.
    pub fn starting(at: Timestamp) -> Self {
        Self(at.as_second())
    }

    /// Start of the slot in seconds since 1970, as in the annotation of its sessions.
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// Start of the slot.
    pub fn start(self) -> Timestamp {
        let start = Timestamp::from_second(self.0);
        start.unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }

    /// The instant that many milliseconds after its start.
    pub(crate) fn plus_milliseconds(self, milliseconds: i64) -> Timestamp {
        later(self.start(), SignedDuration::from_millis(milliseconds))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for Slot {
    type Err = std::num::ParseIntError;

    /// Reads what [`Slot::seconds`] wrote.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The instant that long after another one; the last there is where that is beyond it.
pub(crate) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(at)
}

/// The instant that many seconds after another one.
pub(crate) fn seconds_later(at: Timestamp, seconds: i64) -> Timestamp {
    later(at, SignedDuration::from_secs(seconds))
}
