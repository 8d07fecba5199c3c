//! Sums of one group.

use flopwatch_model::approximate;

use super::resample::Resamples;
use crate::row::Row;

/// What one capture adds to a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    total_ns: u128,
    calls: u128,
}

impl Part {
    pub(super) fn add(&mut self, row: &Row) {
        self.total_ns += u128::from(row.total_ns.max(0).unsigned_abs());
        self.calls += u128::from(row.calls.max(0).unsigned_abs());
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.total_ns += other.total_ns;
        self.calls += other.calls;
    }
}

/// Sums over captures: as they are, weighted, and weighted in each resample.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    pub(super) captures: u64,
    pub(super) observed_ns: u128,
    pub(super) observed_calls: u128,
    pub(super) total_ns: f64,
    pub(super) calls: f64,
    pub(super) resampled_ns: Vec<f64>,
    pub(super) resampled_calls: Vec<f64>,
    /// How much of `total_ns` may be missing, as the group had been let go of before.
    pub(super) may_miss_ns: f64,
}

impl Sums {
    pub(super) fn new(resamples: usize) -> Self {
        Self {
            captures: 0,
            observed_ns: 0,
            observed_calls: 0,
            total_ns: 0.0,
            calls: 0.0,
            resampled_ns: vec![0.0; resamples],
            resampled_calls: vec![0.0; resamples],
            may_miss_ns: 0.0,
        }
    }

    pub(super) fn add(&mut self, part: Part, weight: f64, resamples: &Resamples) {
        let (total_ns, calls) = (approximate(part.total_ns) * weight, approximate(part.calls) * weight);
        self.captures += 1;
        self.observed_ns += part.total_ns;
        self.observed_calls += part.calls;
        self.total_ns += total_ns;
        self.calls += calls;
        for (sum, times) in self.resampled_ns.iter_mut().zip(&resamples.times) {
            *sum += times * total_ns;
        }
        for (sum, times) in self.resampled_calls.iter_mut().zip(&resamples.times) {
            *sum += times * calls;
        }
    }

    /// Adds the sums of another group.
    pub(super) fn merge(&mut self, other: &Self) {
        self.captures += other.captures;
        self.observed_ns += other.observed_ns;
        self.observed_calls += other.observed_calls;
        self.total_ns += other.total_ns;
        self.calls += other.calls;
        for (sum, more) in self.resampled_ns.iter_mut().zip(&other.resampled_ns) {
            *sum += more;
        }
        for (sum, more) in self.resampled_calls.iter_mut().zip(&other.resampled_calls) {
            *sum += more;
        }
    }

    /// The most that it may have.
    pub(super) fn most_ns(&self) -> f64 {
        self.total_ns + self.may_miss_ns
    }
}
