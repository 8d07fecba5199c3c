//! Exact figures of a list of integers.

use rayon::prelude::*;

use super::{Groups, index};

/// Figures of the values of one name: integers, so that the order of the values cannot matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many; with 0 all others are 0.
    pub count: u64,
    /// Sum of the values.
    pub total: u128,
    /// Sum of squares; stops at the largest number.
    pub squares: u128,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// The middle one of the sorted values, the lower one where there are two.
    pub lower_median: u64,
    /// The middle one of the sorted values, the upper one where there are two.
    pub upper_median: u64,
}

impl Figures {
    /// Of `values`, which are reordered.
    pub fn of<T: Copy + Ord>(values: &mut [T]) -> Self
    where
        u64: From<T>,
    {
        let Some((lower, upper)) = middles(values) else {
            return Self::default();
        };
        let mut figures = Self {
            count: u64::try_from(values.len()).unwrap_or(u64::MAX),
            min: u64::MAX,
            lower_median: u64::from(lower),
            upper_median: u64::from(upper),
            ..Self::default()
        };
        for value in values.iter().copied().map(u64::from) {
            let wide = u128::from(value);
            figures.total += wide;
            figures.squares = figures.squares.saturating_add(wide * wide);
            figures.min = figures.min.min(value);
            figures.max = figures.max.max(value);
        }
        figures
    }

    /// The median: the middle one of the sorted values, or the mean of both where there are two;
    /// `None` of no values.
    pub fn median(&self) -> Option<f64> {
        let middle = |value: u64| approximate(value.into());
        (self.count > 0).then(|| f64::midpoint(middle(self.lower_median), middle(self.upper_median)))
    }

    /// The same rounded down to an integer; 0 of no values.
    pub fn whole_median(&self) -> u64 {
        self.lower_median.midpoint(self.upper_median)
    }
}

/// The middle ones of the sorted values, which are reordered: the same one twice where their number
/// is odd; `None` of no values.
pub fn middles<T: Copy + Ord>(values: &mut [T]) -> Option<(T, T)> {
    let is_odd = values.len() % 2 == 1;
    let middle = values.len().checked_sub(1)? / 2;
    let (_, lower, above) = values.select_nth_unstable(middle);
    let upper = if is_odd { None } else { above.iter().copied().min() };
    Some((*lower, upper.unwrap_or(*lower)))
}

/// Figures by `key` of the values that belong to it, each told by its position: one per key below
/// `keys`, zeros for a key that does not occur.
pub fn figures_by_key<K: Copy + Into<u32> + Sync>(
    keys: u32,
    key: &[K],
    value: impl Fn(usize) -> u64 + Sync,
) -> Vec<Figures> {
    let narrow = |at| u32::try_from(value(at));
    // Most lengths are less than four seconds: half the memory.
    if (0..key.len()).into_par_iter().all(|at| narrow(at).is_ok()) {
        return grouped(keys, key, |at| narrow(at).unwrap_or(u32::MAX));
    }
    grouped(keys, key, value)
}

/// The values of a list, as [`figures_by_key`] takes them.
pub fn listed(values: &[u64]) -> impl Fn(usize) -> u64 + Sync + '_ {
    |at| values.get(at).copied().unwrap_or_default()
}

fn grouped<K, T>(keys: u32, key: &[K], value: impl Fn(usize) -> T + Sync) -> Vec<Figures>
where
    K: Copy + Into<u32> + Sync,
    T: Copy + Default + Ord + Send,
    u64: From<T>,
{
    let groups = Groups::count(key, index(keys), |key| index((*key).into()));
    let mut grouped = groups.scatter(|at, _| value(at));
    let mut rest = &mut grouped[..];
    let ranges = groups.ranges().into_iter();
    let of_keys: Vec<_> = ranges
        .map(|range| rest.split_off_mut(..range.len()).unwrap_or_default())
        .collect();
    of_keys.into_par_iter().map(Figures::of).collect()
}

/// The nearest `f64`: exact up to 2^53, which is 104 days in nanoseconds.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "there is no From for it; rounding to the nearest is what is wanted"
)]
pub fn approximate(value: u128) -> f64 {
    value as f64
}

/// `part` of `whole`; `None` of nothing. Of sums and counts that is a mean.
pub fn ratio(part: impl Into<u128>, whole: impl Into<u128>) -> Option<f64> {
    let whole = whole.into();
    (whole > 0).then(|| approximate(part.into()) / approximate(whole))
}

/// The nearest whole number; 0 of what is negative or no number.
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom for it; the cast saturates"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middles_are_those_of_the_sorted_values() {
        let cases: [(&[u64], u64, u64); 5] = [
            (&[], 0, 0),
            (&[7], 7, 7),
            (&[9, 1], 1, 9),
            (&[3, 1, 2], 2, 2),
            (&[4, 4, 1, 8], 4, 4),
        ];
        for (values, lower, upper) in cases {
            let figures = Figures::of(&mut values.to_vec());
            assert_eq!(
                (figures.lower_median, figures.upper_median),
                (lower, upper),
                "{values:?}"
            );
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_both_middles() {
        let of = |values: &mut [u64]| {
            let figures = Figures::of(values);
            (figures.median(), figures.whole_median())
        };
        assert_eq!(of(&mut []), (None, 0));
        assert_eq!(of(&mut [3, 1, 2]), (Some(2.0), 2));
        assert_eq!(of(&mut [1, 4, 9, 2]), (Some(3.0), 3));
        assert_eq!(of(&mut [1, 2]), (Some(1.5), 1));
        assert_eq!(of(&mut [u64::MAX, u64::MAX]).1, u64::MAX);
        assert_eq!(middles(&mut [-8_i64, 4, -3, 1]), Some((-3, 1)));
        assert_eq!(middles::<i64>(&mut []), None);
    }

    #[test]
    fn sums_do_not_overflow() {
        let figures = Figures::of::<u64>(&mut [u64::MAX, u64::MAX]);
        assert_eq!(figures.total, 2 * u128::from(u64::MAX));
        assert_eq!(figures.squares, u128::MAX);
    }

    #[test]
    fn every_key_has_its_own_figures() {
        let figures = figures_by_key(3, &[2_u32, 0, 2, 2], listed(&[10, 7, 30, 20]));
        assert_eq!((figures[0].count, figures[0].total), (1, 7));
        assert_eq!(figures[1], Figures::default());
        assert_eq!(
            (figures[2].count, figures[2].total, figures[2].lower_median),
            (3, 60, 20)
        );
    }
}
