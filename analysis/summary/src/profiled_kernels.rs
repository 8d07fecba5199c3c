//! Launches that a kernel profiler replayed. Their durations are those of the replays, alone on the
//! GPU and often at a fixed clock: a table of its own, not to be added to the kernels of a
//! timeline.

use std::collections::BTreeMap;

use flopwatch_model::{KernelProfile, Metric, Timeline, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::statistics::Statistics;
use super::table::{Measure, Table};

/// Nsight Compute's duration of a launch.
const DURATION: &str = "gpu__time_duration.sum";

/// Nanoseconds in the units in which Nsight Compute prints times.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("nsecond", 1.0),
    ("us", 1e3),
    ("usecond", 1e3),
    ("ms", 1e6),
    ("msecond", 1e6),
    ("s", 1e9),
    ("second", 1e9),
];

/// Launches of a kernel profiler, which are no events: it replays them one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfiledCount {
    /// Launches, and ranges of launches that were replayed together.
    pub launches: u64,
    /// Metrics of all of them.
    pub metrics: u64,
}

impl ProfiledCount {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let profiles = &timeline.capture.profiles;
        Self {
            launches: count(profiles.len()),
            metrics: count(profiles.iter().map(|profile| profile.metrics.len()).sum()),
        }
    }
}

pub(super) fn table(timeline: &Timeline) -> Table {
    let mut groups: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for profile in &timeline.capture.profiles {
        if let Some(duration) = duration_ns(profile) {
            groups.entry(&profile.name).or_default().push(duration);
        }
    }
    let captured = !groups.is_empty();
    let rows = groups
        .into_iter()
        .filter_map(|(name, values)| Some(((None, name), Statistics::of(values)?)));
    Table::new(captured, Measure::Duration, rows)
}

/// How long a replayed launch took in ns; `None` where the profiler did not measure it.
pub fn duration_ns(profile: &KernelProfile) -> Option<u64> {
    profile.metrics.get(DURATION).and_then(nanoseconds)
}

/// Rounded to whole nanoseconds; `None` for a unit that is not known and for no length of time.
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom for it; the value was checked to lie within the type"
)]
fn nanoseconds(metric: &Metric) -> Option<u64> {
    let (_, scale) = UNITS.into_iter().find(|(unit, _)| *unit == metric.unit)?;
    let ns = (metric.value.number()? * scale).round();
    (0.0..1e18).contains(&ns).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_come_in_the_units_that_the_profiler_prints() {
        let metric = |value: f64, unit: &str| Metric {
            value: value.into(),
            unit: unit.to_owned(),
        };
        let cases = [
            (metric(1344.0, "ns"), Some(1344)),
            (metric(1.34, "us"), Some(1340)),
            (metric(2.5, "msecond"), Some(2_500_000)),
            (metric(2.5, "%"), None),
            (metric(-1.0, "ns"), None),
            (metric(f64::NAN, "ns"), None),
        ];
        for (metric, expected) in cases {
            assert_eq!(nanoseconds(&metric), expected, "{metric:?}");
        }
    }
}
