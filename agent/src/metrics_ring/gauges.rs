//! The ring's own series for Prometheus.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::span::{CGROUP, NVML};

/// Label values of what has no room.
const KINDS: [&str; 2] = ["container", "device"];

/// What the ring counts of itself. Label `source` is `nvml` or `cgroup`.
#[derive(Clone, Debug)]
pub(super) struct Gauges {
    bytes: IntGaugeVec,
    missed: IntCounterVec,
    rounds: HistogramVec,
    left_out: IntCounterVec,
}

impl Gauges {
    /// Makes and registers them; every label's value is there from the start.
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = Self {
            bytes: IntGaugeVec::new(
                Opts::new(
                    "flopwatch_metrics_ring_bytes",
                    "Memory that the samples of the last minutes take, by source.",
                ),
                &["source"],
            )?,
            missed: IntCounterVec::new(
                Opts::new(
                    "flopwatch_metrics_ring_missed_samples_total",
                    "Samples of all GPUs, or of a container, that were due and not taken.",
                ),
                &["source"],
            )?,
            rounds: HistogramVec::new(
                HistogramOpts::new(
                    "flopwatch_metrics_ring_round_processor_seconds",
                    "Processor time of each round of samples, by source.",
                )
                .buckets(vec![0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.01, 0.1]),
                &["source"],
            )?,
            left_out: IntCounterVec::new(
                Opts::new(
                    "flopwatch_metrics_ring_left_out_total",
                    "Containers that the ring had no room for, and samples of devices that it had none for.",
                ),
                &["kind"],
            )?,
        };
        for source in [NVML, CGROUP] {
            gauges.bytes.with_label_values(&[source]).set(0);
            gauges.missed.with_label_values(&[source]).reset();
            gauges.rounds.with_label_values(&[source]);
        }
        for kind in KINDS {
            gauges.left_out.with_label_values(&[kind]).reset();
        }
        registry.register(Box::new(gauges.bytes.clone()))?;
        registry.register(Box::new(gauges.missed.clone()))?;
        registry.register(Box::new(gauges.rounds.clone()))?;
        registry.register(Box::new(gauges.left_out.clone()))?;
        Ok(gauges)
    }

    pub(super) fn bytes(&self, source: &str, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes.with_label_values(&[source]).set(bytes);
    }

    /// A round took so long, and so many samples were missed before it or in it.
    pub(super) fn round(&self, source: &str, took: Duration, missed: u64) {
        self.rounds.with_label_values(&[source]).observe(took.as_secs_f64());
        self.missed.with_label_values(&[source]).inc_by(missed);
    }

    pub(super) fn no_room_for_containers(&self, count: u64) {
        self.left_out.with_label_values(&["container"]).inc_by(count);
    }

    pub(super) fn no_room_for_devices(&self, samples: u64) {
        self.left_out.with_label_values(&["device"]).inc_by(samples);
    }
}
