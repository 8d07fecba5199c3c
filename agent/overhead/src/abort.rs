//! Ends a window while it runs, where it slows its target beyond the budget.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use crate::bins::{Bin, Measure};
use crate::estimate::{MINIMUM_BINS, usual_rate};
use crate::null_distribution::NullDistribution;
use crate::number::{BASIS_POINTS_OF_ALL, count, log_rate, slowdown, whole};
use crate::shift::hodges_lehmann;

/// Chance of a false abort in a window, however long, of a target whose bins are independent.
const LEVEL: f64 = 0.01;
/// Bins running that it takes at least, and how long they are together: programs stand still for a
/// second now and then, and so do machines.
const MIN_RUNNING: (usize, u64) = (3, 3_000_000_000);
/// Bins less than this apart follow each other, in ns: a reading that comes late leaves one out.
const MAX_GAP_NS: u64 = 1_000_000_000;
/// Bins running beyond those that are looked at together at most.
const MAX_FURTHER_BINS: usize = 13;
/// Bins before the window that are compared with, the latest ones; bounds the tables to some 40,000
/// numbers.
const MAX_BASELINE_BINS: usize = 120;

/// A bin of the window, by how it compares with the baseline.
#[derive(Clone, Copy, Debug)]
struct RankedBin {
    rate: f64,
    /// Bins of the baseline that are faster by more than a third of the budget; those faster by
    /// just that as half.
    slower_than: f64,
    /// Bins of the baseline that are faster by more than the budget.
    beyond: usize,
}

/// Why a window is to be ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Abort {
    /// Slowdown of the bins running against the baseline, in basis points.
    pub slowdown_basis_points: i64,
    /// Bins running that it rests on.
    pub bins: usize,
    /// One-sided p of the Mann–Whitney test of these bins being slower by more than a third of the
    /// budget, corrected for all looks that a window takes; below 0.01.
    pub p: f64,
}

/// Watches a window bin by bin.
///
/// It aborts where three or more bins running, of three seconds or more, are slower than the
/// baseline by more than the budget, by Hodges and Lehmann's shift, and an exact one-sided
/// Mann–Whitney test of whether they are slower than it by more than a third of the budget has p <
/// 0.01. A third, and not nothing, since correlated noise makes p too small, but seldom makes three
/// bins slower by so much: at noise of 5 % that correlates by 0.3, it ends 3 of 1,000 unharmed
/// windows in place of 14.
///
/// Each stretch of bins is a test of its own, and the latest bin ends up to 14 of them. So a
/// stretch from bin s on that has k bins more than the fewest has the share 1/(s(s+1)) ·
/// 1/((k+1)(k+2)) of the level. The shares of all stretches add up to less than one, so the chance
/// of any false abort stays below 0.01 however long the window is. Early harm, which is the usual
/// one, has the largest shares.
#[derive(Debug)]
pub struct AbortRule {
    /// Rates before the window, ascending.
    baseline: Vec<f64>,
    usual: f64,
    /// How many times faster a bin of the baseline is than one of the window that is just within
    /// the budget.
    allowed: f64,
    /// How many times faster a bin of the baseline is than one that is just within a third of the
    /// budget.
    somewhat: f64,
    measure: Measure,
    length_ns: NonZeroU64,
    null: NullDistribution,
    /// Bins running that it takes.
    least: usize,
    /// The latest bins that follow each other.
    running: VecDeque<RankedBin>,
    /// Bins taken so far.
    taken: usize,
    next_ns: Option<u64>,
}

impl AbortRule {
    /// Watches a window against the bins before it. `None` where fewer than 8 of them are known, or
    /// they show no work: then nothing can be told while the window runs.
    pub fn new(before: &[Bin], measure: Measure, length_ns: NonZeroU64, during_basis_points: u32) -> Option<Self> {
        let latest = before
            .iter()
            .rev()
            .filter_map(|bin| measure.of(bin))
            .take(MAX_BASELINE_BINS);
        let mut baseline: Vec<f64> = latest.collect();
        baseline.sort_unstable_by(f64::total_cmp);
        if baseline.len() < MINIMUM_BINS {
            return None;
        }
        let long = usize::try_from(MIN_RUNNING.1.div_ceil(length_ns.get())).ok()?;
        let least = MIN_RUNNING.0.max(long);
        Some(Self {
            usual: usual_rate(before, measure)?,
            allowed: 1.0 + f64::from(during_basis_points) / BASIS_POINTS_OF_ALL,
            somewhat: 1.0 + f64::from(during_basis_points) / BASIS_POINTS_OF_ALL / 3.0,
            measure,
            length_ns,
            null: NullDistribution::new(least.saturating_add(MAX_FURTHER_BINS), baseline.len()),
            baseline,
            least,
            running: VecDeque::new(),
            taken: 0,
            next_ns: None,
        })
    }

    /// Takes the next bin of the window in. A bin that is a second or more after the last one
    /// begins a new stretch; one that is not later, or has no rate, is left out.
    pub fn push(&mut self, bin: &Bin) -> Option<Abort> {
        let rate = self.measure.of(bin)?;
        match self.next_ns {
            Some(next_ns) if bin.start_ns < next_ns => return None,
            Some(next_ns) if bin.start_ns - next_ns < MAX_GAP_NS => {}
            _ => self.running.clear(),
        }
        self.next_ns = Some(bin.start_ns.saturating_add(self.length_ns.get()));
        if self.running.len() >= self.least.saturating_add(MAX_FURTHER_BINS) {
            self.running.pop_front();
        }
        let seen = self.compare(rate);
        self.running.push_back(seen);
        self.taken = self.taken.saturating_add(1);
        self.inspect()
    }

    fn compare(&self, rate: f64) -> RankedBin {
        let faster = |than: &dyn Fn(f64) -> bool| {
            let not = self.baseline.partition_point(|other| !than(*other));
            self.baseline.len().saturating_sub(not)
        };
        let third = rate * self.somewhat;
        RankedBin {
            rate,
            slower_than: f64::midpoint(
                count(faster(&|other| other > third)),
                count(faster(&|other| other >= third)),
            ),
            beyond: faster(&|other| other > rate * self.allowed),
        }
    }

    /// Tests every stretch that the latest bin ends.
    fn inspect(&self) -> Option<Abort> {
        let (mut u, mut beyond) = (0.0, 0_usize);
        for (bins, seen) in (1_usize..).zip(self.running.iter().rev()) {
            u += seen.slower_than;
            beyond = beyond.saturating_add(seen.beyond);
            // The shift exceeds the budget where more than half of all pairs do.
            let pairs = bins.saturating_mul(self.baseline.len());
            if bins < self.least || beyond.saturating_mul(2) <= pairs {
                continue;
            }
            let (first, more) = (
                self.taken.saturating_sub(bins).saturating_add(1),
                bins.saturating_sub(self.least),
            );
            let p = self.null.at_least(bins, u) / share(first, more);
            if p < LEVEL {
                return Some(self.abort(bins, p));
            }
        }
        None
    }

    fn abort(&self, bins: usize, p: f64) -> Abort {
        let log = |rate: &f64| log_rate(*rate, self.usual);
        let during: Vec<f64> = self
            .running
            .iter()
            .rev()
            .take(bins)
            .map(|seen| log(&seen.rate))
            .collect();
        let before: Vec<f64> = self.baseline.iter().map(log).collect();
        let moved = hodges_lehmann(&during, &before).unwrap_or(0.0);
        Abort {
            slowdown_basis_points: whole(slowdown(moved).round()),
            bins,
            p,
        }
    }
}

/// The part of the level for a stretch from the window's `first` bin on, which counts from 1, that
/// has so many bins more than the fewest.
fn share(first: usize, more: usize) -> f64 {
    let (first, more) = (count(first), count(more));
    1.0 / (first * (first + 1.0)) / ((more + 1.0) * (more + 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: NonZeroU64 = NonZeroU64::new(1_000_000_000).unwrap();

    fn bin(at: u64, rate: f64) -> Bin {
        Bin {
            start_ns: at * LENGTH.get(),
            rate,
            busy_rate: None,
        }
    }

    fn rule(bins: u64) -> Option<AbortRule> {
        let before: Vec<Bin> = (0..bins)
            .map(|at| bin(at, 100.0 + f64::from(u32::try_from(at % 5).unwrap())))
            .collect();
        AbortRule::new(&before, Measure::PerSecond, LENGTH, 1000)
    }

    /// After how many bins of these rates the window is ended.
    fn ended_after(mut rule: AbortRule, rates: &[f64]) -> Option<usize> {
        let at = (1000..)
            .zip(rates)
            .position(|(at, rate)| rule.push(&bin(at, *rate)).is_some());
        at.map(|at| at + 1)
    }

    #[test]
    fn the_shares_of_all_looks_add_up_to_at_most_one() {
        let all: f64 = (1..4000)
            .flat_map(|first| (0..=MAX_FURTHER_BINS).map(move |more| share(first, more)))
            .sum();
        assert!(all < 1.0 && all > 0.9, "{all}");
    }

    #[test]
    fn harm_beyond_the_budget_ends_the_window_at_its_third_bin() {
        let mut watched = rule(30).unwrap();
        assert_eq!(watched.push(&bin(100, 85.0)), None);
        assert_eq!(watched.push(&bin(101, 85.0)), None);
        let abort = watched.push(&bin(102, 85.0)).unwrap();
        assert_eq!((abort.bins, abort.slowdown_basis_points), (3, 2000));
        assert!(abort.p < 0.01 && abort.p > 1.0 / 5456.0, "{abort:?}");
    }

    #[test]
    fn harm_within_the_budget_does_not_end_it() {
        assert_eq!(ended_after(rule(30).unwrap(), &[94.0; 600]), None);
        assert_eq!(ended_after(rule(30).unwrap(), &[110.0; 600]), None);
    }

    #[test]
    fn few_bins_before_the_window_take_more_bins_in_it() {
        let after = |before| rule(before).and_then(|rule| ended_after(rule, &[50.0; 20]));
        assert_eq!(
            [8, 10, 11, 12, 60].map(after),
            [Some(7), Some(5), Some(4), Some(3), Some(3)]
        );
    }

    #[test]
    fn two_slow_bins_do_not_end_it_and_a_gap_begins_anew() {
        let rates: Vec<f64> = (0..300).map(|at| if at % 4 < 2 { 20.0 } else { 102.0 }).collect();
        assert_eq!(ended_after(rule(30).unwrap(), &rates), None);
        let mut watched = rule(30).unwrap();
        for at in [100, 101, 103, 104, 106, 107] {
            assert_eq!(watched.push(&bin(at, 50.0)), None);
        }
        assert_eq!(watched.push(&bin(105, 50.0)), None, "an earlier bin is left out");
        assert!(
            watched.push(&bin(108, 50.0)).is_none(),
            "the share of a later stretch is smaller"
        );
        assert!(watched.push(&bin(109, 50.0)).is_some());
    }

    const SHORT: NonZeroU64 = NonZeroU64::new(250_000_000).unwrap();

    fn short(at: u64, rate: f64) -> Bin {
        Bin {
            start_ns: at * SHORT.get(),
            rate,
            busy_rate: None,
        }
    }

    /// A window of bins of a quarter of a second, after half a minute of them.
    fn short_rule() -> AbortRule {
        let before: Vec<Bin> = (0..120)
            .map(|at| short(at, 100.0 + f64::from(u32::try_from(at % 5).unwrap())))
            .collect();
        AbortRule::new(&before, Measure::PerSecond, SHORT, 1000).unwrap()
    }

    #[test]
    fn a_program_that_stands_still_for_a_second_goes_on_where_bins_are_short() {
        let ended_after = |slow: u64| {
            let mut watched = short_rule();
            (1000..1400_u64).position(|at| {
                let rate = if (1040..1040 + slow).contains(&at) { 5.0 } else { 102.0 };
                watched.push(&short(at, rate)).is_some()
            })
        };
        assert_eq!([1, 4, 6].map(ended_after), [None; 3]);
        assert_eq!(ended_after(300), Some(50), "eleven bins of twelve are slow then");
    }

    #[test]
    fn a_bin_that_a_late_reading_left_out_does_not_begin_a_new_stretch() {
        let ended_after = |left_out: u64| {
            let mut watched = short_rule();
            (0..24_u64)
                .filter(|at| at % (6 + left_out) < 6)
                .find(|at| watched.push(&short(1000 + at, 50.0)).is_some())
        };
        // Twelve bins of harm, and those left out between them.
        assert_eq!([0, 1, 3, 4].map(ended_after), [Some(11), Some(12), Some(14), None]);
    }

    #[test]
    fn a_standstill_ends_it() {
        assert_eq!(ended_after(rule(30).unwrap(), &[0.0; 5]), Some(3));
    }

    #[test]
    fn without_a_baseline_there_is_no_rule() {
        assert!(rule(7).is_none());
        assert!(AbortRule::new(&[bin(0, 0.0); 20], Measure::PerSecond, LENGTH, 1000).is_none());
    }
}
