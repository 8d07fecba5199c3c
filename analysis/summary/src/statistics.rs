//! Figures of a list of integers, as `nsys stats` defines them.

use flopwatch_model::{Figures, approximate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of one name. `total`, `min` and `max` are exact.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statistics {
    /// Values.
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
        Self::from_figures(&Figures::of(&mut values))
    }

    /// Of exact figures; `None` of those of nothing.
    pub fn from_figures(figures: &Figures) -> Option<Self> {
        if figures.count == 0 {
            return None;
        }
        let count = approximate(u128::from(figures.count));
        Some(Self {
            calls: figures.count,
            total: u64::try_from(figures.total).unwrap_or(u64::MAX),
            avg: approximate(figures.total) / count,
            median: figures.median()?,
            min: figures.min,
            max: figures.max,
            stddev: deviation(figures),
        })
    }
}

/// Sample standard deviation: the root of (n Σx² - (Σx)²) / (n (n - 1)). In integers, so that
/// nothing is lost where deviations are small beside the values, as far as the numbers fit 128
/// bits.
fn deviation(figures: &Figures) -> f64 {
    if figures.count < 2 {
        return 0.0;
    }
    let n = u128::from(figures.count);
    let exact = || {
        let squares = n.checked_mul(figures.squares)?;
        squares.checked_sub(figures.total.checked_mul(figures.total)?)
    };
    let spread = exact().map_or_else(
        || {
            let total = approximate(figures.total);
            (approximate(n) * approximate(figures.squares) - total * total).max(0.0)
        },
        approximate,
    );
    (spread / (approximate(n) * approximate(n - 1))).sqrt()
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
    fn small_deviations_of_large_values_are_exact() {
        let start = 1_700_000_000_000_000_000;
        let three = Statistics::of(vec![start, start + 1, start + 2]).unwrap();
        assert!((three.stddev - 1.0).abs() < 1e-12, "{}", three.stddev);
    }

    #[test]
    fn a_sum_beyond_64_bits_saturates() {
        let two = Statistics::of(vec![u64::MAX, u64::MAX]).unwrap();
        assert_eq!(two.total, u64::MAX);
        assert!((two.stddev).abs() < 1e-12);
    }
}
