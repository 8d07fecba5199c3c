//! How much of the time the kernels of a container are recorded: as much as its pod asks for, and
//! no more than their number allows.

use std::collections::VecDeque;
use std::ops::Range;

use flopwatch_pipeline::transform::SampledSeries;

/// Records of a container's programs in a second of the clock, beyond which less of the time is
/// recorded. At the 40 ns of a processor that one may take at most (`cargo xtask bench tracer`),
/// these are 0.4 % of a core.
pub(super) const MAX_RECORDS_PER_SECOND: u64 = 100_000;
/// All of the time, in percent.
pub(super) const WHOLE_PERCENT: u32 = 100;
/// Shares that are kept: those of ten minutes.
const MAX_SHARES: usize = 600;
const PER_SECOND: u128 = 1_000_000_000;

/// What was ordered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ordered {
    at_utc_ns: u64,
    percent: u32,
    /// Records that the programs had written by then.
    records: u64,
}

/// The pace of one container.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last: Option<Ordered>,
    /// Since when which share of the time was recorded, in percent.
    shares: VecDeque<(u64, u32)>,
}

impl Pace {
    /// The share of the next second, in percent, of `asked` at most, by what the programs have
    /// written so far.
    pub(super) fn next(&mut self, asked: u32, records: u64, now_utc_ns: u64) -> u32 {
        let measured = self.last.map(|last| {
            let elapsed = now_utc_ns.saturating_sub(last.at_utc_ns);
            let recorded = u128::from(elapsed) * u128::from(last.percent) / u128::from(WHOLE_PERCENT);
            allowed(records.saturating_sub(last.records), recorded)
        });
        let percent = asked.min(measured.unwrap_or(WHOLE_PERCENT)).max(1);
        self.last = Some(Ordered {
            at_utc_ns: now_utc_ns,
            percent,
            records,
        });
        self.note(now_utc_ns, percent);
        percent
    }

    /// Whether less of the time is recorded than `asked`, for the number of records.
    pub(super) fn is_cut(&self, asked: u32) -> bool {
        self.last.is_some_and(|last| last.percent < asked)
    }

    /// Nothing is recorded from now on.
    pub(super) fn rest(&mut self, now_utc_ns: u64) {
        if self.last.take().is_some() {
            self.note(now_utc_ns, 0);
        }
    }

    fn note(&mut self, now_utc_ns: u64, percent: u32) {
        if self.shares.len() >= MAX_SHARES {
            self.shares.pop_front();
        }
        self.shares.push_back((now_utc_ns, percent));
    }

    /// The shares in a window, in ns since the Unix epoch, as a series; none where all of the time
    /// was recorded.
    pub(super) fn within(&self, window: &Range<u64>) -> Option<SampledSeries> {
        let shares = self.shares.iter().filter(|(at, _)| window.contains(at));
        let (t_utc_ns, percent): (Vec<u64>, Vec<u32>) = shares.copied().unzip();
        percent
            .iter()
            .any(|percent| *percent < WHOLE_PERCENT)
            .then(|| SampledSeries {
                source: "recorder".to_owned(),
                device: "container".to_owned(),
                metric: "kernels_recorded".to_owned(),
                unit: "percent".to_owned(),
                t_utc_ns,
                value: percent.into_iter().map(f64::from).collect(),
            })
    }
}

/// The share of the time that may be recorded, in percent, where so many records came of so many ns
/// that were recorded.
fn allowed(records: u64, recorded_ns: u128) -> u32 {
    let rate = u128::from(records) * PER_SECOND / recorded_ns.max(1);
    let most = u128::from(MAX_RECORDS_PER_SECOND);
    if rate <= most {
        return WHOLE_PERCENT;
    }
    u32::try_from(most * u128::from(WHOLE_PERCENT) / rate).unwrap_or(WHOLE_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn more_records_than_the_budget_has_cut_the_time_that_is_recorded_and_fewer_give_it_back() {
        let mut pace = Pace::default();
        assert_eq!(pace.next(100, 5_000_000, 0), 100, "what was before is not counted");
        assert_eq!(pace.next(100, 5_100_000, SECOND), 100);
        assert!(!pace.is_cut(100));
        // 400,000 in a second: a quarter of the time.
        assert_eq!(pace.next(100, 5_500_000, 2 * SECOND), 25);
        assert!(pace.is_cut(100));
        // As many in each recorded second as before.
        assert_eq!(pace.next(100, 5_600_000, 3 * SECOND), 25);
        // A program that ended has taken its count along.
        assert_eq!(pace.next(100, 7, 4 * SECOND), 100);
        assert_eq!(pace.next(100, u64::MAX, 5 * SECOND), 1, "never nothing");
    }

    #[test]
    fn no_more_of_the_time_is_recorded_than_was_asked_for() {
        let mut pace = Pace::default();
        assert_eq!(pace.next(10, 0, 0), 10);
        assert_eq!(pace.next(10, 10_000, SECOND), 10, "100,000 in each recorded second");
        assert!(!pace.is_cut(10));
        assert_eq!(pace.next(10, 50_000, 2 * SECOND), 10);
        assert_eq!(pace.next(10, 250_000, 3 * SECOND), 5);
    }

    #[test]
    fn a_timeline_says_of_which_time_less_than_all_is_recorded() {
        let mut pace = Pace::default();
        pace.next(100, 0, SECOND);
        pace.next(100, 0, 2 * SECOND);
        assert_eq!(pace.within(&(0..9 * SECOND)), None);
        pace.rest(3 * SECOND);
        pace.rest(4 * SECOND);
        let series = pace.within(&(2 * SECOND..9 * SECOND)).unwrap();
        assert_eq!(series.t_utc_ns, [2 * SECOND, 3 * SECOND]);
        assert_eq!(series.value, [100.0, 0.0]);
        for second in 5..2_000 {
            pace.next(50, 0, second * SECOND);
        }
        let all = pace.within(&(0..u64::MAX)).unwrap();
        assert_eq!(all.value.len(), MAX_SHARES);
    }
}
