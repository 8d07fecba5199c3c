//! The results of captures as metrics series, computed from the captures' status when the metrics
//! are scraped: a capture's series stay as long as the capture does, whatever process or node is
//! gone meanwhile.

use std::cmp::Reverse;
use std::sync::Arc;

use flopwatch_api::SESSION_LABEL;
use flopwatch_api::capture::{Capture, CaptureSummary};
use kube::ResourceExt as _;
use kube::runtime::reflector::Store;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, IntGauge, Opts};

/// Most captures that have series: the newest ones.
const MAX_CAPTURES: usize = 200;
/// Labels of every series, which identify its capture.
const CAPTURE_LABELS: [&str; 6] = ["namespace", "session", "id", "capture", "pod", "container"];
/// Value of the label `kernel` for all kernels together that have no series of their own.
const OTHER: &str = "other";
/// Nanoseconds in a second.
const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// The series of one scrape.
struct Series {
    window: GaugeVec,
    busy: GaugeVec,
    kernels: GaugeVec,
    copies: GaugeVec,
    dropped: GaugeVec,
    left_out: IntGauge,
}

impl Series {
    fn new() -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, more: &[&str]| {
            let labels: Vec<&str> = CAPTURE_LABELS.iter().chain(more).copied().collect();
            GaugeVec::new(Opts::new(name, help), &labels)
        };
        Ok(Self {
            window: gauge("flopwatch_capture_window_seconds", "Length of a capture's window.", &[])?,
            busy: gauge(
                "flopwatch_capture_gpu_busy_ratio",
                "Share of a capture's window in which a kernel or copy ran, averaged over its devices.",
                &[],
            )?,
            kernels: gauge(
                "flopwatch_capture_kernel_seconds",
                "Total time of a capture's longest kernels, and of all others together.",
                &["kernel"],
            )?,
            copies: gauge(
                "flopwatch_capture_copy_bytes",
                "Bytes that were copied within a capture's window, by kind of copy.",
                &["kind"],
            )?,
            dropped: gauge(
                "flopwatch_capture_dropped_events",
                "Events that are not in a capture's artifacts.",
                &[],
            )?,
            left_out: IntGauge::new(
                "flopwatch_capture_results_left_out",
                "Captures with results that have no series because newer ones have.",
            )?,
        })
    }

    fn parts(&self) -> [&dyn Collector; 6] {
        [
            &self.window,
            &self.busy,
            &self.kernels,
            &self.copies,
            &self.dropped,
            &self.left_out,
        ]
    }

    fn add(&self, capture: &Capture, summary: &CaptureSummary) {
        let (namespace, name) = (capture.namespace().unwrap_or_default(), capture.name_any());
        let session = capture.labels().get(SESSION_LABEL).map_or("", String::as_str);
        let (pod, container) = (&capture.spec.pod_ref.name, &capture.spec.container_name);
        let id = capture.spec.session_ref.id.as_str();
        let which: [&str; 6] = [&namespace, session, id, &name, pod, container];
        let with = |more: &'static str| -> Vec<&str> { which.iter().copied().chain([more]).collect() };
        self.window
            .with_label_values(&which)
            .set(number(summary.window_nanoseconds) / NANOSECONDS_PER_SECOND);
        self.dropped.with_label_values(&which).set(number(summary.dropped));
        if let Some(percent) = summary.gpu_busy_percent {
            self.busy.with_label_values(&which).set(f64::from(percent) / 100.0);
        }
        let mut named: i64 = 0;
        for kernel in &summary.top_kernels {
            named = named.saturating_add(kernel.total_nanoseconds);
            let labels: Vec<&str> = which.iter().copied().chain([kernel.name.as_str()]).collect();
            // Names are shortened: two may have become one.
            let series = self.kernels.with_label_values(&labels);
            series.add(number(kernel.total_nanoseconds) / NANOSECONDS_PER_SECOND);
        }
        if let Some(all) = summary.kernel_nanoseconds {
            let rest = number(all.saturating_sub(named).max(0));
            self.kernels
                .with_label_values(&with(OTHER))
                .add(rest / NANOSECONDS_PER_SECOND);
        }
        for copied in &summary.copies {
            let series = self.copies.with_label_values(&with(copied.kind.label()));
            series.set(number(copied.bytes));
        }
    }
}

/// Collects the series from the captures in the watch's store, in the process that leads.
pub(super) struct Results {
    captures: Store<Capture>,
    leads: IntGauge,
    described: Series,
}

impl Results {
    /// A collector over `captures`; `leads` is 1 while this process leads.
    pub(super) fn new(captures: Store<Capture>, leads: IntGauge) -> Result<Self, prometheus::Error> {
        Ok(Self {
            captures,
            leads,
            described: Series::new()?,
        })
    }
}

impl Collector for Results {
    fn desc(&self) -> Vec<&Desc> {
        self.described.parts().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // A process that does not lead has the same captures: its series would be duplicates.
        if self.leads.get() == 0 {
            return Vec::new();
        }
        match series_of(self.captures.state()) {
            Ok(series) => series.parts().into_iter().flat_map(Collector::collect).collect(),
            Err(error) => {
                tracing::warn!(%error, "results of captures cannot be told as series");
                Vec::new()
            }
        }
    }
}

/// The series of the newest captures that have results.
fn series_of(mut captures: Vec<Arc<Capture>>) -> Result<Series, prometheus::Error> {
    let series = Series::new()?;
    captures.retain(|capture| summary_of(capture).is_some());
    captures.sort_by_cached_key(|capture| Reverse((capture.creation_timestamp().map(|time| time.0), capture.uid())));
    let left_out = captures.len().saturating_sub(MAX_CAPTURES);
    series.left_out.set(i64::try_from(left_out).unwrap_or(i64::MAX));
    for capture in captures.iter().take(MAX_CAPTURES) {
        if let Some(summary) = summary_of(capture) {
            series.add(capture, summary);
        }
    }
    Ok(series)
}

fn summary_of(capture: &Capture) -> Option<&CaptureSummary> {
    capture.status.as_ref()?.summary.as_ref()
}

/// `value` as a floating-point number, rounded above 2^53.
fn number(value: i64) -> f64 {
    let high = i32::try_from(value >> 32).unwrap_or(i32::MAX);
    let low = u32::try_from(value & i64::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(high).mul_add(4_294_967_296.0, f64::from(low))
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector;
    use kube::runtime::watcher::Event;
    use prometheus::{Registry, TextEncoder};
    use serde_json::{Value, json};

    use super::*;

    fn capture(name: &str, minute: usize, summary: Option<Value>) -> Capture {
        let capture = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {
                "namespace": "team", "name": name, "uid": name,
                "creationTimestamp": format!("2026-01-01T{:02}:{:02}:00Z", minute / 60, minute % 60),
                "labels": {"flopwatch.dev/session": "train"}
            },
            "spec": {
                "sessionRef": {"name": "train", "id": "0badcafe"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
                "containerName": "c", "profiler": {"type": "Nsys"}, "durationSeconds": 1, "startDeadlineSeconds": 1,
                "outputs": ["Timeline"]
            },
            "status": summary.map(|summary| json!({"summary": summary}))
        });
        serde_json::from_value(capture).unwrap()
    }

    fn summary() -> Value {
        json!({
            "windowNanoseconds": 2_500_000_000_i64, "events": 7, "gpuBusyPercent": 87, "dropped": 3,
            "kernelNanoseconds": 1_750_000_000_i64,
            "topKernels": [
                {"name": "gemm", "totalNanoseconds": 1_000_000_000_i64, "calls": 2},
                {"name": "axpy<\"f32\">", "totalNanoseconds": 500_000_000_i64, "calls": 9}
            ],
            "copies": [{"kind": "HostToDevice", "bytes": 6_000_000_000_i64}, {"kind": "Other", "bytes": 1}]
        })
    }

    #[test]
    fn a_captures_results_are_series_while_the_capture_is_there() {
        let (captures, mut writer) = reflector::store();
        let leads = IntGauge::new("leads", "leads").unwrap();
        let registry = Registry::new();
        let results = Results::new(captures, leads.clone()).unwrap();
        registry.register(Box::new(results)).unwrap();
        let text = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        writer.apply_watcher_event(&Event::Apply(capture("a", 0, Some(summary()))));
        writer.apply_watcher_event(&Event::Apply(capture("running", 1, None)));
        assert_eq!(text(), "", "a candidate tells nothing");
        leads.set(1);
        let which = r#"capture="a",container="c",id="0badcafe""#;
        let rest = r#"namespace="team",pod="p",session="train""#;
        let exposition = text();
        for line in [
            format!("flopwatch_capture_window_seconds{{{which},{rest}}} 2.5"),
            format!("flopwatch_capture_gpu_busy_ratio{{{which},{rest}}} 0.87"),
            format!("flopwatch_capture_dropped_events{{{which},{rest}}} 3"),
            format!("flopwatch_capture_kernel_seconds{{{which},kernel=\"gemm\",{rest}}} 1"),
            format!(r#"flopwatch_capture_kernel_seconds{{{which},kernel="axpy<\"f32\">",{rest}}} 0.5"#),
            format!("flopwatch_capture_kernel_seconds{{{which},kernel=\"other\",{rest}}} 0.25"),
            format!("flopwatch_capture_copy_bytes{{{which},kind=\"h2d\",{rest}}} 6000000000"),
            format!("flopwatch_capture_copy_bytes{{{which},kind=\"other\",{rest}}} 1"),
            "flopwatch_capture_results_left_out 0".to_owned(),
        ] {
            assert!(exposition.contains(&line), "{line} is not in\n{exposition}");
        }
        assert!(!exposition.contains("running"), "{exposition}");
        writer.apply_watcher_event(&Event::Delete(capture("a", 0, Some(summary()))));
        assert!(!text().contains("capture=\"a\""));
    }

    #[test]
    fn a_capture_without_gpu_work_says_nothing_of_it() {
        let summary = json!({"windowNanoseconds": 1, "events": 0, "dropped": 0});
        let series = series_of(vec![Arc::new(capture("a", 0, Some(summary)))]).unwrap();
        let exposition: usize = [&series.busy, &series.kernels, &series.copies]
            .into_iter()
            .flat_map(Collector::collect)
            .map(|family| family.get_metric().len())
            .sum();
        assert_eq!(exposition, 0);
        assert_eq!(series.window.collect()[0].get_metric().len(), 1);
    }

    #[test]
    fn the_newest_captures_have_series_and_the_others_are_counted() {
        let names: Vec<String> = (0..MAX_CAPTURES + 5).map(|at| format!("c{at}")).collect();
        let captures = names.iter().enumerate();
        let captures = captures.map(|(at, name)| Arc::new(capture(name, at, Some(summary()))));
        let series = series_of(captures.collect()).unwrap();
        assert_eq!(series.left_out.get(), 5);
        let text = TextEncoder::new().encode_to_string(&series.busy.collect()).unwrap();
        assert_eq!(text.matches("pod=\"p\"").count(), MAX_CAPTURES);
        assert!(text.contains("capture=\"c5\"") && !text.contains("capture=\"c4\""));
    }

    #[test]
    fn numbers_of_the_api_are_told_as_they_are() {
        for (value, expected) in [
            (0, 0.0),
            (1, 1.0),
            (4_294_967_295, 4_294_967_295.0),
            (6_000_000_000, 6e9),
            (-1, -1.0),
            (i64::MAX, 9_223_372_036_854_775_807.0),
        ] {
            assert!((number(value) - expected).abs() < 0.5, "{value}");
        }
    }
}
