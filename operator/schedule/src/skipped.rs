//! What was left out, by reason.

use std::collections::BTreeMap;

use flopwatch_api::schedule::{SkipReason, SkippedCount};

/// How many windows were left out, one for each pod and slot, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeMap<SkipReason, i64>);

impl Skipped {
    /// Counts as many more. A count that would overflow stays at its largest.
    pub fn add(&mut self, reason: SkipReason, count: i64) {
        if count > 0 {
            let counted = self.0.entry(reason).or_default();
            *counted = counted.saturating_add(count);
        }
    }

    /// How many for that reason.
    pub fn of(&self, reason: SkipReason) -> i64 {
        self.0.get(&reason).copied().unwrap_or_default()
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The counts of a status with these added to them, in the order of the reasons.
    pub fn added_to(&self, status: &[SkippedCount]) -> Vec<SkippedCount> {
        let mut sum = self.clone();
        for earlier in status {
            sum.add(earlier.reason, earlier.count);
        }
        let counted = |(reason, count)| SkippedCount { reason, count };
        sum.0.into_iter().map(counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_status_are_added_to_and_none_is_lost() {
        let mut skipped = Skipped::default();
        skipped.add(SkipReason::Missed, 2);
        skipped.add(SkipReason::Resting, 0);
        let before = [SkipReason::Missed, SkipReason::Blackout].map(|reason| SkippedCount { reason, count: 5 });
        let after: Vec<(SkipReason, i64)> = skipped
            .added_to(&before)
            .iter()
            .map(|one| (one.reason, one.count))
            .collect();
        assert_eq!(after, [(SkipReason::Missed, 7), (SkipReason::Blackout, 5)]);
    }
}
