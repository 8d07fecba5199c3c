//! How much of a set of time lies within any interval, each answer in logarithmic time.

use crate::interval::{Interval, Intervals};

/// A set of time with the sums of its lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// Length of the set before each of `starts`.
    before: Vec<u64>,
}

impl Coverage {
    /// Of `set`.
    pub fn of(set: &Intervals) -> Self {
        let mut coverage = Self::default();
        let mut sum = 0;
        for interval in set.as_slice() {
            coverage.starts.push(interval.start);
            coverage.ends.push(interval.end);
            coverage.before.push(sum);
            sum += interval.len();
        }
        coverage
    }

    /// Length in ns of what the set holds of `interval`.
    pub fn within(&self, interval: Interval) -> u64 {
        if interval.is_empty() {
            return 0;
        }
        self.until(interval.end) - self.until(interval.start)
    }

    /// Length in ns of what the set does not hold of `interval`.
    pub fn missing_within(&self, interval: Interval) -> u64 {
        interval.len() - self.within(interval)
    }

    /// The first start of the set at `t_ns` or behind it.
    pub fn next_start(&self, t_ns: u64) -> Option<u64> {
        let at = self.starts.partition_point(|start| *start < t_ns);
        self.starts.get(at).copied()
    }

    /// Whether the set holds the nanosecond `t_ns`.
    pub fn holds(&self, t_ns: u64) -> bool {
        self.within(Interval::new(t_ns, t_ns.saturating_add(1))) > 0
    }

    /// Length of the set before `t_ns`.
    fn until(&self, t_ns: u64) -> u64 {
        let count = self.starts.partition_point(|start| *start < t_ns);
        let Some(last) = count.checked_sub(1) else {
            return 0;
        };
        let at = |list: &[u64]| list.get(last).copied().unwrap_or(0);
        at(&self.before) + at(&self.ends).min(t_ns).saturating_sub(at(&self.starts))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_lies_within_is_the_length_of_the_intersection(
            spans in vec((0_u64..200, 0_u64..30), 0..20),
            start in 0_u64..220,
            length in 0_u64..80,
        ) {
            let set = Intervals::union_of(spans.iter().map(|(start, length)| Interval::new(*start, start + length)));
            let coverage = Coverage::of(&set);
            let interval = Interval::new(start, start + length);
            let both = set.clip(interval).len_ns();
            prop_assert_eq!(coverage.within(interval), both);
            prop_assert_eq!(coverage.missing_within(interval), length - both);
            let held = set.as_slice().iter().any(|part| part.start <= start && start < part.end);
            prop_assert_eq!(coverage.holds(start), held);
            let next = set.as_slice().iter().map(|part| part.start).find(|next| *next >= start);
            prop_assert_eq!(coverage.next_start(start), next);
        }
    }
}
