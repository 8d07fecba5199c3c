//! What the operator counts. Every label comes from a closed set.

use prometheus::{
    Encoder as _, Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};

use crate::schedule::series::ScheduleSeries;

/// The registry and the series in it; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    /// Passes over an object, by controller (`schedule`, `session`, `capture`, `certificates`,
    /// `agent-certificates`) and outcome (`completed`, `conflict`, `failed`, `timed_out`).
    pub reconciliations: IntCounterVec,
    /// Seconds of one pass, by controller.
    pub reconciliation_duration: HistogramVec,
    /// Events of the watches, by kind and event (`applied`, `deleted`, `relisted`, `invalid`,
    /// `error`).
    pub watch_events: IntCounterVec,
    /// Sessions now, by state.
    pub sessions: IntGaugeVec,
    /// Captures now, by state.
    pub captures: IntGaugeVec,
    /// Captures that were created.
    pub captures_created: IntCounter,
    /// Captures given up because their node or its agent was gone.
    pub captures_lost: IntCounter,
    /// Finalizers taken off captures.
    pub finalizers_removed: IntCounter,
    /// Finalizers taken off captures though their agent, which was there, had not removed what it
    /// kept of them.
    pub deletions_overdue: IntCounter,
    /// Sessions deleted at the end of their retention.
    pub sessions_expired: IntCounter,
    /// Events that could not be published.
    pub events_failed: IntCounter,
    /// 1 while this process leads.
    pub leader: IntGauge,
    /// 1 while new captures are suspended.
    pub suspended: IntGauge,
    /// End of validity in seconds since 1970, by certificate (`authority`, `admission`,
    /// `controller`, `gateway`).
    pub certificate_expiry: GaugeVec,
    /// Admission requests, by path (`mutate_pods`, `mutate_sessions`) and outcome.
    pub admission_requests: IntCounterVec,
    /// Seconds of one admission request, by path.
    pub admission_duration: HistogramVec,
    /// Containers that were asked to be prepared and were not, by reason.
    pub unprepared: IntCounterVec,
    /// Prepared pods that the preparation keeps from starting now, by reason.
    pub unprepared_pods: IntGaugeVec,
    /// Pods now that asked to be prepared and are not, or not in every container, by reason.
    pub pods_created_unprepared: IntGaugeVec,
    /// Look-ups of images' entrypoints, by outcome (`found`, `cached`, `failed`, `timed_out`).
    pub entrypoint_lookups: IntCounterVec,
    /// Requests to the gateway, by path as the document has it and class of the answer.
    pub gateway_requests: IntCounterVec,
    /// Reviews that the gateway asked for, by review (`token`, `access`) and result (`allowed`,
    /// `denied`, `error`).
    pub gateway_access_reviews: IntCounterVec,
    /// Notices of sessions that the gateway made: one for each change, whoever listens.
    pub gateway_notices: IntCounter,
    /// What became of alerts, by result: one for each alert and schedule.
    pub alerts: IntCounterVec,
    /// Reviews of those who read metrics, likewise.
    pub metrics_access_reviews: IntCounterVec,
    /// What schedules do.
    pub schedules: ScheduleSeries,
    /// What has to do with the object store.
    pub store: StoreSeries,
    /// End of validity, in seconds since 1970, of the certificate that admission or the gateway
    /// serves; 0 without one.
    pub serving_certificate_expiry: Gauge,
    /// `flopwatch_refused_connections_total`.
    pub refused_connections: IntCounter,
}

impl Metrics {
    /// Makes and registers every series. Fails only if two of them had one name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
            register(&registry, IntCounterVec::new(Opts::new(name, help), labels)?)
        };
        let counter = |name: &str, help: &str| -> Result<IntCounter, prometheus::Error> {
            register(&registry, IntCounter::new(name, help)?)
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| -> Result<IntGaugeVec, prometheus::Error> {
            register(&registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
        };
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            register(&registry, IntGauge::new(name, help)?)
        };
        let histograms = |name: &str, help: &str, labels: &[&str]| durations(&registry, name, help, labels);
        let (certificate_expiry, serving_certificate_expiry) = expiries(&registry)?;
        Ok(Self {
            reconciliations: counters(
                "flopwatch_reconciliations_total",
                "Passes over an object, by controller and outcome.",
                &["controller", "outcome"],
            )?,
            reconciliation_duration: histograms(
                "flopwatch_reconciliation_duration_seconds",
                "Time of one pass over an object.",
                &["controller"],
            )?,
            watch_events: counters(
                "flopwatch_watch_events_total",
                "Events of the watches.",
                &["kind", "event"],
            )?,
            sessions: gauges("flopwatch_sessions", "Profiling sessions, by state.", &["state"])?,
            captures: gauges("flopwatch_captures", "Captures, by state.", &["state"])?,
            captures_created: counter("flopwatch_captures_created_total", "Captures made for sessions.")?,
            captures_lost: counter(
                "flopwatch_captures_lost_total",
                "Captures given up because their node or its agent was gone.",
            )?,
            finalizers_removed: counter(
                "flopwatch_capture_finalizers_removed_total",
                "Finalizers taken off deleted captures.",
            )?,
            deletions_overdue: deletions_overdue(&registry)?,
            sessions_expired: counter(
                "flopwatch_sessions_expired_total",
                "Sessions deleted at the end of their retention.",
            )?,
            events_failed: counter("flopwatch_events_failed_total", "Events that could not be published.")?,
            leader: gauge("flopwatch_leader", "1 while this process leads.")?,
            suspended: gauge("flopwatch_captures_suspended", "1 while new captures are suspended.")?,
            certificate_expiry,
            gateway_requests: counters(
                "flopwatch_gateway_requests_total",
                "Requests to the gateway, by path and class of the answer.",
                &["path", "class"],
            )?,
            gateway_access_reviews: counters(
                "flopwatch_gateway_access_reviews_total",
                "Reviews that the gateway asked the API server for.",
                &["review", "result"],
            )?,
            gateway_notices: gateway_notices(&registry)?,
            alerts: alerts(&registry)?,
            metrics_access_reviews: metrics_access_reviews(&registry)?,
            schedules: ScheduleSeries::register(&registry)?,
            store: StoreSeries::register(&registry)?,
            admission_requests: counters(
                "flopwatch_admission_requests_total",
                "Admission requests, by path and outcome.",
                &["path", "outcome"],
            )?,
            admission_duration: histograms(
                "flopwatch_admission_duration_seconds",
                "Time of one admission request.",
                &["path"],
            )?,
            unprepared: counters(
                "flopwatch_unprepared_containers_total",
                "Containers that were asked to be prepared and were not.",
                &["reason"],
            )?,
            unprepared_pods: gauges(
                "flopwatch_unprepared_pods",
                "Prepared pods that the preparation keeps from starting, by reason.",
                &["reason"],
            )?,
            pods_created_unprepared: gauges(
                "flopwatch_pods_created_unprepared",
                "Pods that asked to be prepared and are not, or not in every container, by reason.",
                &["reason"],
            )?,
            entrypoint_lookups: counters(
                "flopwatch_entrypoint_lookups_total",
                "Look-ups of images' entrypoints.",
                &["outcome"],
            )?,
            serving_certificate_expiry,
            refused_connections: refused_connections(&registry)?,
            registry,
        })
    }

    /// Adds series that are computed when they are read. Fails if there is one of their names.
    pub fn collect(&self, series: impl Collector + 'static) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(series))
    }

    /// The series in Prometheus' text format.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn deletions_overdue(registry: &Registry) -> Result<IntCounter, prometheus::Error> {
    let overdue = IntCounter::new(
        "flopwatch_capture_deletions_overdue_total",
        "Deleted captures released though their agent had not removed in time what it kept of them.",
    )?;
    register(registry, overdue)
}

/// What has to do with the object store.
#[derive(Clone, Debug)]
pub struct StoreSeries {
    /// Artifacts that the gateway read, by result (`served`, `corrupt`, `failed`).
    pub reads: IntCounterVec,
    /// Captures that were gone and whose copies were removed.
    pub swept: IntCounter,
    /// Sweeps that failed.
    pub sweeps_failed: IntCounter,
}

impl StoreSeries {
    fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let reads = Opts::new(
            "flopwatch_gateway_store_reads_total",
            "Artifacts that the gateway read from the object store, by result.",
        );
        let swept = IntCounter::new(
            "flopwatch_store_swept_captures_total",
            "Captures that were gone and whose copies were removed from the object store.",
        )?;
        let failed = IntCounter::new(
            "flopwatch_store_sweeps_failed_total",
            "Sweeps of the object store that failed.",
        )?;
        Ok(Self {
            reads: register(registry, IntCounterVec::new(reads, &["result"])?)?,
            swept: register(registry, swept)?,
            sweeps_failed: register(registry, failed)?,
        })
    }
}

/// When certificates end: those that the controller makes, and the one that admission serves.
fn expiries(registry: &Registry) -> Result<(GaugeVec, Gauge), prometheus::Error> {
    let made = Opts::new(
        "flopwatch_certificate_expiry_timestamp_seconds",
        "End of a certificate's validity.",
    );
    let served = Gauge::new(
        "flopwatch_admission_certificate_expiry_timestamp_seconds",
        "End of validity of the certificate that admission serves; 0 without one.",
    )?;
    let made = GaugeVec::new(made, &["certificate"])?;
    Ok((register(registry, made)?, register(registry, served)?))
}

/// Times of up to half a minute, in seconds.
fn durations(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
    let buckets = vec![0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
    let options = HistogramOpts::new(name, help).buckets(buckets);
    register(registry, HistogramVec::new(options, labels)?)
}

/// What those who listen to sessions cost.
fn gateway_notices(registry: &Registry) -> Result<IntCounter, prometheus::Error> {
    let made = IntCounter::new(
        "flopwatch_gateway_notices_total",
        "Notices of sessions that were made for those who listen.",
    )?;
    register(registry, made)
}

/// What became of alerts.
fn alerts(registry: &Registry) -> Result<IntCounterVec, prometheus::Error> {
    let results = Opts::new(
        "flopwatch_alerts_total",
        "What became of alerts, by result: one for each alert and schedule with a trigger for it.",
    );
    register(registry, IntCounterVec::new(results, &["result"])?)
}

/// What those who read metrics cost.
fn metrics_access_reviews(registry: &Registry) -> Result<IntCounterVec, prometheus::Error> {
    let asked = Opts::new(
        "flopwatch_metrics_access_reviews_total",
        "Questions put to the Kubernetes API about who may read metrics.",
    );
    register(registry, IntCounterVec::new(asked, &["review", "result"])?)
}

/// What serving over TLS refuses.
fn refused_connections(registry: &Registry) -> Result<IntCounter, prometheus::Error> {
    let refused = IntCounter::new(
        "flopwatch_refused_connections_total",
        "Connections closed at once because as many as allowed were open.",
    )?;
    register(registry, refused)
}

/// Registers a series and hands it back. Fails if there is one of that name.
pub(crate) fn register<C: Collector + Clone + 'static>(registry: &Registry, series: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(series.clone()))?;
    Ok(series)
}
