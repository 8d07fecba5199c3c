//! The sampler's own counters.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntCounterVec, Opts};

use crate::error::Reason;

/// Counters of the sampler; absent only if the names were refused, which a test excludes.
#[derive(Debug)]
pub(crate) struct Counters {
    errors: Option<IntCounterVec>,
    reopens: Option<IntCounter>,
    dropped: Option<IntCounter>,
    missed: Option<IntCounter>,
}

impl Counters {
    pub(crate) fn new() -> Self {
        let errors = Opts::new("flopwatch_nvml_errors_total", "Calls to NVML that failed, by reason");
        let counters = Self {
            errors: IntCounterVec::new(errors, &["reason"]).ok(),
            reopens: counter(
                "flopwatch_nvml_reopens_total",
                "Times that NVML was opened again after it was lost",
            ),
            dropped: counter(
                "flopwatch_nvml_dropped_points_total",
                "Points of captures that were over their limit",
            ),
            missed: counter(
                "flopwatch_nvml_missed_samples_total",
                "Samples of captures that were skipped for lack of time",
            ),
        };
        for reason in Reason::ALL {
            if let Some(errors) = &counters.errors {
                errors.with_label_values(&[reason.as_str()]).inc_by(0);
            }
        }
        counters
    }

    pub(crate) fn error(&self, reason: Reason) {
        if let Some(errors) = &self.errors {
            errors.with_label_values(&[reason.as_str()]).inc();
        }
    }

    pub(crate) fn reopened(&self) {
        self.reopens.iter().for_each(IntCounter::inc);
    }

    pub(crate) fn dropped(&self, points: u64) {
        self.dropped.iter().for_each(|counter| counter.inc_by(points));
    }

    pub(crate) fn missed(&self, samples: u64) {
        self.missed.iter().for_each(|counter| counter.inc_by(samples));
    }

    pub(crate) fn descs(&self) -> Vec<Desc> {
        self.all().into_iter().flat_map(Collector::desc).cloned().collect()
    }

    pub(crate) fn collect(&self) -> Vec<MetricFamily> {
        self.all().into_iter().flat_map(Collector::collect).collect()
    }

    fn all(&self) -> Vec<&dyn Collector> {
        let mut all: Vec<&dyn Collector> = Vec::new();
        all.extend(self.errors.iter().map(|errors| -> &dyn Collector { errors }));
        for counter in [&self.reopens, &self.dropped, &self.missed] {
            all.extend(counter.iter().map(|counter| -> &dyn Collector { counter }));
        }
        all
    }
}

fn counter(name: &str, help: &str) -> Option<IntCounter> {
    IntCounter::new(name, help).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_that_is_accepted() {
        assert_eq!(Counters::new().collect().len(), 4);
    }
}
