//! The agent's own metrics. Labels come from closed sets: reasons, stages and outcomes.

mod fleet_files;

use std::time::Duration;

use flopwatch_api::capture::Stage;
use flopwatch_api::overhead::OverheadVerdict;
use flopwatch_api::reason::CaptureReason;
use prometheus::{
    Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};
use strum::{IntoStaticStr, VariantArray};

pub use fleet_files::{FleetMetrics, FleetResult};

/// How a graft ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GraftOutcome {
    /// The session was started and the launcher took its environment over.
    Grafted,
    /// Admission did not prepare the pod or the container, so nothing was done.
    NotPrepared,
    /// The pod is not in the agent's store; the launcher will go on by itself.
    UnknownPod,
    /// The launcher is of a later version than this agent; it will go on by itself.
    OtherVersion,
    /// Starting the session failed or passed its deadline; the launcher goes on plainly.
    Failed,
}

impl GraftOutcome {
    /// Every outcome.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The label's value.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Counters and gauges of one agent.
#[derive(Clone, Debug)]
pub struct Metrics {
    captures: IntCounterVec,
    stages: HistogramVec,
    grafts: IntCounterVec,
    live: IntGauge,
    watch_errors: IntCounterVec,
    overhead: IntCounterVec,
    uploads: IntCounterVec,
    uploads_due: IntGauge,
    evicted: IntCounter,
    fleet: FleetMetrics,
    scrape_reviews: IntCounterVec,
    certificate_expiry: Gauge,
}

/// Label values of uploads to the object store: `stored`, and the reasons of those that failed.
const UPLOAD_FAILURES: [CaptureReason; 3] = [
    CaptureReason::ObjectStoreRefused,
    CaptureReason::ObjectStoreUnavailable,
    CaptureReason::StoreFailed,
];

/// A counter for each value of some labels.
fn counter(name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

/// Watches whose errors are counted.
pub const WATCHES: [&str; 2] = ["captures", "pods"];

impl Metrics {
    /// Makes the metrics and registers them. Every label's value is there from the start, so that
    /// rates see the first increase.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            captures: counter(
                "flopwatch_captures_total",
                "Captures that ended on this node, by result and reason.",
                &["result", "reason"],
            )?,
            stages: HistogramVec::new(
                HistogramOpts::new(
                    "flopwatch_capture_stage_seconds",
                    "Time that captures spent in each stage.",
                )
                .buckets(vec![
                    0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0,
                ]),
                &["stage"],
            )?,
            grafts: counter(
                "flopwatch_grafts_total",
                "Starts of prepared containers that waited for this agent, by outcome.",
                &["outcome"],
            )?,
            live: IntGauge::new("flopwatch_captures_live", "Captures that this agent carries out now.")?,
            watch_errors: counter(
                "flopwatch_watch_errors_total",
                "Errors of the watches on the API server; each is retried.",
                &["watch"],
            )?,
            overhead: counter(
                "flopwatch_capture_overhead_total",
                "Windows of captures, by what they cost their target against the budget.",
                &["verdict"],
            )?,
            uploads: counter(
                "flopwatch_store_uploads_total",
                "Tries to copy a capture's artifacts to the object store, by result.",
                &["result"],
            )?,
            uploads_due: IntGauge::new(
                "flopwatch_store_uploads_due",
                "Captures of this node that are still to be copied to the object store.",
            )?,
            evicted: IntCounter::new(
                "flopwatch_captures_evicted_total",
                "Captures whose artifacts left the node to keep its limits of size and age.",
            )?,
            fleet: FleetMetrics::register(registry)?,
            scrape_reviews: counter(
                "flopwatch_metrics_access_reviews_total",
                "Questions put to the Kubernetes API about who may read metrics.",
                &["review", "result"],
            )?,
            certificate_expiry: Gauge::new(
                "flopwatch_agent_certificate_expiry_timestamp_seconds",
                "End of validity of this node's certificate; 0 until the controller signed one.",
            )?,
        };
        let build = IntGaugeVec::new(
            Opts::new("flopwatch_build_info", "Always 1; says which version runs."),
            &["version", "component"],
        )?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION"), "agent"]).set(1);
        metrics.name_labels();
        for counter in [
            &metrics.overhead,
            &metrics.uploads,
            &metrics.scrape_reviews,
            &metrics.captures,
            &metrics.grafts,
            &metrics.watch_errors,
        ] {
            registry.register(Box::new(counter.clone()))?;
        }
        registry.register(Box::new(metrics.uploads_due.clone()))?;
        registry.register(Box::new(metrics.evicted.clone()))?;
        registry.register(Box::new(metrics.certificate_expiry.clone()))?;
        registry.register(Box::new(metrics.stages.clone()))?;
        registry.register(Box::new(metrics.live.clone()))?;
        registry.register(Box::new(build))?;
        Ok(metrics)
    }

    /// Makes the series of every label's value.
    fn name_labels(&self) {
        self.captures
            .with_label_values(&["succeeded", CaptureReason::Succeeded.as_str()])
            .reset();
        for reason in CaptureReason::ALL {
            if *reason != CaptureReason::Succeeded {
                self.captures.with_label_values(&["failed", reason.as_str()]).reset();
            }
        }
        for outcome in GraftOutcome::ALL {
            self.grafts.with_label_values(&[outcome.as_str()]).reset();
        }
        for verdict in OverheadVerdict::ALL {
            self.overhead.with_label_values(&[verdict.as_str()]).reset();
        }
        for watch in WATCHES {
            self.watch_errors.with_label_values(&[watch]).reset();
        }
        self.uploads.with_label_values(&["stored"]).reset();
        for reason in UPLOAD_FAILURES {
            self.uploads.with_label_values(&[reason.as_str()]).reset();
        }
    }

    /// A capture ended.
    pub fn capture_ended(&self, reason: CaptureReason) {
        let result = if reason == CaptureReason::Succeeded {
            "succeeded"
        } else {
            "failed"
        };
        self.captures.with_label_values(&[result, reason.as_str()]).inc();
    }

    /// A window was judged by what it cost.
    pub fn overhead(&self, verdict: OverheadVerdict) {
        self.overhead.with_label_values(&[verdict.as_str()]).inc();
    }

    /// A capture left a stage after so many seconds.
    pub fn stage_left(&self, stage: Stage, seconds: f64) {
        self.stages.with_label_values(&[stage.as_str()]).observe(seconds);
    }

    /// A waiting launcher was dealt with.
    pub fn graft(&self, outcome: GraftOutcome) {
        self.grafts.with_label_values(&[outcome.as_str()]).inc();
    }

    /// So many captures are carried out now.
    pub fn live(&self, captures: usize) {
        self.live.set(i64::try_from(captures).unwrap_or(i64::MAX));
    }

    /// A try to copy a capture to the object store ended, with a reason when it failed.
    pub fn upload(&self, failed: Option<CaptureReason>) {
        let known = failed.map(|reason| {
            if UPLOAD_FAILURES.contains(&reason) {
                reason
            } else {
                CaptureReason::StoreFailed
            }
        });
        let result = known.map_or("stored", CaptureReason::as_str);
        self.uploads.with_label_values(&[result]).inc();
    }

    /// So many captures are still to be copied.
    pub fn uploads_due(&self, captures: usize) {
        self.uploads_due.set(i64::try_from(captures).unwrap_or(i64::MAX));
    }

    /// A capture's artifacts left the node to keep its limits.
    pub fn evicted(&self) {
        self.evicted.inc();
    }

    /// What is counted of fleet rows.
    pub const fn fleet(&self) -> &FleetMetrics {
        &self.fleet
    }

    /// Where a reviewer of those who read metrics counts.
    pub fn scrape_reviews(&self) -> IntCounterVec {
        self.scrape_reviews.clone()
    }

    /// The node's certificate ends at that time since 1970; None: nobody signed it.
    pub fn certified_until(&self, end: Option<Duration>) {
        self.certificate_expiry.set(end.unwrap_or_default().as_secs_f64());
    }

    /// A watch failed and is retried; the name is one of [`WATCHES`].
    pub fn watch_error(&self, watch: &str) {
        self.watch_errors.with_label_values(&[watch]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_there_before_the_first_capture() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry).unwrap();
        metrics.capture_ended(CaptureReason::ContainerBusy);
        let text = prometheus::TextEncoder::new()
            .encode_to_string(&registry.gather())
            .unwrap();
        for line in [
            "flopwatch_captures_total{reason=\"Succeeded\",result=\"succeeded\"} 0",
            "flopwatch_captures_total{reason=\"ContainerBusy\",result=\"failed\"} 1",
            "flopwatch_grafts_total{outcome=\"grafted\"} 0",
            "flopwatch_captures_live 0",
            "flopwatch_fleet_files_total{result=\"dropped\"} 0",
            "flopwatch_fleet_files_waiting 0",
            "flopwatch_capture_overhead_total{verdict=\"Blind\"} 0",
            "flopwatch_agent_certificate_expiry_timestamp_seconds 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn metrics_register_once_per_registry() {
        let registry = Registry::new();
        Metrics::register(&registry).unwrap();
        assert!(Metrics::register(&registry).is_err());
    }
}
