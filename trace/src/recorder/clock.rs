//! From ticks to nanoseconds.

use std::time::Duration;

/// One moment on all clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) ticks: u64,
    pub(super) monotonic_ns: u64,
    pub(super) realtime_ns: u64,
}

/// Two anchors that are further apart than this tell the pace of the counter; closer ones do with
/// the moment when the file was made.
const MIN_ANCHOR_DISTANCE_NS: u64 = 100_000_000;
/// Ticks in a microsecond that a counter may have: 10 MHz to 100 GHz.
const PLAUSIBLE_PACES: std::ops::RangeInclusive<u128> = 10..=100_000;
/// How far from the time of its first anchor an event may be.
const MAX_EVENT_DISTANCE_S: u64 = Duration::from_hours(24 * 3660).as_secs();

/// A straight line from ticks to the time since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    from: Anchor,
    /// Nanoseconds in so many ticks.
    nanoseconds: u64,
    ticks: u64,
    /// What the line gives at its anchor.
    utc_ns: u64,
}

impl Clock {
    /// The clock of a file that was made at `made` and holds `anchors`.
    pub(super) fn new(are_tsc: bool, made: Anchor, anchors: &[Anchor]) -> Self {
        let by_ticks = |anchor: &&Anchor| anchor.ticks;
        let first = anchors.iter().min_by_key(by_ticks).copied().unwrap_or(made);
        let last = anchors.iter().max_by_key(by_ticks).copied().unwrap_or(made);
        let far = last.monotonic_ns.saturating_sub(first.monotonic_ns) >= MIN_ANCHOR_DISTANCE_NS;
        let from = if far { first } else { made };
        let ticks = last.ticks.saturating_sub(from.ticks);
        let nanoseconds = last.monotonic_ns.saturating_sub(from.monotonic_ns);
        let pace = (u128::from(ticks) * 1000).checked_div(u128::from(nanoseconds));
        let plausible = pace.is_some_and(|pace| PLAUSIBLE_PACES.contains(&pace));
        // Otherwise it is a clock of nanoseconds, or one that tells nothing.
        let (ticks, nanoseconds) = if are_tsc && plausible {
            (ticks, nanoseconds)
        } else {
            (1, 1)
        };
        // The line goes through the last anchor: what is asked for is mostly the end.
        Self {
            from: last,
            nanoseconds,
            ticks,
            utc_ns: last.realtime_ns,
        }
    }

    /// The time of `ticks` since the Unix epoch; `None` for what is years away from everything
    /// else.
    pub(super) fn utc_ns(&self, ticks: u64) -> Option<u64> {
        let ticks = i128::from(ticks) - i128::from(self.from.ticks);
        let passed = (ticks * i128::from(self.nanoseconds)).div_euclid(i128::from(self.ticks.max(1)));
        let longest = i128::from(MAX_EVENT_DISTANCE_S) * 1_000_000_000;
        let near = (-longest..=longest).contains(&passed);
        near.then(|| u64::try_from(i128::from(self.utc_ns) + passed).ok())?
    }

    /// So many ticks in ns.
    pub(super) fn length_ns(&self, ticks: u64) -> u64 {
        let length = u128::from(ticks) * u128::from(self.nanoseconds) / u128::from(self.ticks.max(1));
        u64::try_from(length).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(ticks: u64, ns: u64) -> Anchor {
        Anchor {
            ticks,
            monotonic_ns: ns,
            realtime_ns: ns + 1_000_000_000_000,
        }
    }

    #[test]
    fn ticks_between_and_behind_anchors_keep_their_pace() {
        let clock = Clock::new(
            true,
            anchor(0, 0),
            &[anchor(3_000, 1_000), anchor(900_003_000, 300_001_000)],
        );
        assert_eq!(clock.utc_ns(3_000), Some(1_000_000_001_000));
        assert_eq!(clock.utc_ns(450_003_000), Some(1_000_150_001_000));
        assert_eq!(clock.utc_ns(1_800_003_000), Some(1_000_600_001_000));
    }

    #[test]
    fn anchors_that_are_close_are_helped_by_when_the_file_was_made() {
        let clock = Clock::new(true, anchor(0, 0), &[anchor(2_000_000, 1_000_000)]);
        assert_eq!(clock.utc_ns(4_000_000), Some(1_000_002_000_000));
    }

    #[test]
    fn anchors_that_make_no_sense_leave_a_clock_that_does() {
        for anchors in [
            [anchor(0, 0), anchor(u64::MAX, 1)],
            [anchor(5, 1 << 60), anchor(6, 0)],
            [anchor(7, 7), anchor(7, 7)],
        ] {
            let clock = Clock::new(true, anchor(1 << 40, 3), &anchors);
            for ticks in [0, 1 << 30, u64::MAX] {
                assert!(clock.utc_ns(ticks).is_none_or(|ns| ns > 0));
            }
        }
    }
}
