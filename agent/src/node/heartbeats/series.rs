//! Series of the ranges that took the longest, for Prometheus.

use std::collections::BTreeMap;

use flopwatch_trace::recorder::NamedRanges;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{CounterVec, IntCounterVec, IntGaugeVec, Opts};

use super::{Heartbeats, lock};

/// Labels of a range's series.
const RANGE: [&str; 4] = ["namespace", "pod", "container", "range"];

/// The series of each container's longest ranges, made anew of the last reading for each scrape.
///
/// | series | labels |
/// |---|---|
/// | `flopwatch_range_calls_total`, `flopwatch_range_seconds_total` | `namespace`, `pod`, `container`, `range` |
/// | `flopwatch_range_names_left_out` | `namespace`, `pod`, `container` |
pub(super) struct RangeCollector {
    heartbeats: Heartbeats,
    /// Names of a container that have series.
    names: usize,
    descs: Vec<Desc>,
}

impl std::fmt::Debug for RangeCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RangeCollector")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl RangeCollector {
    /// Of the `names` longest ranges of each container.
    pub(super) fn new(heartbeats: Heartbeats, names: usize) -> prometheus::Result<Self> {
        let series = Series::new()?;
        let descs = series.all().into_iter().flat_map(Collector::desc).cloned().collect();
        Ok(Self {
            heartbeats,
            names,
            descs,
        })
    }
}

struct Series {
    calls: IntCounterVec,
    seconds: CounterVec,
    left_out: IntGaugeVec,
}

impl Series {
    fn new() -> prometheus::Result<Self> {
        Ok(Self {
            calls: IntCounterVec::new(
                Opts::new(
                    "flopwatch_range_calls_total",
                    "NVTX push/pop ranges of that name that ended, as the flight recorder counts them.",
                ),
                &RANGE,
            )?,
            seconds: CounterVec::new(
                Opts::new(
                    "flopwatch_range_seconds_total",
                    "Time that NVTX push/pop ranges of that name took together.",
                ),
                &RANGE,
            )?,
            left_out: IntGaugeVec::new(
                Opts::new(
                    "flopwatch_range_names_left_out",
                    "Names of ranges beyond those that have series.",
                ),
                &["namespace", "pod", "container"],
            )?,
        })
    }

    fn all(&self) -> [&dyn Collector; 3] {
        [&self.calls, &self.seconds, &self.left_out]
    }
}

impl Collector for RangeCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // The names were accepted when the collector was made.
        let Ok(series) = Series::new() else { return Vec::new() };
        let beats = self.heartbeats.all();
        let mut left_out: BTreeMap<[&str; 3], i64> = BTreeMap::new();
        for beat in &beats {
            let whose = [beat.whose.namespace.as_str(), &beat.whose.pod, &beat.whose.container];
            let [namespace, pod, container] = whose;
            let (longest, names) = lock(&beat.rates).longest(self.names);
            for NamedRanges {
                name, calls, total_ns, ..
            } in &longest
            {
                let labels = [namespace, pod, container, name];
                series.calls.with_label_values(&labels).inc_by(*calls);
                let seconds = std::time::Duration::from_nanos(*total_ns).as_secs_f64();
                series.seconds.with_label_values(&labels).inc_by(seconds);
            }
            let without = names.saturating_sub(self.names);
            *left_out.entry(whose).or_default() += i64::try_from(without).unwrap_or(i64::MAX);
        }
        for (labels, names) in left_out {
            series.left_out.with_label_values(&labels).set(names);
        }
        series.all().into_iter().flat_map(Collector::collect).collect()
    }
}
