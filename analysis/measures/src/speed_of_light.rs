//! What a profiled launch is bound by, as the rule that NVIDIA ships says it (`SpeedOfLight.py`),
//! and where its warps waited.

use std::collections::BTreeMap;

use flopwatch_model::{Metric, MetricValue};
use schemars::JsonSchema;
use serde::Serialize;

use super::kernel_figures::share;

/// Most of what a unit can do: from here on nothing but less work helps.
const NO_BOUND: f64 = 0.8;
/// Below this on both sides neither unit bounds.
const LATENCY_BOUND: f64 = 0.6;
/// Sides this close are balanced.
const MAX_BALANCED_DIFFERENCE: f64 = 0.1;

/// Names of the raw page and of reports, then those of the details page.
const COMPUTE: [&str; 2] = [
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "GPU Speed Of Light Throughput: Compute (SM) Throughput",
];
const MEMORY: [&str; 2] = [
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "GPU Speed Of Light Throughput: Memory Throughput",
];
const WAVES: [&str; 2] = ["launch__waves_per_multiprocessor", "Launch Statistics: Waves Per SM"];

/// What bounds a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The grid does not fill the device once.
    GridTooSmall,
    /// Neither units nor memory are busy: warps wait.
    Latency,
    /// Its units of computation are the busier ones.
    Compute,
    /// Its memory system is the busier one.
    Memory,
    /// Units and memory alike.
    Balanced,
    /// A part of the device does more than 80 % of what it can.
    Saturated,
}

impl Limiter {
    /// As people read it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::GridTooSmall => "too small a grid",
            Self::Latency => "latency",
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Balanced => "compute and memory alike",
            Self::Saturated => "a saturated unit",
        }
    }
}

/// How close a launch came to what the device can do. Shares are 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SpeedOfLight {
    /// The busiest part of the multiprocessors.
    pub compute_share: Option<f64>,
    /// The busiest part of caches and memory.
    pub memory_share: Option<f64>,
    /// How many times the grid fills the device.
    pub waves: Option<f64>,
    /// What bounds it; null where a side was not measured.
    pub limiter: Option<Limiter>,
    /// Parts of the multiprocessors, the busiest first.
    pub compute_parts: Vec<UnitShare>,
    /// Parts of caches and memory, the busiest first.
    pub memory_parts: Vec<UnitShare>,
}

/// How busy a part of the device was.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UnitShare {
    /// The profiler's metric.
    pub metric: String,
    /// Share of its peak, 0 to 1.
    pub share: f64,
}

fn share_of(metrics: &BTreeMap<String, Metric>, name: &str) -> Option<f64> {
    let metric = metrics.get(name)?;
    Some(metric.value.number()? * share(&metric.unit)?)
}

/// The parts that the profiler says `name` is the largest of.
fn parts(metrics: &BTreeMap<String, Metric>, name: &str) -> Vec<UnitShare> {
    let list = match metrics.get(&format!("breakdown:{name}")).map(|metric| &metric.value) {
        Some(MetricValue::Text(list)) => list.as_str(),
        _ => "",
    };
    let parts = list.split(',').map(str::trim).filter_map(|metric| {
        Some(UnitShare {
            share: share_of(metrics, metric)?,
            metric: metric.to_owned(),
        })
    });
    let mut parts: Vec<UnitShare> = parts.collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.metric.cmp(&b.metric)));
    parts
}

impl SpeedOfLight {
    /// Of the metrics of a launch.
    pub fn of(metrics: &BTreeMap<String, Metric>) -> Self {
        let compute_share = COMPUTE.iter().find_map(|name| share_of(metrics, name));
        let memory_share = MEMORY.iter().find_map(|name| share_of(metrics, name));
        let waves = waves(metrics);
        Self {
            compute_share,
            memory_share,
            waves,
            limiter: compute_share
                .zip(memory_share)
                .map(|(compute, memory)| limiter(compute, memory, waves)),
            compute_parts: parts(metrics, COMPUTE[0]),
            memory_parts: parts(metrics, MEMORY[0]),
        }
    }
}

/// How many times the grid fills the device.
pub fn waves(metrics: &BTreeMap<String, Metric>) -> Option<f64> {
    WAVES.iter().find_map(|name| metrics.get(*name)?.value.number())
}

fn limiter(compute: f64, memory: f64, waves: Option<f64>) -> Limiter {
    if compute >= NO_BOUND || memory >= NO_BOUND {
        Limiter::Saturated
    } else if compute < LATENCY_BOUND && memory < LATENCY_BOUND {
        if waves.is_some_and(|waves| waves < 1.0) {
            Limiter::GridTooSmall
        } else {
            Limiter::Latency
        }
    } else if (compute - memory).abs() < MAX_BALANCED_DIFFERENCE {
        Limiter::Balanced
    } else if compute > memory {
        Limiter::Compute
    } else {
        Limiter::Memory
    }
}

const LATENCY: &str = "smsp__average_warp_latency_per_inst_issued.ratio";

/// Why warps waited, or that they did not.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StallReason {
    /// The profiler's word, e.g. `long_scoreboard`.
    pub reason: String,
    /// Cycles between two instructions of a warp that it was in this state, on average.
    pub cycles_per_instruction: f64,
    /// Share of all cycles between two of its instructions, as NVIDIA's rule has it, 0 to 1. Shares
    /// may add up to a little more.
    pub share: f64,
}

/// States of warps between two instructions, the longest first. `selected` is the cycle in which
/// the instruction was issued.
pub fn stall_reasons(metrics: &BTreeMap<String, Metric>) -> Vec<StallReason> {
    let found = metrics.iter().filter_map(|(name, metric)| {
        let reason = name.strip_prefix("smsp__average_warps_issue_stalled_")?;
        let reason = reason.strip_suffix("_per_issue_active.ratio")?;
        (!reason.ends_with("_not_issued")).then_some(())?;
        Some((reason, metric.value.number().filter(|cycles| *cycles >= 0.0)?))
    });
    let found: Vec<(&str, f64)> = found.collect();
    // NVIDIA's rule divides by this one; the states, measured in other passes, add up to about it.
    let latency = metrics.get(LATENCY).and_then(|metric| metric.value.number());
    let all = latency.unwrap_or_else(|| found.iter().map(|(_, cycles)| cycles).sum());
    let mut reasons: Vec<StallReason> = found
        .into_iter()
        .map(|(reason, cycles)| StallReason {
            reason: reason.to_owned(),
            cycles_per_instruction: cycles,
            share: if all > 0.0 { cycles / all } else { 0.0 },
        })
        .collect();
    reasons.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.reason.cmp(&b.reason)));
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limiter_is_that_of_nvidias_rule() {
        for (compute, memory, waves, expected) in [
            (0.9, 0.1, Some(5.0), Limiter::Saturated),
            (0.1, 0.8, Some(0.5), Limiter::Saturated),
            (0.3, 0.5, Some(0.5), Limiter::GridTooSmall),
            (0.3, 0.5, Some(1.0), Limiter::Latency),
            (0.3, 0.5, None, Limiter::Latency),
            (0.7, 0.65, Some(2.0), Limiter::Balanced),
            (0.7, 0.5, Some(2.0), Limiter::Compute),
            (0.5, 0.7, Some(2.0), Limiter::Memory),
        ] {
            assert_eq!(
                limiter(compute, memory, waves),
                expected,
                "{compute} {memory} {waves:?}"
            );
        }
    }

    #[test]
    fn parts_are_those_that_the_report_names_and_states_add_up() {
        let metric = |value: MetricValue, unit: &str| Metric {
            value,
            unit: unit.to_owned(),
        };
        let metrics: BTreeMap<String, Metric> = [
            (
                format!("breakdown:{}", COMPUTE[0]),
                metric(MetricValue::Text("sm__a.pct,sm__b.pct,sm__gone.pct".to_owned()), ""),
            ),
            ("sm__a.pct".to_owned(), metric(10.0.into(), "%")),
            ("sm__b.pct".to_owned(), metric(30.0.into(), "%")),
            (
                "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio".to_owned(),
                metric(3.0.into(), ""),
            ),
            (
                "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio".to_owned(),
                metric(1.0.into(), ""),
            ),
        ]
        .into();
        let parts: Vec<(String, f64)> = SpeedOfLight::of(&metrics)
            .compute_parts
            .into_iter()
            .map(|part| (part.metric, part.share))
            .collect();
        assert_eq!(parts, [("sm__b.pct".to_owned(), 0.3), ("sm__a.pct".to_owned(), 0.1)]);
        let reasons: Vec<(String, f64)> = stall_reasons(&metrics)
            .into_iter()
            .map(|of| (of.reason, of.share))
            .collect();
        assert_eq!(reasons, [("wait".to_owned(), 0.75), ("selected".to_owned(), 0.25)]);
    }
}
