//! Rounds of readings for whoever keeps them all the time, whether or not a capture records.

use std::sync::Arc;
use std::time::Duration;

use crate::sampler::Shared;
use crate::snapshot::UnitReading;

/// Part of the time that reading may take of the sampling thread for an observer: after a round
/// that took longer than this part of the interval, rounds are left out until it holds again.
pub(crate) const SHARE_DIVISOR: u32 = 10;

/// Rounds of an observer of which one reads what changes slowly or costs most: processes and
/// temperatures.
pub(crate) const WHOLE_ROUNDS: u64 = 5;

/// One round of readings.
#[derive(Debug)]
pub struct Round<'a> {
    /// Whether processes and temperatures were read too, as in each fifth round at least.
    pub whole: bool,
    /// What was read, by unit; empty where no GPU answers.
    pub readings: &'a [UnitReading],
    /// Rounds that were due since the last one and gave nothing: NVML was lost, or a round took too
    /// long. This one counts where it failed.
    pub missed: u64,
    /// Processor time that reading took.
    pub took: Duration,
}

/// Which rounds an observer is to be given next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every one.
    Every,
    /// Those alone in which processes are read too: the others are not read for it.
    Whole,
}

/// Takes rounds in. It is called on the sampling thread, and should return in well under a
/// millisecond.
pub trait Observer: Send + Sync {
    /// A round was read.
    fn take(&self, round: &Round<'_>) -> Wanted;
}

/// An observer under way; it is given no more rounds once this is dropped.
#[derive(Debug)]
pub struct Observation {
    pub(crate) id: u64,
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.shared.unsubscribe(self.id);
    }
}

/// Rounds that an observer is not given from the round of that number on.
pub(crate) fn unwanted(wanted: Wanted, next: u64) -> u64 {
    match wanted {
        Wanted::Every => 0,
        Wanted::Whole => next.next_multiple_of(WHOLE_ROUNDS) - next,
    }
}

/// Rounds to leave out after one that took this long, so that reading stays within its share of the
/// time.
pub(crate) fn left_out(took: Duration, interval: Duration) -> u64 {
    let rounds = took.saturating_mul(SHARE_DIVISOR).as_nanos() / interval.as_nanos().max(1);
    u64::try_from(rounds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_of_whole_rounds_is_given_each_fifth() {
        let from = |wanted| [0, 1, 4, 5, 6].map(|next| unwanted(wanted, next));
        assert_eq!(from(Wanted::Whole), [0, 4, 1, 0, 4]);
        assert_eq!(from(Wanted::Every), [0; 5]);
    }

    #[test]
    fn a_round_that_took_more_than_a_tenth_of_the_interval_leaves_the_next_ones_out() {
        let interval = Duration::from_millis(100);
        let after = |milliseconds| left_out(Duration::from_millis(milliseconds), interval);
        assert_eq!([0, 1, 9, 10, 11, 25, 1000].map(after), [0, 0, 0, 1, 1, 2, 100]);
    }
}
