//! Whether the target's load was another after the window than before it.

use crate::arms::Arms;
use crate::bins::Measure;
use crate::estimate::{Logs, MINIMUM_BINS};
use crate::number::{log_of, slowdown, whole};
use crate::shift::hodges_lehmann;

/// The time after a window against that before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Fewer than 8 bins before or after the window: not known.
    Unknown,
    /// Known.
    Known {
        /// Slowdown of the time after against the time before, in basis points; negative where the
        /// target became faster.
        slowdown_basis_points: i64,
    },
}

impl Drift {
    /// Compares both.
    pub fn of(arms: &Arms, measure: Measure) -> Self {
        let Ok(logs) = Logs::of(arms, measure) else {
            return Self::Unknown;
        };
        // Bins that depend on each other count here: a load that rises all the time makes them so.
        if logs.before.len().min(logs.after.len()) < MINIMUM_BINS {
            return Self::Unknown;
        }
        let moved = hodges_lehmann(&Logs::values([&logs.after]), &Logs::values([&logs.before]));
        moved.map_or(Self::Unknown, |moved| Self::Known {
            slowdown_basis_points: whole(slowdown(moved).round()),
        })
    }

    /// Whether both differ by more than half of the budget, in either direction and by ratio.
    pub fn exceeds_half_of(self, during_basis_points: u32) -> bool {
        match self {
            Self::Unknown => false,
            Self::Known { slowdown_basis_points } => {
                let moved = log_of(f64::from(i32::try_from(slowdown_basis_points).unwrap_or(i32::MAX)));
                // NaN of a rate that fell below nothing cannot be; it would count as drift.
                moved.is_nan() || moved.abs() > log_of(f64::from(during_basis_points) / 2.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_budget_is_drift_in_both_directions() {
        let exceeds = |slowdown_basis_points| Drift::Known { slowdown_basis_points }.exceeds_half_of(1000);
        assert_eq!(
            [-10_000, -477, -476, 0, 500, 501, 9_990_000, i64::MAX].map(exceeds),
            [true, true, false, false, false, true, true, true]
        );
        assert!(!Drift::Unknown.exceeds_half_of(1000));
    }
}
