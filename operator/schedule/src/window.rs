//! A window that was, and what it cost.

use flopwatch_api::overhead::OverheadReason;
use jiff::Timestamp;

use crate::ledger::Slowdown;
use crate::pod::Class;

/// A window that was: what one session of the schedule did to its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The class whose account it is in.
    pub class: Class,
    /// UID of its pod.
    pub pod_uid: String,
    /// When its session ended.
    pub ended: Timestamp,
    /// How long it was open, in seconds; 0 where it failed before it opened.
    pub seconds: i64,
    /// How long its pod stood still while it was opened and closed, in milliseconds.
    pub stalled_milliseconds: i64,
    /// Whether it speaks against the class: see [`Outcome::failed`](crate::Outcome::failed).
    pub failed: bool,
    /// Effect of the window on the pod's speed, as far as it was measured.
    pub measured: Measured,
}

/// What a window told of its pod's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// How much slower it was.
    Slowdown(Slowdown),
    /// Something counted its work, and no more than that can be told, for that reason: too few
    /// bins, or a load that changed by itself.
    Inconclusive(OverheadReason),
    /// Nothing told how fast it was.
    Blind,
}

impl Measured {
    /// The slowdown, where there is one.
    pub const fn slowdown(self) -> Option<Slowdown> {
        match self {
            Self::Slowdown(slowdown) => Some(slowdown),
            Self::Inconclusive(_) | Self::Blind => None,
        }
    }

    /// Why nothing more can be told than that something counted its work.
    pub const fn inconclusive(self) -> Option<OverheadReason> {
        match self {
            Self::Inconclusive(reason) => Some(reason),
            Self::Slowdown(_) | Self::Blind => None,
        }
    }
}
