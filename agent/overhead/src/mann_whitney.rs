//! The Mann–Whitney U test.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::null_distribution::NullDistribution;
use crate::number::count;

/// Samples up to this size, against one of any size and without ties, are tested exactly, as scipy
/// does.
const EXACT: usize = 8;

/// Which difference the test looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// The samples differ.
    TwoSided,
    /// The first sample's values are less.
    Less,
    /// The first sample's values are greater.
    Greater,
}

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// U of the first sample: pairs in which its value is the greater one, equal ones as half.
    pub u: f64,
    /// How likely a U is that is at least as far off, where both samples come from one population.
    pub p: f64,
}

/// Tests `x` against `y`, as `scipy.stats.mannwhitneyu` does by default: exactly where a sample has
/// at most 8 values and no values are equal, else by the normal approximation corrected for ties
/// and continuity. `None` of an empty sample or NaN.
///
/// `statrs` has this test too, and lists every order of the samples where it is exact: 49 million
/// for 8 values against 30.
pub fn mann_whitney(x: &[f64], y: &[f64], alternative: Alternative) -> Option<MannWhitney> {
    if x.is_empty() || y.is_empty() || x.iter().chain(y).any(|value| value.is_nan()) {
        return None;
    }
    let (nx, ny) = (count(x.len()), count(y.len()));
    let u = statistic(x, y);
    let (tested, sides) = match alternative {
        Alternative::Greater => (u, 1.0),
        Alternative::Less => (nx * ny - u, 1.0),
        Alternative::TwoSided => (u.max(nx * ny - u), 2.0),
    };
    let ties = tie_term(x.iter().chain(y).copied());
    let small = x.len().min(y.len());
    let tail = if small <= EXACT && ties <= 0.0 {
        NullDistribution::new(small, x.len().max(y.len())).at_least(small, tested)
    } else {
        let n = nx + ny;
        let deviation = (nx * ny / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)))).sqrt();
        if deviation > 0.0 {
            Normal::standard().sf((tested - nx * ny / 2.0 - 0.5) / deviation)
        } else {
            1.0
        }
    };
    Some(MannWhitney {
        u,
        p: (tail * sides).clamp(0.0, 1.0),
    })
}

/// U of the first sample.
fn statistic(x: &[f64], y: &[f64]) -> f64 {
    let mut sorted = y.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    x.iter()
        .map(|value| {
            let below = sorted.partition_point(|other| other < value);
            let up_to = sorted.partition_point(|other| other <= value);
            f64::midpoint(count(below), count(up_to))
        })
        .sum()
}

/// The sum of t³ − t over groups of t equal values.
pub(crate) fn tie_term(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
        .chunk_by(|one, other| one.total_cmp(other).is_eq() || one >= other)
        .map(|group| {
            let size = count(group.len());
            size * size * size - size
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_value_do_not_differ() {
        let same = mann_whitney(&[2.0; 12], &[2.0; 20], Alternative::TwoSided).unwrap();
        assert_eq!((same.u, same.p), (120.0, 1.0));
    }

    #[test]
    fn small_separate_samples_are_tested_exactly() {
        let less = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0], Alternative::Less).unwrap();
        assert!((less.p - 1.0 / 35.0).abs() < 1e-15 && less.u == 0.0);
        let both = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0], Alternative::TwoSided).unwrap();
        assert!((both.p - 2.0 / 35.0).abs() < 1e-15);
        let greater = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0], Alternative::Greater).unwrap();
        assert!((greater.p - 1.0).abs() < 1e-15);
    }

    #[test]
    fn an_empty_sample_or_one_without_order_is_not_tested() {
        assert_eq!(mann_whitney(&[], &[1.0], Alternative::Less), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN], Alternative::Less), None);
    }
}
