//! The verdict on a window.

use crate::arms::Arms;
use crate::bins::Measure;
use crate::drift::Drift;
use crate::estimate::{Estimate, EstimateError, estimate, rough_estimate};

/// What a target may lose to profiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Slowdown within a window, in basis points.
    pub during_basis_points: u32,
    /// Slowdown over all time, in basis points.
    pub amortised_basis_points: u32,
}

impl Default for Budget {
    /// 10 % within a window and 1 % over all time.
    fn default() -> Self {
        Self {
            during_basis_points: 1000,
            amortised_basis_points: 100,
        }
    }
}

/// Whether profiling kept within a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is within the budget.
    Within,
    /// The whole interval is above the budget.
    Exceeded,
    /// The measurements do not tell whether the budget was kept.
    Inconclusive,
    /// No signal shows the target's work.
    Blind,
}

/// Why the verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The upper end of the interval is within the budget.
    UpperEndWithin,
    /// The lower end of the interval is above the budget.
    LowerEndAbove,
    /// The budget lies within the interval: it takes more bins, or more windows, to tell.
    BudgetWithinInterval,
    /// Fewer than 8 independent bins in the window, or none, or fewer than 8 before it.
    TooFewBins,
    /// The target's rate after the window differs from that before it by more than half of the
    /// budget.
    LoadChanged,
    /// No bin before the window shows work, or none in it has the measure.
    NoSignal,
}

/// The verdict on one window, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the window kept within its budget.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub reason: Reason,
    /// The effect, where there is an estimate; also where the load changed, and then it is not of
    /// the profiler alone. A rough one of a window with too few bins.
    pub estimate: Option<Estimate>,
    /// The time after the window against that before it. `Unknown` leaves a change of load
    /// unnoticed.
    pub drift: Drift,
}

/// Judges a window by the budget within windows.
pub fn decide(arms: &Arms, measure: Measure, budget: &Budget) -> Decision {
    let drift = Drift::of(arms, measure);
    let found = estimate(arms, measure);
    let (verdict, reason) = match &found {
        Err(EstimateError::Blind { .. }) => (Verdict::Blind, Reason::NoSignal),
        _ if drift.exceeds_half_of(budget.during_basis_points) => (Verdict::Inconclusive, Reason::LoadChanged),
        Err(EstimateError::TooFewBins { .. }) => (Verdict::Inconclusive, Reason::TooFewBins),
        Ok(known) => compare(
            known.low_basis_points,
            known.high_basis_points,
            budget.during_basis_points,
        ),
    };
    let estimate = match found {
        Ok(known) => Some(known),
        Err(EstimateError::TooFewBins { .. }) => rough_estimate(arms, measure),
        Err(EstimateError::Blind { .. }) => None,
    };
    Decision {
        verdict,
        reason,
        estimate,
        drift,
    }
}

/// Compares the interval of a slowdown with a budget, all in basis points.
pub fn compare(low_basis_points: i64, high_basis_points: i64, budget_basis_points: u32) -> (Verdict, Reason) {
    let budget = i64::from(budget_basis_points);
    if high_basis_points <= budget {
        (Verdict::Within, Reason::UpperEndWithin)
    } else if low_basis_points > budget {
        (Verdict::Exceeded, Reason::LowerEndAbove)
    } else {
        (Verdict::Inconclusive, Reason::BudgetWithinInterval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_by_the_upper_end_and_exceeded_by_the_lower_end() {
        let verdict = |low, high| compare(low, high, 1000).0;
        assert_eq!(verdict(-200, 1000), Verdict::Within);
        assert_eq!(verdict(-200, 1001), Verdict::Inconclusive);
        assert_eq!(verdict(1000, 2000), Verdict::Inconclusive);
        assert_eq!(verdict(1001, 2000), Verdict::Exceeded);
    }
}
