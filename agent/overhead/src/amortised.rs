//! What profiling costs over all time.

use crate::decide::{Reason, Verdict, compare};
use crate::estimate::Estimate;
use crate::number::{BASIS_POINTS_OF_ALL, float, whole};

const MILLION: f64 = 1e6;

/// A window of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastWindow {
    /// Slowdown of the target in the window, in basis points.
    pub slowdown_basis_points: i64,
    /// Lower end of the slowdown's 95 % interval.
    pub low_basis_points: i64,
    /// Upper end of the slowdown's 95 % interval.
    pub high_basis_points: i64,
    /// How long it collected, in ms.
    pub during_ms: u64,
    /// How long the target stood still while it started and stopped, in ms; lost in full.
    pub stall_ms: u64,
    /// How likely the target was to be chosen for it, in millionths; 1,000,000 where the cost is
    /// that of one known target.
    pub probability_ppm: u32,
}

impl PastWindow {
    /// A window of a target that was not chosen by chance.
    pub fn certain(estimate: &Estimate, during_ms: u64, stall_ms: u64) -> Self {
        Self {
            slowdown_basis_points: estimate.slowdown_basis_points,
            low_basis_points: estimate.low_basis_points,
            high_basis_points: estimate.high_basis_points,
            during_ms,
            stall_ms,
            probability_ppm: 1_000_000,
        }
    }

    /// The expected loss at a slowdown, in ms times basis points.
    fn loss(&self, slowdown_basis_points: i64) -> f64 {
        let sign = if slowdown_basis_points < 0 { -1.0 } else { 1.0 };
        let slowdown = sign * float(slowdown_basis_points.unsigned_abs());
        f64::from(self.probability_ppm) / MILLION
            * (slowdown * float(self.during_ms) + BASIS_POINTS_OF_ALL * float(self.stall_ms))
    }
}

/// The slowdown over all time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amortised {
    /// In basis points.
    pub slowdown_basis_points: i64,
    /// What it is at least, with every window at its lower end; rounded down.
    pub low_basis_points: i64,
    /// What it is at most, with every window at its upper end; rounded up.
    pub high_basis_points: i64,
}

impl Amortised {
    /// Judges it by the budget over all time.
    pub fn judge(&self, amortised_basis_points: u32) -> (Verdict, Reason) {
        compare(self.low_basis_points, self.high_basis_points, amortised_basis_points)
    }
}

/// The cost of `windows` over `time_ms` of the target's time, in which they lie. `None` of no time.
///
/// Ends of the windows' intervals are added up, since what biases one window, as a wrong sensor
/// does, biases all: the interval holds the cost at least as surely as 95 %.
pub fn amortised(windows: &[PastWindow], time_ms: u64) -> Option<Amortised> {
    let of = |slowdown: fn(&PastWindow) -> i64| {
        let lost: f64 = windows.iter().map(|window| window.loss(slowdown(window))).sum();
        lost / float(time_ms)
    };
    (time_ms > 0).then(|| Amortised {
        slowdown_basis_points: whole(of(|window| window.slowdown_basis_points).round()),
        low_basis_points: whole(of(|window| window.low_basis_points).floor()),
        high_basis_points: whole(of(|window| window.high_basis_points).ceil()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: PastWindow = PastWindow {
        slowdown_basis_points: 900,
        low_basis_points: 400,
        high_basis_points: 1500,
        during_ms: 10_000,
        stall_ms: 0,
        probability_ppm: 1_000_000,
    };

    #[test]
    fn ten_seconds_in_nine_hundred_cost_a_ninetieth_of_their_slowdown() {
        let cost = amortised(&[WINDOW; 4], 4 * 900_000).unwrap();
        assert_eq!(
            (
                cost.low_basis_points,
                cost.slowdown_basis_points,
                cost.high_basis_points
            ),
            (4, 10, 17)
        );
        assert_eq!(cost.judge(100), (Verdict::Within, Reason::UpperEndWithin));
        assert_eq!(cost.judge(10), (Verdict::Inconclusive, Reason::BudgetWithinInterval));
        assert_eq!(cost.judge(3), (Verdict::Exceeded, Reason::LowerEndAbove));
    }

    #[test]
    fn a_stall_is_lost_in_full() {
        let stalled = PastWindow {
            stall_ms: 900,
            ..WINDOW
        };
        assert_eq!(amortised(&[stalled], 900_000).unwrap().slowdown_basis_points, 20);
    }

    #[test]
    fn a_window_that_falls_on_one_target_in_a_hundred_costs_a_hundredth() {
        let rare = PastWindow {
            probability_ppm: 10_000,
            ..WINDOW
        };
        assert_eq!(amortised(&[rare; 100], 900_000).unwrap().slowdown_basis_points, 10);
    }

    #[test]
    fn no_window_costs_nothing_and_no_time_has_no_cost() {
        assert_eq!(amortised(&[], 1000).unwrap().high_basis_points, 0);
        assert_eq!(amortised(&[WINDOW], 0), None);
    }
}
