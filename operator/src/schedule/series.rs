//! Metrics series of schedules. The names of schedules are label values, so at most 1,000 schedules
//! have series of their own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use flopwatch_api::schedule::{ProfilingScheduleStatus, SkipReason};
use flopwatch_schedule::Skipped;
use prometheus::{GaugeVec, IntCounterVec, Opts, Registry};

use crate::metrics::register;

/// Most schedules that have series of their own; the others are counted together, under [`OTHER`],
/// and have no gauges.
const MAX_SCHEDULES: usize = 1_000;
/// Namespace and name in the labels of schedules without series of their own.
const OTHER: &str = "other";

/// The result of creating a session for a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// The session was created.
    Created,
    /// The session existed: another controller, or a pass that was cut off, had created it.
    Existed,
    /// The API server refused the session, or could not be reached.
    Failed,
}

impl RunResult {
    /// Every result, in the order of declaration.
    pub const ALL: [Self; 3] = [Self::Created, Self::Existed, Self::Failed];

    /// Value of the metrics label `result`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Existed => "existed",
            Self::Failed => "failed",
        }
    }
}

/// The series of schedules, by namespace and name.
#[derive(Clone, Debug)]
pub struct ScheduleSeries {
    runs: IntCounterVec,
    skipped: IntCounterVec,
    overhead: GaugeVec,
    overhead_low: GaugeVec,
    overhead_high: GaugeVec,
    coverage: GaugeVec,
    named: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl ScheduleSeries {
    pub(crate) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let runs = Opts::new(
            "flopwatch_schedule_runs_total",
            "Sessions that were to be made for a schedule, by result.",
        );
        let skipped = Opts::new(
            "flopwatch_schedule_skipped_total",
            "Windows of a schedule that were left out, by reason: one for each pod and slot.",
        );
        let overhead = Opts::new(
            "flopwatch_schedule_overhead_ratio",
            "What the pods of a schedule were measured to lose over all of their time, as a ratio of their speed.",
        );
        let low = Opts::new(
            "flopwatch_schedule_overhead_low_ratio",
            "Lower end of the 95 % interval of flopwatch_schedule_overhead_ratio.",
        );
        let high = Opts::new(
            "flopwatch_schedule_overhead_high_ratio",
            "Upper end of the 95 % interval of flopwatch_schedule_overhead_ratio.",
        );
        let coverage = Opts::new(
            "flopwatch_schedule_coverage_ratio",
            "Pods of a schedule that were captured at least once, as a ratio of those that can be.",
        );
        Ok(Self {
            runs: register(
                registry,
                IntCounterVec::new(runs, &["namespace", "schedule", "result"])?,
            )?,
            skipped: register(
                registry,
                IntCounterVec::new(skipped, &["namespace", "schedule", "reason"])?,
            )?,
            overhead: register(registry, GaugeVec::new(overhead, &["namespace", "schedule"])?)?,
            overhead_low: register(registry, GaugeVec::new(low, &["namespace", "schedule"])?)?,
            overhead_high: register(registry, GaugeVec::new(high, &["namespace", "schedule"])?)?,
            coverage: register(registry, GaugeVec::new(coverage, &["namespace", "schedule"])?)?,
            named: Arc::default(),
        })
    }

    /// Counts a session that was to be made.
    pub(crate) fn count_run(&self, namespace: &str, schedule: &str, result: RunResult) {
        let [namespace, schedule] = self.labels(namespace, schedule).unwrap_or([OTHER; 2]);
        self.runs
            .with_label_values(&[namespace, schedule, result.as_str()])
            .inc();
    }

    /// Counts what was left out.
    pub(crate) fn count_skipped(&self, namespace: &str, schedule: &str, skipped: &Skipped) {
        let [namespace, schedule] = self.labels(namespace, schedule).unwrap_or([OTHER; 2]);
        for reason in SkipReason::ALL.iter().copied() {
            if let Ok(count @ 1..) = u64::try_from(skipped.of(reason)) {
                let labels = [namespace, schedule, reason.as_str()];
                self.skipped.with_label_values(&labels).inc_by(count);
            }
        }
    }

    /// Sets the gauges of a schedule from its status. A value that is not known has no series.
    pub(crate) fn show(&self, namespace: &str, schedule: &str, status: &ProfilingScheduleStatus) {
        let Some(labels) = self.labels(namespace, schedule) else {
            return;
        };
        let budget = status.budget.as_ref();
        for (gauge, lost) in [
            (&self.overhead, budget.and_then(|budget| budget.amortized_basis_points)),
            (&self.overhead_low, budget.and_then(|budget| budget.low)),
            (&self.overhead_high, budget.and_then(|budget| budget.high)),
        ] {
            set(gauge, labels, lost.map(|lost| f64::from(lost) / 10_000.0));
        }
        let sum = |of: fn(&flopwatch_api::schedule::StratumStatus) -> i32| -> f64 {
            status.strata.iter().map(of).map(f64::from).sum()
        };
        let pods = sum(|stratum| stratum.pods);
        let captured = (pods > 0.0).then(|| sum(|stratum| stratum.captured) / pods);
        set(&self.coverage, labels, captured);
    }

    /// Drops the series of a schedule that is gone.
    pub(crate) fn forget(&self, namespace: &str, schedule: &str) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if !named.remove(&(namespace.to_owned(), schedule.to_owned())) {
            return;
        }
        drop(named);
        for gauge in [&self.overhead, &self.overhead_low, &self.overhead_high, &self.coverage] {
            set(gauge, [namespace, schedule], None);
        }
        for result in RunResult::ALL {
            remove(&self.runs, [namespace, schedule, result.as_str()]);
        }
        for reason in SkipReason::ALL {
            remove(&self.skipped, [namespace, schedule, reason.as_str()]);
        }
    }

    /// The labels of a schedule; None where as many have series as may.
    fn labels<'a>(&self, namespace: &'a str, schedule: &'a str) -> Option<[&'a str; 2]> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (namespace.to_owned(), schedule.to_owned());
        if !named.contains(&name) && named.len() >= MAX_SCHEDULES {
            return None;
        }
        named.insert(name);
        Some([namespace, schedule])
    }
}

fn set(gauge: &GaugeVec, labels: [&str; 2], value: Option<f64>) {
    match value {
        Some(value) => gauge.with_label_values(&labels).set(value),
        // One that was never there is no error.
        None => drop(gauge.remove_label_values(&labels)),
    }
}

fn remove(counters: &IntCounterVec, labels: [&str; 3]) {
    // One that was never there is no error.
    drop(counters.remove_label_values(&labels));
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Encoder as _, TextEncoder};

    fn text(registry: &Registry) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_schedule_that_is_gone_leaves_no_series() {
        let registry = Registry::new();
        let series = ScheduleSeries::register(&registry).unwrap();
        let mut skipped = Skipped::default();
        skipped.add(SkipReason::Missed, 3);
        let status = serde_json::from_value(serde_json::json!({
            "strata": [
                {"key": "a", "pods": 3, "captured": 1, "probabilityPerBillion": 1},
                {"key": "b", "pods": 1, "captured": 1, "probabilityPerBillion": 1}
            ],
            "budget": {"state": "Within", "amortizedBasisPoints": 25, "windows": 9}
        }));
        series.count_run("team", "always", RunResult::Created);
        series.count_skipped("team", "always", &skipped);
        series.show("team", "always", &status.unwrap());
        let exposition = text(&registry);
        for line in [
            r#"flopwatch_schedule_runs_total{namespace="team",result="created",schedule="always"} 1"#,
            r#"flopwatch_schedule_skipped_total{namespace="team",reason="Missed",schedule="always"} 3"#,
            r#"flopwatch_schedule_overhead_ratio{namespace="team",schedule="always"} 0.0025"#,
            r#"flopwatch_schedule_coverage_ratio{namespace="team",schedule="always"} 0.5"#,
        ] {
            assert!(exposition.contains(line), "{line} is not in\n{exposition}");
        }
        series.forget("team", "always");
        assert!(!text(&registry).contains("always"), "{}", text(&registry));
    }

    #[test]
    fn schedules_beyond_the_bound_are_counted_together() {
        let registry = Registry::new();
        let series = ScheduleSeries::register(&registry).unwrap();
        for number in 0..MAX_SCHEDULES + 3 {
            series.count_run("team", &format!("s{number}"), RunResult::Created);
        }
        let exposition = text(&registry);
        assert_eq!(
            exposition.lines().filter(|line| !line.starts_with('#')).count(),
            MAX_SCHEDULES + 1
        );
        let other = r#"flopwatch_schedule_runs_total{namespace="other",result="created",schedule="other"} 3"#;
        assert!(exposition.contains(other), "{exposition}");
    }
}
