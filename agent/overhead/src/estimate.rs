//! The slowdown of a window and how surely it is known.

use crate::arms::Arms;
use crate::autocorrelation::{Dependence, Series};
use crate::bins::{Bin, Measure};
use crate::number::{log_rate, median, slowdown, whole};
use crate::shift::shift;

/// Independent bins that the window, and the time around it, must have for an estimate.
pub const MINIMUM_BINS: usize = 8;
/// Bins of a window from which on it has a rough estimate: fewer are no sample that any shift could
/// be told from.
const FEWEST_BINS: usize = 3;
/// Bins of an arm that are compared; neighbours of longer ones are put together, which bounds the
/// pairs to a few million.
const MAX_BINS: usize = 1000;

/// The effect of a window on the target's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Additional time per unit of work, in basis points; negative where the target was faster in
    /// the window.
    pub slowdown_basis_points: i64,
    /// Lower end of the 95 % interval, rounded down.
    pub low_basis_points: i64,
    /// Upper end of the 95 % interval, rounded up.
    pub high_basis_points: i64,
    /// Bins before the window.
    pub before_bins: usize,
    /// Bins in the window.
    pub during_bins: usize,
    /// Bins after the window.
    pub after_bins: usize,
    /// The first lag, in bins, at which bins are independent: bins count as so many times fewer.
    pub independent_lag: usize,
}

/// Why there is no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstimateError {
    /// No bin before the window, a counter that stood still before it, or no bin in it with this
    /// measure.
    #[error("the counter shows no work {}; name one that moves while the target works", if *before { "before the window" } else { "in the window" })]
    Blind {
        /// Whether it is the time before the window that shows none.
        before: bool,
    },
    /// Too few independent bins.
    #[error(
        "{during} independent bins in the window and {around} around it, where each needs {MINIMUM_BINS}; use longer windows or shorter bins"
    )]
    TooFewBins {
        /// Independent bins in the window.
        during: usize,
        /// Independent bins before and after it.
        around: usize,
    },
}

/// Compares the window with the time before it, and with the time after it where that is known.
pub fn estimate(arms: &Arms, measure: Measure) -> Result<Estimate, EstimateError> {
    let logs = Logs::of(arms, measure)?;
    let dependence = logs.dependence();
    let during = dependence.effective(logs.during.len());
    let around = dependence.effective(logs.before.len().saturating_add(logs.after.len()));
    let too_few = EstimateError::TooFewBins { during, around };
    if during < MINIMUM_BINS || dependence.effective(logs.before.len()) < MINIMUM_BINS {
        return Err(too_few);
    }
    logs.compare(arms, &dependence).ok_or(too_few)
}

/// The same of a window with too few bins for a verdict, three at least. Its interval holds the
/// effect as surely and is so much wider: it is to be put together with those of other windows.
pub fn rough_estimate(arms: &Arms, measure: Measure) -> Option<Estimate> {
    let logs = Logs::of(arms, measure).ok()?;
    let dependence = logs.dependence();
    let is_known = logs.during.len() >= FEWEST_BINS && dependence.effective(logs.before.len()) >= MINIMUM_BINS;
    is_known.then(|| logs.compare(arms, &dependence)).flatten()
}

impl Logs {
    /// The window against the time around it; none where no shift could be told from it.
    fn compare(&self, arms: &Arms, dependence: &Dependence) -> Option<Estimate> {
        let baseline: Vec<f64> = Self::values([&self.before, &self.after]);
        let found = shift(&Self::values([&self.during]), &baseline, dependence.inflation)?;
        Some(Estimate {
            slowdown_basis_points: whole(slowdown(found.median).round()),
            low_basis_points: whole(slowdown(found.high).floor()),
            high_basis_points: whole(slowdown(found.low).ceil()),
            before_bins: arms.before.len(),
            during_bins: arms.during.len(),
            after_bins: arms.after.len(),
            independent_lag: dependence.lag,
        })
    }
}

/// Log-rates of the arms, by position in bins.
#[derive(Debug)]
pub(crate) struct Logs {
    pub(crate) before: Series,
    pub(crate) during: Series,
    pub(crate) after: Series,
}

impl Logs {
    pub(crate) fn of(arms: &Arms, measure: Measure) -> Result<Self, EstimateError> {
        let usual = usual_rate(&arms.before, measure).ok_or(EstimateError::Blind { before: true })?;
        let longest = arms.before.len().max(arms.during.len()).max(arms.after.len());
        let together = longest.div_ceil(MAX_BINS).max(1);
        let series = |bins: &[Bin]| -> Series {
            let position = |bin: &Bin| bin.start_ns.checked_div(arms.length_ns.get()).unwrap_or(0);
            let each: Series = bins
                .iter()
                .filter_map(|bin| Some((position(bin), log_rate(measure.of(bin)?, usual))))
                .collect();
            joined(&each, together)
        };
        let (before, during, after) = (series(&arms.before), series(&arms.during), series(&arms.after));
        if arms.during.is_empty() {
            // None fits into the window, which says nothing of the work in it.
            let around = before.len().saturating_add(after.len());
            return Err(EstimateError::TooFewBins { during: 0, around });
        }
        if during.is_empty() {
            return Err(EstimateError::Blind { before: false });
        }
        Ok(Self { before, during, after })
    }

    pub(crate) fn dependence(&self) -> Dependence {
        Dependence::within(&[self.before.clone(), self.during.clone(), self.after.clone()])
    }

    pub(crate) fn values<const N: usize>(arms: [&Series; N]) -> Vec<f64> {
        arms.into_iter().flatten().map(|(_, value)| *value).collect()
    }
}

/// The median rate of bins; `None` where there is none or it is 0.
pub(crate) fn usual_rate(bins: &[Bin], measure: Measure) -> Option<f64> {
    let mut rates: Vec<f64> = bins.iter().filter_map(|bin| measure.of(bin)).collect();
    median(&mut rates).filter(|usual| *usual > 0.0)
}

/// Means of each `together` positions.
fn joined(series: &Series, together: usize) -> Series {
    let divisor = u64::try_from(together).unwrap_or(u64::MAX);
    let place = |at: u64| at.checked_div(divisor).unwrap_or(at);
    series
        .chunk_by(|one, other| place(one.0) == place(other.0))
        .filter_map(|group| {
            let sum: f64 = group.iter().map(|(_, value)| value).sum();
            Some((place(group.first()?.0), sum / crate::number::count(group.len())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    fn bins(from: u64, rates: &[f64]) -> Vec<Bin> {
        (from..)
            .zip(rates)
            .map(|(start_ns, rate)| Bin {
                start_ns,
                rate: *rate,
                busy_rate: None,
            })
            .collect()
    }

    fn arms(before: &[f64], during: &[f64], after: &[f64]) -> Arms {
        Arms {
            before: bins(0, before),
            during: bins(10_000, during),
            after: bins(20_000, after),
            length_ns: NonZeroU64::new(1).unwrap(),
        }
    }

    #[test]
    fn equal_rates_in_all_bins_have_an_effect_known_exactly() {
        let found = estimate(&arms(&[120.0; 10], &[100.0; 10], &[]), Measure::PerSecond).unwrap();
        assert_eq!(found.slowdown_basis_points, 2000);
        assert!(
            found.low_basis_points >= 1999 && found.high_basis_points <= 2001,
            "{found:?}"
        );
        assert_eq!((found.before_bins, found.during_bins, found.after_bins), (10, 10, 0));
    }

    #[test]
    fn fewer_than_eight_bins_give_no_estimate() {
        let few = estimate(&arms(&[1.0; 20], &[1.0; 7], &[1.0; 20]), Measure::PerSecond).unwrap_err();
        assert_eq!(few, EstimateError::TooFewBins { during: 7, around: 40 });
        assert_eq!(
            few.to_string(),
            "7 independent bins in the window and 40 around it, where each needs 8; use longer windows or shorter bins"
        );
        assert!(estimate(&arms(&[1.0; 7], &[1.0; 20], &[1.0; 20]), Measure::PerSecond).is_err());
        assert!(estimate(&arms(&[1.0; 8], &[1.0; 8], &[]), Measure::PerSecond).is_ok());
    }

    #[test]
    fn a_counter_that_shows_no_work_is_blind() {
        let blind = |before| Err(EstimateError::Blind { before });
        assert_eq!(estimate(&arms(&[], &[1.0; 20], &[]), Measure::PerSecond), blind(true));
        assert_eq!(
            estimate(&arms(&[0.0; 20], &[0.0; 20], &[]), Measure::PerSecond),
            blind(true)
        );
        let mut idle = arms(&[1.0; 20], &[1.0; 20], &[]);
        assert_eq!(estimate(&idle, Measure::PerBusySecond), blind(true));
        for bin in &mut idle.before {
            bin.busy_rate = Some(1.0);
        }
        assert_eq!(estimate(&idle, Measure::PerBusySecond), blind(false));
    }

    #[test]
    fn a_window_that_is_shorter_than_a_bin_has_too_few_of_them_and_is_not_blind() {
        let none = estimate(&arms(&[1.0; 20], &[], &[1.0; 3]), Measure::PerSecond);
        assert_eq!(none, Err(EstimateError::TooFewBins { during: 0, around: 23 }));
    }

    #[test]
    fn a_window_of_a_few_bins_has_a_rough_estimate_that_is_less_sure() {
        let noisy = |bins: usize, rate: f64| -> Vec<f64> {
            let step = |at: usize| f64::from(u32::try_from(at * 7 % 11).unwrap());
            (0..bins).map(|at| rate * (1.0 + 0.01 * step(at))).collect()
        };
        let of = |bins| rough_estimate(&arms(&noisy(100, 110.0), &noisy(bins, 100.0), &[]), Measure::PerSecond);
        assert_eq!((of(0), of(2)), (None, None));
        let width = |found: Estimate| found.high_basis_points - found.low_basis_points;
        let (few, many) = (of(3).unwrap(), of(40).unwrap());
        assert!(
            (few.low_basis_points..=few.high_basis_points).contains(&1000),
            "{few:?}"
        );
        assert!(width(few) > 2 * width(many), "{few:?} {many:?}");
        assert_eq!(
            rough_estimate(&arms(&[1.0; 7], &[1.0; 5], &[]), Measure::PerSecond),
            None
        );
    }

    #[test]
    fn a_target_that_stands_still_in_the_window_is_slowed_a_thousand_times() {
        let found = estimate(&arms(&[50.0; 10], &[0.0; 10], &[]), Measure::PerSecond).unwrap();
        assert_eq!(found.slowdown_basis_points, 9_990_000);
    }

    #[test]
    fn long_windows_are_compared_in_bounded_time() {
        let rates: Vec<f64> = (0..7200).map(|at| 100.0 + f64::from(at % 7)).collect();
        let slower: Vec<f64> = rates.iter().map(|rate| rate / 1.05).collect();
        let found = estimate(&arms(&rates, &slower, &rates), Measure::PerSecond).unwrap();
        assert!((found.slowdown_basis_points - 500).abs() <= 10, "{found:?}");
        assert_eq!(found.during_bins, 7200);
    }
}
