//! The exact distribution of Mann–Whitney's U where both samples come from one population and no
//! values are equal.

use crate::number::index;

/// Tail probabilities of U for samples of 1 to `most` values against `against` others.
#[derive(Clone, Debug)]
pub(crate) struct NullDistribution {
    /// By size of the sample less one, then by U: the chance of a U at least as large.
    tails: Vec<Vec<f64>>,
}

impl NullDistribution {
    /// U of a sample is the sum, over its values, of how many of the others lie below each: a
    /// choice of as many places, with repetition, among `against` + 1. All choices are equally
    /// likely, so they are counted by their sum. Takes time in `(most * against)^2` and memory in
    /// `most^2 * against`.
    pub(crate) fn new(most: usize, against: usize) -> Self {
        let mut ways: Vec<Vec<f64>> = (0..=most)
            .map(|size| vec![0.0; size.saturating_mul(against).saturating_add(1)])
            .collect();
        if let Some(none) = ways.first_mut().and_then(|sums| sums.first_mut()) {
            *none = 1.0;
        }
        for place in 0..=against {
            for size in 1..=most {
                let (smaller, this) = ways.split_at_mut(size);
                let (Some(smaller), Some(this)) = (smaller.last(), this.first_mut()) else {
                    continue;
                };
                // Larger sums take a later place.
                let reached = size.saturating_sub(1).saturating_mul(place).saturating_add(1);
                for (sum, added) in this.iter_mut().skip(place).zip(smaller).take(reached) {
                    *sum += added;
                }
            }
        }
        let tails = ways.into_iter().skip(1).map(|mut sums| {
            let all: f64 = sums.iter().sum();
            let mut above = 0.0;
            for sum in sums.iter_mut().rev() {
                above += *sum;
                *sum = above / all;
            }
            sums
        });
        Self { tails: tails.collect() }
    }

    /// The chance of a U of `u` or more for a sample of `size`. A U between two whole numbers,
    /// which ties make, counts as the lower one, so that the chance is never too small.
    pub(crate) fn at_least(&self, size: usize, u: f64) -> f64 {
        let tail = size.checked_sub(1).and_then(|at| self.tails.get(at));
        tail.map_or(1.0, |tail| tail.get(index(u.max(0.0))).copied().unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_against_three_has_twenty_orders() {
        let null = NullDistribution::new(3, 3);
        let of_twenty = |u| crate::number::whole((null.at_least(3, u) * 20.0).round());
        assert_eq!(
            [0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 8.5, 9.0, 10.0].map(of_twenty),
            [20, 19, 18, 16, 4, 2, 2, 1, 0]
        );
    }

    #[test]
    fn wholly_separate_samples_have_the_chance_of_one_order_of_all() {
        let null = NullDistribution::new(4, 30);
        assert!((null.at_least(4, 120.0) - 1.0 / 46_376.0).abs() < 1e-18);
        assert!((null.at_least(3, 90.0) - 1.0 / 5456.0).abs() < 1e-17);
    }
}
