//! Exact figures of a list of integers.

/// Figures of the values of one name: integers, so that the order of the values cannot matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many; with 0 all others are 0.
    pub count: u64,
    /// Sum.
    pub total: u128,
    /// Sum of squares; stops at the largest number.
    pub squares: u128,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The middle one of the sorted values, the lower one where there are two.
    pub lower_median: u64,
    /// The same, the upper one.
    pub upper_median: u64,
}

impl Figures {
    /// Of `values`, which are reordered.
    pub fn of<T: Copy + Ord>(values: &mut [T]) -> Self
    where
        u64: From<T>,
    {
        let count = values.len();
        let Some(middle) = count.checked_sub(1).map(|last| last / 2) else {
            return Self::default();
        };
        let mut figures = Self {
            count: u64::try_from(count).unwrap_or(u64::MAX),
            min: u64::MAX,
            ..Self::default()
        };
        for value in values.iter().copied().map(u64::from) {
            let wide = u128::from(value);
            figures.total += wide;
            figures.squares = figures.squares.saturating_add(wide * wide);
            figures.min = figures.min.min(value);
            figures.max = figures.max.max(value);
        }
        let (_, lower, above) = values.select_nth_unstable(middle);
        figures.lower_median = u64::from(*lower);
        figures.upper_median = if count % 2 == 1 {
            figures.lower_median
        } else {
            u64::from(above.iter().copied().min().unwrap_or(*lower))
        };
        figures
    }
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
    fn sums_do_not_overflow() {
        let figures = Figures::of::<u64>(&mut [u64::MAX, u64::MAX]);
        assert_eq!(figures.total, 2 * u128::from(u64::MAX));
        assert_eq!(figures.squares, u128::MAX);
    }
}
