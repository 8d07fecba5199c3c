//! Series for a capture.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Reason;
use crate::metric::{Attribution, Metric};
use crate::sampler::Shared;
use crate::snapshot::{DeviceIdentity, ProcessTotal, UnitReading};

/// Shortest and longest time between two samples.
pub(crate) const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(10);

/// How long the answer to "is this process the target's" holds.
const TARGET_TTL: Duration = Duration::from_secs(1);

/// Says whether a process, by its PID on the host, belongs to what is profiled. Asked about once a
/// second for each process on a GPU, on the sampling thread.
pub type Target = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Which devices to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelection {
    /// All of the node.
    All,
    /// Those with these UUIDs.
    Uuids(Vec<String>),
    /// Those on which a process of the target was seen, from then on; of a partition, its GPU as
    /// well.
    OfTarget,
}

/// What to record.
#[derive(Clone)]
pub struct SubscriptionRequest {
    /// Time between two samples, 10 ms to 10 s.
    pub interval: Duration,
    /// Devices to sample.
    pub devices: DeviceSelection,
    /// Whose processes make the series of attribution `process`.
    pub target: Target,
    /// Points that are kept; 16 bytes each. What is beyond is dropped and counted.
    pub max_points: usize,
}

impl SubscriptionRequest {
    /// As a session asks for it: the target's devices, and room for five minutes of eight GPUs at
    /// 10 ms.
    pub fn new(interval: Duration, target: Target) -> Self {
        Self {
            interval,
            devices: DeviceSelection::OfTarget,
            target,
            max_points: 4_000_000,
        }
    }
}

impl fmt::Debug for SubscriptionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionRequest")
            .field("interval", &self.interval)
            .field("devices", &self.devices)
            .field("max_points", &self.max_points)
            .finish_non_exhaustive()
    }
}

/// Why nothing is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The interval is out of bounds.
    #[error("an interval of {0:?} is not between 10 ms and 10 s")]
    Interval(Duration),
    /// As many captures as allowed are being recorded.
    #[error("{0} captures are being recorded already")]
    TooMany(usize),
}

/// One metric of one device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The GPU or partition.
    pub device: DeviceIdentity,
    /// What was measured; its unit is [`Metric::unit`].
    pub metric: Metric,
    /// What the values are of; `process` is the sum over the target's processes.
    pub attribution: Attribution,
    /// Time in nanoseconds since 1970 (CLOCK_REALTIME) and value, in the order of time.
    pub points: Vec<(u64, f64)>,
}

/// What was recorded, and what was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The series, by device, metric and attribution. A metric that gave no value has none.
    pub series: Vec<Series>,
    /// Metrics that a recorded device does not support.
    pub unsupported: Vec<(DeviceIdentity, Metric)>,
    /// Points beyond the limit.
    pub dropped: u64,
    /// Samples that were not taken because the one before took too long.
    pub missed: u64,
    /// Failures while it recorded, by reason.
    pub errors: BTreeMap<Reason, u64>,
}

/// A recording under way; ends with [`stop`](Self::stop), or is thrown away when dropped.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) id: u64,
    pub(crate) shared: Arc<Shared>,
    pub(crate) recorder: Arc<Mutex<Recorder>>,
}

impl Subscription {
    /// Ends it and returns what was recorded.
    pub fn stop(self) -> Recording {
        self.shared.unsubscribe(self.id);
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.finish()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.unsubscribe(self.id);
    }
}

/// Takes readings in.
pub(crate) struct Recorder {
    devices: DeviceSelection,
    target: Target,
    max_points: usize,
    points: usize,
    series: BTreeMap<(DeviceIdentity, Attribution, Metric), Vec<(u64, f64)>>,
    unsupported: BTreeSet<(DeviceIdentity, Metric)>,
    matched: BTreeSet<String>,
    known: HashMap<u32, (Instant, bool)>,
    dropped: u64,
    missed: u64,
    errors: BTreeMap<Reason, u64>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("points", &self.points)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    pub(crate) fn new(request: SubscriptionRequest) -> Self {
        Self {
            devices: request.devices,
            target: request.target,
            max_points: request.max_points,
            points: 0,
            series: BTreeMap::new(),
            unsupported: BTreeSet::new(),
            matched: BTreeSet::new(),
            known: HashMap::new(),
            dropped: 0,
            missed: 0,
            errors: BTreeMap::new(),
        }
    }

    /// Takes one round of readings in; `unsupported` says what a device lacks. Returns how many
    /// points were dropped.
    pub(crate) fn take(&mut self, readings: &[UnitReading], unsupported: &dyn Fn(&str) -> Vec<Metric>) -> u64 {
        let before = self.dropped;
        let now = Instant::now();
        self.known
            .retain(|_, (asked, _)| now.duration_since(*asked) < TARGET_TTL);
        let mut own = Vec::with_capacity(readings.len());
        for reading in readings {
            let mut total = ProcessTotal::default();
            let mut any = false;
            for process in &reading.processes {
                let target = &self.target;
                let (_, is_target) = *self
                    .known
                    .entry(process.pid)
                    .or_insert_with(|| (now, target(process.pid)));
                if !is_target {
                    continue;
                }
                any = true;
                total.add(process);
            }
            if any {
                self.matched.insert(reading.device.uuid.clone());
                self.matched.extend(reading.parent.clone());
            }
            own.push(total);
        }
        for (reading, total) in readings.iter().zip(own) {
            if !self.wants(&reading.device.uuid) {
                continue;
            }
            for (metric, value) in &reading.values {
                self.push(reading, reading.attribution, *metric, (reading.unix_ns, *value));
            }
            for timed in &reading.timed {
                for (metric, value) in &timed.values {
                    self.push(reading, reading.attribution, *metric, (timed.unix_ns, *value));
                }
            }
            if let Some(memory) = total.memory_used {
                self.push(
                    reading,
                    Attribution::Process,
                    Metric::ProcessMemoryUsed,
                    (reading.unix_ns, memory),
                );
            }
            if let Some(point) = total.sm_utilization {
                self.push(reading, Attribution::Process, Metric::ProcessSmUtilization, point);
            }
            let timed = reading.timed.iter().flat_map(|timed| &timed.unsupported).copied();
            for metric in unsupported(&reading.device.uuid).into_iter().chain(timed) {
                if !self.unsupported.contains(&(reading.device.clone(), metric)) {
                    self.unsupported.insert((reading.device.clone(), metric));
                }
            }
        }
        self.dropped - before
    }

    pub(crate) fn fail(&mut self, reason: Reason) {
        *self.errors.entry(reason).or_default() += 1;
    }

    pub(crate) fn miss(&mut self, samples: u64) {
        self.missed = self.missed.saturating_add(samples);
    }

    fn wants(&self, uuid: &str) -> bool {
        match &self.devices {
            DeviceSelection::All => true,
            DeviceSelection::Uuids(uuids) => uuids.iter().any(|wanted| wanted == uuid),
            DeviceSelection::OfTarget => self.matched.contains(uuid),
        }
    }

    /// Values that the driver has not measured anew since the last point are not repeated.
    fn push(&mut self, reading: &UnitReading, attribution: Attribution, metric: Metric, point: (u64, f64)) {
        let points = self
            .series
            .entry((reading.device.clone(), attribution, metric))
            .or_default();
        if points.last().is_some_and(|(at, _)| *at >= point.0) {
            return;
        }
        if self.points >= self.max_points {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        points.push(point);
        self.points += 1;
    }

    fn finish(&mut self) -> Recording {
        let series = std::mem::take(&mut self.series);
        Recording {
            series: series
                .into_iter()
                .filter(|(_, points)| !points.is_empty())
                .map(|((device, attribution, metric), points)| Series {
                    device,
                    metric,
                    attribution,
                    points,
                })
                .collect(),
            unsupported: std::mem::take(&mut self.unsupported).into_iter().collect(),
            dropped: self.dropped,
            missed: self.missed,
            errors: std::mem::take(&mut self.errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::ProcessReading;

    fn reading(uuid: &str, parent: Option<&str>, unix_ns: u64, pids: &[u32]) -> UnitReading {
        UnitReading {
            device: DeviceIdentity {
                index: 0,
                uuid: uuid.into(),
                model: "G".into(),
            },
            attribution: if parent.is_some() {
                Attribution::Partition
            } else {
                Attribution::Device
            },
            parent: parent.map(str::to_owned),
            unix_ns,
            values: BTreeMap::from([(Metric::Power, 1.0)]),
            timed: Vec::new(),
            processes: pids
                .iter()
                .map(|pid| ProcessReading {
                    pid: *pid,
                    memory_used: Some(1.0),
                    sm_utilization: Some((7, 0.25)),
                })
                .collect(),
        }
    }

    fn recorder(max_points: usize) -> Recorder {
        let target: Target = Arc::new(|pid| pid < 10);
        Recorder::new(SubscriptionRequest {
            max_points,
            ..SubscriptionRequest::new(Duration::from_millis(10), target)
        })
    }

    #[test]
    fn only_the_targets_devices_are_recorded() {
        let mut recorder = recorder(100);
        recorder.take(
            &[
                reading("GPU-a", None, 1, &[]),
                reading("MIG-a", Some("GPU-a"), 1, &[1, 2, 99]),
                reading("GPU-b", None, 1, &[99]),
            ],
            &|_| vec![Metric::Temperature],
        );
        let recording = recorder.finish();
        let found: Vec<_> = recording
            .series
            .iter()
            .map(|series| {
                (
                    series.device.uuid.as_str(),
                    series.attribution,
                    series.metric,
                    series.points[0].1,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("GPU-a", Attribution::Device, Metric::Power, 1.0),
                ("MIG-a", Attribution::Process, Metric::ProcessMemoryUsed, 2.0),
                ("MIG-a", Attribution::Process, Metric::ProcessSmUtilization, 0.5),
                ("MIG-a", Attribution::Partition, Metric::Power, 1.0),
            ]
        );
        assert_eq!(recording.unsupported.len(), 2);
    }

    #[test]
    fn a_driver_sample_is_one_point_however_often_it_is_read() {
        let mut recorder = recorder(100);
        for at in 1..=5 {
            recorder.take(&[reading("GPU-a", None, at, &[1])], &|_| Vec::new());
        }
        let recording = recorder.finish();
        let points = |metric| {
            recording
                .series
                .iter()
                .find(|s| s.metric == metric)
                .unwrap()
                .points
                .len()
        };
        assert_eq!(points(Metric::Power), 5);
        assert_eq!(points(Metric::ProcessSmUtilization), 1);
    }

    #[test]
    fn points_beyond_the_limit_are_counted() {
        let mut recorder = recorder(3);
        for at in 1..=5 {
            recorder.take(&[reading("GPU-a", None, at, &[])], &|_| Vec::new());
        }
        // Nothing of the target was seen: nothing recorded, nothing dropped.
        assert_eq!(recorder.finish(), Recording::default());
        for at in 6..=7 {
            recorder.take(&[reading("GPU-a", None, at, &[1])], &|_| Vec::new());
        }
        let recording = recorder.finish();
        assert_eq!(recording.dropped, 2);
        assert_eq!(
            recording.series.iter().map(|series| series.points.len()).sum::<usize>(),
            3
        );
    }
}
