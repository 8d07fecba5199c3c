//! Whether the values of two samples differ by more than their own spread explains.
//!
//! Iterations of one run follow each other and are no independent draws; a test on them is a guard
//! against noise within the runs, and says nothing of what differs from run to run. Results say so
//! where they use it.

use flopwatch_model::{Figures, approximate, index};

/// Largest samples for which the exact distribution is used; above, the normal approximation is as
/// good.
const MAX_EXACT_SAMPLES: usize = 25;
/// Resamples of the bootstrap.
const BOOTSTRAP_RESAMPLES: u32 = 2000;
/// Values per sample that the bootstrap draws from; of longer samples it takes evenly spaced ones.
const MAX_VALUES: usize = 1000;

/// The median; the mean of the middle two of an even number. `None` of no values.
pub fn median(values: &[u64]) -> Option<f64> {
    Figures::of(&mut values.to_vec()).median()
}

/// The two-sided p-value of the Mann–Whitney U test: how likely a difference of ranks at least as
/// large is where both samples come from one distribution. `None` where a sample has no value.
///
/// Without ties and up to 25 values a side it is exact; otherwise the normal approximation with
/// correction for ties and continuity, as `scipy.stats.mannwhitneyu` has them (H. B. Mann and D. R.
/// Whitney, Annals of Mathematical Statistics 18, 1947).
pub fn mann_whitney(before: &[u64], after: &[u64]) -> Option<f64> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let first = before.iter().map(|value| (*value, true));
    let mut all: Vec<(u64, bool)> = first.chain(after.iter().map(|value| (*value, false))).collect();
    all.sort_unstable();
    let (n0, n1) = (wide(before.len()), wide(after.len()));
    // Twice the sum of the first sample's ranks: values that are equal share the mean of their
    // ranks.
    let (mut twice_ranks, mut ties, mut below) = (0_u128, 0_u128, 0_u128);
    for group in all.chunk_by(|one, other| one.0 == other.0) {
        let size = wide(group.len());
        let of_first = wide(group.iter().filter(|(_, is_first)| *is_first).count());
        twice_ranks += of_first * (2 * below + size + 1);
        ties += size * size * size - size;
        below += size;
    }
    // 2U of either sample; both add up to 2 n0 n1.
    let twice_u = twice_ranks - n0 * (n0 + 1);
    let twice_larger = twice_u.max(2 * n0 * n1 - twice_u);
    let p = if ties == 0 && before.len().max(after.len()) <= MAX_EXACT_SAMPLES {
        2.0 * exact_tail(
            before.len(),
            after.len(),
            usize::try_from(twice_larger / 2).unwrap_or(usize::MAX),
        )
    } else {
        let (a, b, n) = (approximate(n0), approximate(n1), approximate(n0 + n1));
        let variance = a * b / 12.0 * ((n + 1.0) - approximate(ties) / (n * (n - 1.0)));
        if variance <= 0.0 {
            return Some(1.0);
        }
        let z = (approximate(twice_larger) / 2.0 - a * b / 2.0 - 0.5) / variance.sqrt();
        complementary_error(z / std::f64::consts::SQRT_2)
    };
    Some(p.clamp(0.0, 1.0))
}

/// The share of all orders of `n` and `m` distinct values whose U is at least `u`.
fn exact_tail(n: usize, m: usize, u: usize) -> f64 {
    // Coefficients of the Gaussian binomial: a product of (1 − q^(m+i)) / (1 − q^i). They are whole
    // and below 2^53 up to 25 and 25 values.
    let length = n * m + 1;
    let mut orders = vec![0.0_f64; length];
    if let Some(first) = orders.first_mut() {
        *first = 1.0;
    }
    for i in 1..=n {
        for at in (m + i..length).rev() {
            let lower = orders.get(at - m - i).copied().unwrap_or(0.0);
            if let Some(value) = orders.get_mut(at) {
                *value -= lower;
            }
        }
        for at in i..length {
            let lower = orders.get(at - i).copied().unwrap_or(0.0);
            if let Some(value) = orders.get_mut(at) {
                *value += lower;
            }
        }
    }
    let total: f64 = orders.iter().sum();
    orders.iter().skip(u).sum::<f64>() / total
}

/// erfc, to a relative 1.2e-7 (W. H. Press et al., Numerical Recipes, 6.2).
fn complementary_error(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let series = COEFFICIENTS.iter().fold(0.0, |sum, next| sum * t + next);
    let upper = t * (series - x * x).exp();
    if x < 0.0 { 2.0 - upper } else { upper }
}

/// An interval of the change of the median from `before` to `after`, in percent of the median
/// before, that holds it with `confidence_percent`. `None` without values, or where a median may
/// be 0.
///
/// It is the percentile bootstrap (B. Efron, Annals of Statistics 7, 1979) with 2,000 resamples.
/// Draws begin at a fixed seed, so that equal samples always have an equal interval.
pub fn change_of_median(before: &[u64], after: &[u64], confidence_percent: u32) -> Option<(f64, f64)> {
    let (before, after) = (thinned(before), thinned(after));
    let mut draws = Draws(0x0F10_9A7C);
    let mut changes = Vec::new();
    for _ in 0..BOOTSTRAP_RESAMPLES {
        let (old, new) = (draws.median_of(&before)?, draws.median_of(&after)?);
        if old <= 0.0 {
            return None;
        }
        changes.push((new / old - 1.0) * 100.0);
    }
    changes.sort_by(f64::total_cmp);
    let tail = index(BOOTSTRAP_RESAMPLES * 100_u32.saturating_sub(confidence_percent) / 200);
    let high = changes.len().checked_sub(tail + 1)?;
    Some((*changes.get(tail)?, *changes.get(high)?))
}

fn thinned(values: &[u64]) -> Vec<u64> {
    let step = values.len().div_ceil(MAX_VALUES).max(1);
    values.iter().copied().step_by(step).collect()
}

/// Numbers that look random (`SplitMix64`, public domain, S. Vigna).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The median of as many values, drawn with replacement.
    fn median_of(&mut self, values: &[u64]) -> Option<f64> {
        let count = u64::try_from(values.len()).ok().filter(|count| *count > 0)?;
        let draw = |_| values.get(usize::try_from(self.next() % count).ok()?).copied();
        let mut drawn = values.iter().map(draw).collect::<Option<Vec<u64>>>()?;
        Figures::of(&mut drawn).median()
    }
}

fn wide(count: usize) -> u128 {
    u128::try_from(count).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn p_values_are_those_of_scipy() {
        // scipy 1.x, mannwhitneyu(x, y, method="exact" or "asymptotic"), two-sided.
        let cases: [(&[u64], &[u64], f64); 5] = [
            (&[1, 2, 3], &[4, 5, 6], 0.1),
            (&[1, 2, 3, 4], &[5, 6, 7, 8], 0.028_571_428_571_428_57),
            (&[10, 14, 18, 25], &[11, 12, 13, 15, 17], 0.555_555_555_555_556),
            (&[10, 10, 12, 13], &[10, 12, 14, 15, 15], 0.208_912_381_740_698),
            (&[7, 7], &[7, 7, 7], 1.0),
        ];
        for (before, after, expected) in cases {
            let p = mann_whitney(before, after).unwrap();
            assert!((p - expected).abs() < 1e-6, "{before:?} {after:?}: {p}");
            assert_eq!(mann_whitney(after, before), Some(p));
        }
        let (before, after): (Vec<u64>, Vec<u64>) = (
            (0..40).map(|i| 100 + i * 7 % 31).collect(),
            (0..30).map(|i| 108 + i * 5 % 29).collect(),
        );
        let p = mann_whitney(&before, &after).unwrap();
        assert!((p - 0.005_366_854_546_819).abs() < 1e-7, "{p}");
        assert_eq!(mann_whitney(&[], &[1]), None);
    }

    #[test]
    fn a_change_lies_in_its_interval() {
        let before: Vec<u64> = (0..20).map(|i| 1000 + i * 13 % 17).collect();
        let after: Vec<u64> = before.iter().map(|value| value * 11 / 10).collect();
        let (low, high) = change_of_median(&before, &after, 95).unwrap();
        assert!(low < 10.0 && high > 9.5 && low > 9.0 && high < 11.0, "{low} {high}");
        assert_eq!(change_of_median(&before, &after, 95), Some((low, high)));
        assert_eq!(change_of_median(&[], &after, 95), None);
        assert_eq!(change_of_median(&[0, 0], &after, 95), None);
        assert_eq!(median(&[1, 2, 9]), Some(2.0));
        assert_eq!(median(&[1, 2, 3, 9]), Some(2.5));
    }

    proptest! {
        #[test]
        fn the_exact_tail_is_that_of_all_orders(n in 1_usize..6, m in 1_usize..6, u in 0_usize..40) {
            // Every choice of n places among n + m; U counts the pairs in which the first sample is
            // larger.
            let (mut at_least, mut all) = (0_u32, 0_u32);
            for choice in 0_u32..1 << (n + m) {
                if choice.count_ones() != u32::try_from(n).unwrap() {
                    continue;
                }
                let chosen = |at: usize| choice >> at & 1 == 1;
                let pairs = (0..n + m).filter(|at| chosen(*at)).map(|at| (0..at).filter(|below| !chosen(*below)).count());
                all += 1;
                at_least += u32::from(pairs.sum::<usize>() >= u);
            }
            let expected = f64::from(at_least) / f64::from(all);
            prop_assert!((exact_tail(n, m, u) - expected).abs() < 1e-12);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn equal_samples_do_not_differ(values in proptest::collection::vec(1_u64..1000, 1..40)) {
            prop_assert!(mann_whitney(&values, &values).unwrap() > 0.9);
            let (low, high) = change_of_median(&values, &values, 95).unwrap();
            prop_assert!(low <= 0.0 && high >= 0.0);
        }
    }
}
