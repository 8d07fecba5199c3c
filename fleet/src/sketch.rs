//! How durations are spread, within 2 %, in a form that merges: DDSketch (Masson, Rim and Lee, VLDB
//! 2019) with a bound for every value.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The bucket of durations of 0 ns.
const ZERO: i32 = -1;

/// The growth of a bucket, (1 + a) / (1 - a) for a relative error a of 2 %.
const GROWTH: (u128, u128) = (51, 49);

/// Bits behind the point in which bounds are computed: as many as 2^64 x 51 leaves of 128.
const FRACTION_BITS: u32 = 58;

/// The largest duration of each bucket, from bucket 0, which holds 1 ns. In integers, so that every
/// machine has the same.
static BOUNDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let (grow, shrink) = GROWTH;
    let mut bounds = Vec::new();
    let mut bound: u128 = 1 << FRACTION_BITS;
    while let Ok(whole) = u64::try_from(bound >> FRACTION_BITS) {
        bounds.push(whole);
        bound = bound / shrink * grow + bound % shrink * grow / shrink;
    }
    bounds
});

/// Counts of durations in buckets that grow by 51/49. Bucket `i` holds durations above
/// (51/49)^(i-1) ns and up to (51/49)^i ns; bucket -1 holds those of 0 ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    buckets: BTreeMap<i32, u64>,
}

impl Sketch {
    /// The bucket of the longest duration that 64 bits hold.
    pub fn last_bucket() -> i32 {
        i32::try_from(BOUNDS.len()).unwrap_or(i32::MAX)
    }

    /// Of counts by bucket; `None` where a bucket does not exist, is there twice, is out of order,
    /// or holds nothing.
    pub fn from_buckets(buckets: impl IntoIterator<Item = (i32, u64)>) -> Option<Self> {
        let mut sketch = Self::default();
        for (bucket, count) in buckets {
            let follows = sketch.buckets.last_key_value().is_none_or(|(last, _)| *last < bucket);
            if !follows || count == 0 || !(ZERO..=Self::last_bucket()).contains(&bucket) {
                return None;
            }
            sketch.buckets.insert(bucket, count);
        }
        Some(sketch)
    }

    /// Counts by bucket, in order; none of them is 0.
    pub fn buckets(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        self.buckets.iter().map(|(bucket, count)| (*bucket, *count))
    }

    /// Adds a duration.
    pub fn add(&mut self, duration_ns: u64) {
        let count = self.buckets.entry(bucket(duration_ns)).or_default();
        *count = count.saturating_add(1);
    }

    /// Adds all that `other` holds: the result is the sketch of both lists of durations, whatever
    /// the order.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in &other.buckets {
            let count = self.buckets.entry(*bucket).or_default();
            *count = count.saturating_add(*more);
        }
    }

    /// How many durations.
    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The duration in ns below which a share of `q` lies, 0 to 1: within 2 % of the element of the
    /// sorted list at `q (n - 1)`, rounded down. `None` of no durations.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let last = self.count().checked_sub(1)?;
        let rank = flopwatch_model::whole((q.clamp(0.0, 1.0) * flopwatch_model::approximate(u128::from(last))).floor());
        let mut below = 0_u64;
        let holds = |(_, count): &(i32, u64)| {
            below = below.saturating_add(*count);
            below > rank
        };
        let (bucket, _) = self.buckets().find(holds).or_else(|| self.buckets().last())?;
        // The point that is as far from both ends: 2 g^i / (g + 1).
        Some(if bucket == ZERO {
            0.0
        } else {
            0.98 * (51.0_f64 / 49.0).powi(bucket)
        })
    }
}

fn bucket(duration_ns: u64) -> i32 {
    if duration_ns == 0 {
        return ZERO;
    }
    let position = BOUNDS.partition_point(|bound| *bound < duration_ns);
    i32::try_from(position).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(durations: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        for duration in durations {
            sketch.add(*duration);
        }
        sketch
    }

    #[test]
    fn buckets_are_those_that_ddsketch_defines() {
        assert_eq!((bucket(0), bucket(1), bucket(2)), (-1, 0, 18));
        assert_eq!((bucket(u64::MAX), Sketch::last_bucket()), (1_109, 1_109));
        let growth = (51.0_f64 / 49.0).ln();
        let mut value = 3_u64;
        while value < 1 << 52 {
            let exact = flopwatch_model::approximate(u128::from(value)).ln() / growth;
            let exact = flopwatch_model::whole(exact.ceil());
            assert_eq!(u64::try_from(bucket(value)).unwrap(), exact, "{value}");
            value += value / 7 + 1;
        }
    }

    #[test]
    fn of_nothing_there_are_no_quantiles() {
        assert_eq!(Sketch::default().quantile(0.5), None);
        assert_eq!(of(&[0]).quantile(0.5), Some(0.0));
    }

    #[test]
    fn counts_that_no_sketch_has_are_refused() {
        let last = Sketch::last_bucket();
        let cases: [(&[(i32, u64)], bool); 7] = [
            (&[], true),
            (&[(-1, 1), (last, 2)], true),
            (&[(-2, 1)], false),
            (&[(last + 1, 1)], false),
            (&[(3, 0)], false),
            (&[(3, 1), (3, 1)], false),
            (&[(4, 1), (3, 1)], false),
        ];
        for (buckets, valid) in cases {
            assert_eq!(
                Sketch::from_buckets(buckets.iter().copied()).is_some(),
                valid,
                "{buckets:?}"
            );
        }
    }

    /// Durations of all magnitudes.
    fn durations() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(
            (0_u32..64, any::<u64>()).prop_map(|(bits, value)| value >> bits),
            1..200,
        )
    }

    proptest! {
        #[test]
        fn merging_gives_the_sketch_of_all_durations(parts in prop::collection::vec(durations(), 1..6)) {
            let all: Vec<u64> = parts.concat();
            let mut forth = Sketch::default();
            let mut back = Sketch::default();
            for part in &parts {
                forth.merge(&of(part));
            }
            for part in parts.iter().rev() {
                back.merge(&of(part));
            }
            prop_assert_eq!(&forth, &of(&all));
            prop_assert_eq!(&back, &forth);
            prop_assert_eq!(Sketch::from_buckets(forth.buckets()), Some(forth));
        }

        #[test]
        fn quantiles_are_within_two_percent(mut values in durations(), q in 0.0_f64..=1.0) {
            let found = of(&values).quantile(q).unwrap();
            values.sort_unstable();
            let last = flopwatch_model::approximate(u128::from(flopwatch_model::count(values.len() - 1)));
            let position = usize::try_from(flopwatch_model::whole((q * last).floor())).unwrap();
            let exact = flopwatch_model::approximate(u128::from(values[position]));
            prop_assert!((found - exact).abs() <= exact * 0.02 * (1.0 + 1e-9), "{} for {}", found, exact);
        }
    }
}
