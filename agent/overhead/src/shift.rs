//! How far one sample lies from another: Hodges and Lehmann's shift and its interval.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::mann_whitney::tie_term;
use crate::number::{count, index, median};

/// Confidence of the interval.
const CONFIDENCE: f64 = 0.95;

/// By how much a sample's values lie above another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The median of all pairwise differences.
    pub median: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// The median of all differences between a value of `x` and one of `y`. `None` of an empty sample.
pub fn hodges_lehmann(x: &[f64], y: &[f64]) -> Option<f64> {
    median(&mut differences(x, y))
}

/// The shift of `x` against `y` with its interval: the shifts which a two-sided Mann–Whitney test,
/// by the normal approximation corrected for continuity and for ties within a sample, does not
/// reject at 5 %.
///
/// `inflation` is by how much dependence between neighbouring values enlarges the variance of the
/// test's statistic; 1 where they are independent. `None` where a sample is too small for any shift
/// to be rejected.
pub fn shift(x: &[f64], y: &[f64], inflation: f64) -> Option<Shift> {
    let mut all = differences(x, y);
    let middle = median(&mut all)?;
    let (nx, ny) = (count(x.len()), count(y.len()));
    let n = nx + ny;
    let ties = tie_term(x.iter().copied()) + tie_term(y.iter().copied());
    let variance = nx * ny / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0))) * inflation.max(1.0);
    let quantile = Normal::standard().inverse_cdf(f64::midpoint(1.0, CONFIDENCE));
    // U of a shift is how many differences exceed it. The least U that is not rejected is that of
    // the upper end.
    let least = (nx * ny / 2.0 - 0.5 - quantile * variance.sqrt()).ceil();
    // NaN and what is below 1 have no end.
    if least.is_nan() || least < 1.0 {
        return None;
    }
    let from_end = index(least);
    let mut nth = |at: usize| (at < all.len()).then(|| *all.select_nth_unstable_by(at, f64::total_cmp).1);
    let low = nth(from_end.checked_sub(1)?)?;
    let high = nth(x.len().checked_mul(y.len())?.checked_sub(from_end)?)?;
    Some(Shift {
        median: middle,
        low: low.min(middle),
        high: high.max(middle),
    })
}

fn differences(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter()
        .flat_map(|value| y.iter().map(move |other| value - other))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mann_whitney::{Alternative, mann_whitney};

    fn sample(seed: u64, size: usize) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..size).map(|_| random.f64()).collect()
    }

    #[test]
    fn a_sample_against_itself_moved_has_that_shift() {
        let y = sample(1, 20);
        let x: Vec<f64> = y.iter().map(|value| value + 3.0).collect();
        let found = shift(&x, &y, 1.0).unwrap();
        assert!((found.median - 3.0).abs() < 1e-12 && found.low < 3.0 && found.high > 3.0);
        assert!((found.median - found.low - (found.high - found.median)).abs() < 1e-9);
        assert_eq!(hodges_lehmann(&[], &y), None);
    }

    #[test]
    fn the_interval_holds_what_the_test_does_not_reject() {
        for seed in 0..20 {
            let (x, y) = (sample(seed, 12), sample(seed + 100, 25));
            let found = shift(&x, &y, 1.0).unwrap();
            let p = |by: f64| {
                let moved: Vec<f64> = x.iter().map(|value| value - by).collect();
                mann_whitney(&moved, &y, Alternative::TwoSided).unwrap().p
            };
            let little = 1e-9;
            assert!(p(found.low + little) >= 0.05 && p(found.high - little) >= 0.05);
            assert!(p(found.low - little) < 0.05 && p(found.high + little) < 0.05);
        }
    }

    #[test]
    fn dependence_widens_the_interval() {
        let (x, y) = (sample(1, 30), sample(2, 30));
        let width = |inflation| shift(&x, &y, inflation).map(|found| found.high - found.low);
        assert!(width(2.0).unwrap() > 1.2 * width(1.0).unwrap());
        assert_eq!(width(40.0), None);
    }
}
