//! The metrics of the store and of the service.

use flopwatch_analysis::catalogue;
use flopwatch_api::artifact::TIMELINE;

use crate::derivation::Derivation;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// The result of a request for a derived artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// The artifact was made.
    Made,
    /// The artifact had been made before.
    Kept,
    /// The artifact could not be made.
    Failed,
    /// Too many conversions were waiting.
    Refused,
}

impl Conversion {
    const ALL: [Self; 4] = [Self::Made, Self::Kept, Self::Failed, Self::Refused];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Kept => "kept",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// Counters of the artifact store and of the service in front of it.
///
/// | series | labels |
/// |---|---|
/// | `flopwatch_artifact_requests_total` | `code`: `1xx` to `5xx` |
/// | `flopwatch_artifact_sent_bytes_total` | |
/// | `flopwatch_artifact_corrupt_objects_total` | |
/// | `flopwatch_artifact_refused_connections_total` | |
/// | `flopwatch_artifact_access_reviews_total` | `review`: `token`, `access`; `result`: `allowed`, `denied`, `error` |
/// | `flopwatch_artifact_inputs_total` | `result`: `taken`, `refused` |
/// | `flopwatch_artifact_received_bytes_total` | |
/// | `flopwatch_artifact_conversions_total` | `form`: the file name of a result; `result`: `made`, `kept`, `failed`, `refused` |
/// | `flopwatch_artifact_sweep_failures_total` | |
/// | `flopwatch_artifact_store_bytes`, `flopwatch_artifact_store_objects` | |
#[derive(Clone, Debug)]
pub struct ArtifactMetrics {
    pub(crate) requests: IntCounterVec,
    pub(crate) sent_bytes: IntCounter,
    pub(crate) corrupt: IntCounter,
    pub(crate) refused_connections: IntCounter,
    pub(crate) reviews: IntCounterVec,
    conversions: IntCounterVec,
    pub(crate) inputs: IntCounterVec,
    pub(crate) received_bytes: IntCounter,
    pub(crate) sweep_failures: IntCounter,
    pub(crate) store_bytes: IntGauge,
    pub(crate) store_objects: IntGauge,
}

impl ArtifactMetrics {
    /// Counts a request for a derived artifact by its result.
    pub(crate) fn converted(&self, derivation: &Derivation, result: Conversion) {
        self.conversion(&derivation.form(), result).inc();
    }

    fn conversion(&self, form: &str, result: Conversion) -> IntCounter {
        self.conversions.with_label_values(&[form, result.as_str()])
    }

    /// Where a [`Reviewer`](flopwatch_http::Reviewer) of this service counts.
    pub fn reviews(&self) -> IntCounterVec {
        self.reviews.clone()
    }

    /// Makes the counters and registers them. Fails when `registry` has series of these names
    /// already.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let metrics = Self {
            requests: IntCounterVec::new(
                Opts::new(
                    "flopwatch_artifact_requests_total",
                    "Requests to the artifact service by class of status code",
                ),
                &["code"],
            )?,
            sent_bytes: IntCounter::new(
                "flopwatch_artifact_sent_bytes_total",
                "Bytes of artifacts sent to clients",
            )?,
            corrupt: IntCounter::new(
                "flopwatch_artifact_corrupt_objects_total",
                "Objects that were missing or whose content did not match their SHA-256 when they were to be read",
            )?,
            refused_connections: IntCounter::new(
                "flopwatch_artifact_refused_connections_total",
                "Connections closed at once because as many as allowed were open",
            )?,
            reviews: IntCounterVec::new(
                Opts::new(
                    "flopwatch_artifact_access_reviews_total",
                    "Questions put to the Kubernetes API about who may read",
                ),
                &["review", "result"],
            )?,
            conversions: IntCounterVec::new(
                Opts::new(
                    "flopwatch_artifact_conversions_total",
                    "Results of analyses, and timelines of raw captures, that were asked for, by what came of it",
                ),
                &["form", "result"],
            )?,
            inputs: IntCounterVec::new(
                Opts::new(
                    "flopwatch_artifact_inputs_total",
                    "Timelines of other nodes' captures that were handed over, by what came of it",
                ),
                &["result"],
            )?,
            received_bytes: IntCounter::new(
                "flopwatch_artifact_received_bytes_total",
                "Bytes of timelines of other nodes' captures that were handed over",
            )?,
            sweep_failures: IntCounter::new(
                "flopwatch_artifact_sweep_failures_total",
                "Files that belong to no capture and that a sweep of the artifact store could not remove; the next tries again",
            )?,
            store_bytes: IntGauge::new(
                "flopwatch_artifact_store_bytes",
                "Bytes of the objects in the artifact store",
            )?,
            store_objects: IntGauge::new("flopwatch_artifact_store_objects", "Objects in the artifact store")?,
        };
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.sent_bytes.clone()))?;
        registry.register(Box::new(metrics.corrupt.clone()))?;
        registry.register(Box::new(metrics.refused_connections.clone()))?;
        registry.register(Box::new(metrics.reviews.clone()))?;
        let analyses = catalogue::CATALOGUE.iter().map(|definition| definition.file_name());
        for form in analyses.chain([TIMELINE.to_owned()]) {
            for result in Conversion::ALL {
                metrics.conversion(&form, result).reset();
            }
        }
        registry.register(Box::new(metrics.conversions.clone()))?;
        for result in ["taken", "refused"] {
            metrics.inputs.with_label_values(&[result]).reset();
        }
        registry.register(Box::new(metrics.inputs.clone()))?;
        registry.register(Box::new(metrics.received_bytes.clone()))?;
        registry.register(Box::new(metrics.sweep_failures.clone()))?;
        registry.register(Box::new(metrics.store_bytes.clone()))?;
        registry.register(Box::new(metrics.store_objects.clone()))?;
        Ok(metrics)
    }
}
