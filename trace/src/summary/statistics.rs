//! Figures of a list of integers, as `nsys stats` defines them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of one name. `total`, `min` and `max` are exact.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statistics {
    /// How many.
    pub calls: u64,
    /// Sum; the largest number where it would not fit 64 bits.
    pub total: u64,
    /// Arithmetic mean.
    pub avg: f64,
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Sample standard deviation (n - 1); 0 for a single one.
    pub stddev: f64,
}

impl Statistics {
    /// Of `values`; `None` of none.
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let (min, max) = (*values.first()?, *values.last()?);
        let calls = u64::try_from(values.len()).ok()?;
        let total: u128 = values.iter().copied().map(u128::from).sum();
        let count = approximate(u128::from(calls));
        let avg = approximate(total) / count;
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get((values.len() - 1) / 2)?;
        let median = f64::midpoint(approximate(u128::from(lower)), approximate(u128::from(upper)));
        let stddev = if calls < 2 {
            0.0
        } else {
            let squares: f64 = values
                .iter()
                .map(|value| (approximate(u128::from(*value)) - avg).powi(2))
                .sum();
            (squares / (count - 1.0)).sqrt()
        };
        Some(Self {
            calls,
            total: u64::try_from(total).unwrap_or(u64::MAX),
            avg,
            median,
            min,
            max,
            stddev,
        })
    }
}

/// The nearest `f64`: exact up to 2^53, which is 104 days in nanoseconds.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "there is no From for it; rounding to the nearest is what is wanted"
)]
pub(crate) fn approximate(value: u128) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_value_the_deviation_is_zero() {
        let one = Statistics::of(vec![7]);
        let expected = Statistics {
            calls: 1,
            total: 7,
            avg: 7.0,
            median: 7.0,
            min: 7,
            max: 7,
            stddev: 0.0,
        };
        assert_eq!(one, Some(expected));
    }

    #[test]
    fn of_an_even_count_the_median_is_the_mean_of_the_middles_and_the_deviation_that_of_a_sample() {
        let four = Statistics::of(vec![4, 1, 3, 2]).unwrap();
        assert_eq!((four.calls, four.total, four.min, four.max), (4, 10, 1, 4));
        assert!((four.avg - 2.5).abs() < 1e-12 && (four.median - 2.5).abs() < 1e-12);
        assert!((four.stddev - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_nothing_there_are_no_figures() {
        assert_eq!(Statistics::of(Vec::new()), None);
    }

    #[test]
    fn a_sum_beyond_64_bits_saturates() {
        let two = Statistics::of(vec![u64::MAX, u64::MAX]).unwrap();
        assert_eq!(two.total, u64::MAX);
        assert!((two.stddev).abs() < 1e-12);
    }
}
