//! What windows cost, and how they ended, by class of pods.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::pod::Class;

/// What the windows of a schedule cost. Made anew by whoever asks for a plan, out of captures that ended since the schedule's spec was
/// last changed: so a change gives every class another chance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The account of each class that had a window.
    pub classes: BTreeMap<Class, Account>,
}

/// What the windows on pods of one class cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Windows, those that could not be measured included.
    pub windows: i64,
    /// Windows that could not be measured: nothing told how fast the pod was.
    pub blind_windows: i64,
    /// How much slower pods of the class are in a window; None where no window could be measured.
    pub slowdown: Option<Slowdown>,
    /// Seconds in windows, and in the pauses that opening and closing them made, of all pods of the class.
    pub window_seconds: i64,
    /// Seconds that pods of the class ran in the time that the ledger is about, in windows and outside of them.
    pub pod_seconds: i64,
    /// How its last windows ended, oldest first. Ten are enough.
    pub outcomes: Vec<Outcome>,
}

/// How much slower pods are while a window is open, in basis points of their speed, with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// The estimate.
    pub basis_points: i32,
    /// Lower end of the interval.
    pub low: i32,
    /// Upper end of the interval.
    pub high: i32,
}

/// How a window ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it ended.
    pub at: Timestamp,
    /// Whether it speaks against the class: it exceeded the budget (`OverBudget`), did not record what it should (`RequiredEventsMissing`), or
    /// its profiler was gone (`SessionGone`). A lost node or a full disk does not.
    pub failed: bool,
}

impl Account {
    /// How many of the last ten windows failed; None where there were fewer than ten.
    pub(crate) fn failures_of_last_ten(&self) -> Option<usize> {
        let last = self.outcomes.iter().rev().take(10);
        let failed = last.clone().filter(|outcome| outcome.failed).count();
        (last.count() == 10).then_some(failed)
    }

    /// How many windows failed since the last one that did not, and when the last of them ended.
    pub(crate) fn failures_in_a_row(&self) -> Option<(u32, Timestamp)> {
        let last = self.outcomes.last().filter(|outcome| outcome.failed)?;
        let failed = self.outcomes.iter().rev().take_while(|outcome| outcome.failed).count();
        Some((u32::try_from(failed).unwrap_or(u32::MAX), last.at))
    }
}
