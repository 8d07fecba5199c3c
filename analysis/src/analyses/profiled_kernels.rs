//! Launches that a kernel profiler (Nsight Compute) measured, with every metric.

use std::collections::BTreeMap;

use flopwatch_measures::kernel_figures::Figures;
use flopwatch_model::{KernelProfile, MetricValue, Needs, OpenRange, RuleResult, Timeline};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Cell, Page, Table, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Launches that a kernel profiler measured.
#[derive(Debug)]
pub struct ProfiledKernels;

/// Parameters of [`ProfiledKernels`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfiledKernelsParams {
    /// Only kernels whose name contains this text.
    #[schemars(length(max = 1024))]
    pub name_contains: String,
    /// Only metrics whose name contains this text.
    #[schemars(length(max = 1024))]
    pub metric_contains: String,
    /// Most launches in the result, the first of the report.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for ProfiledKernelsParams {
    fn default() -> Self {
        Self {
            name_contains: String::new(),
            metric_contains: String::new(),
            limit: 10_000,
        }
    }
}

/// The result of the analysis `profiled-kernels`.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfiledLaunches {
    /// The launches in the order of the report.
    pub launches: Vec<ProfiledLaunch>,
    /// Launches that are not in the result.
    pub launches_left_out: u64,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// A launch.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfiledLaunch {
    /// Its number in the report.
    pub id: u64,
    /// The kernel's name, demangled where the report has it.
    pub name: String,
    /// Process id; 0 where the report does not say.
    pub process: u32,
    /// Device ordinal.
    pub device: u32,
    /// CUDA context; 0 where the report does not say.
    pub context: u64,
    /// CUDA stream; 0 where the report does not say.
    pub stream: u64,
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// What most ask for, in one unit each.
    pub figures: Figures,
    /// Each metric by the profiler's own name, as the report has it.
    pub metrics: BTreeMap<String, ProfiledValue>,
    /// Unit of each metric that has one.
    pub units: BTreeMap<String, String>,
    /// What NVIDIA's rules say of it, in NVIDIA's words.
    pub rules: Vec<RuleResult>,
    /// Annotated ranges that were open on the launching thread.
    pub ranges: Vec<OpenRange>,
}

/// The value of a metric.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfiledValue {
    /// A whole number, exact.
    Integer(u64),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

impl From<&MetricValue> for ProfiledValue {
    fn from(value: &MetricValue) -> Self {
        match value {
            MetricValue::Number(number) => Self::Number(*number),
            MetricValue::Integer(number) => Self::Integer(*number),
            MetricValue::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl ProfiledLaunch {
    fn of(profile: &KernelProfile, metric_contains: &str) -> Self {
        let metrics = || {
            let metrics = profile.metrics.iter();
            metrics.filter(|(name, _)| name.contains(metric_contains))
        };
        let with_unit = metrics().filter(|(_, metric)| !metric.unit.is_empty());
        Self {
            id: profile.id,
            name: profile.name.clone(),
            process: profile.process,
            device: profile.device,
            context: profile.context,
            stream: profile.stream,
            grid: profile.grid,
            block: profile.block,
            figures: Figures::of(&profile.metrics),
            metrics: metrics()
                .map(|(name, metric)| (name.clone(), (&metric.value).into()))
                .collect(),
            units: with_unit
                .map(|(name, metric)| (name.clone(), metric.unit.clone()))
                .collect(),
            rules: profile.rules.clone(),
            ranges: profile.ranges.clone(),
        }
    }
}

/// The launches of `timeline` that the parameters allow.
pub fn of(timeline: &Timeline, params: &ProfiledKernelsParams) -> ProfiledLaunches {
    let profiles = &timeline.capture.profiles;
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let chosen = || {
        let profiles = profiles.iter();
        profiles.filter(|profile| profile.name.contains(&params.name_contains))
    };
    let missing = profiles.is_empty().then(|| {
        let reason =
            "the capture holds no launch that a kernel profiler measured; open a report of Nsight Compute (.ncu-rep)";
        NotCaptured::new("counters of kernels", reason)
    });
    ProfiledLaunches {
        launches: chosen()
            .take(limit)
            .map(|profile| ProfiledLaunch::of(profile, &params.metric_contains))
            .collect(),
        launches_left_out: u64::try_from(chosen().count().saturating_sub(limit)).unwrap_or(u64::MAX),
        not_captured: missing.into_iter().collect(),
    }
}

impl Analysis for ProfiledKernels {
    const NAME: &'static str = "profiled-kernels";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "Launches that Nsight Compute measured: speed of light, occupancy, caches, and every metric.";
    const TITLE: &'static str = "Profiled kernels";
    const GROUP: Group = Group::Kernels;
    const NEEDS: Needs = Needs::NOTHING.profiles();
    type Params = ProfiledKernelsParams;
    type Output = ProfiledLaunches;

    fn run(inputs: &Inputs<'_>, params: &ProfiledKernelsParams) -> Result<ProfiledLaunches, AnalysisError> {
        Ok(of(inputs.first(), params))
    }

    fn page(output: &ProfiledLaunches) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        page.table_unless_empty(
            Table::of("Launches", &output.launches)
                .about(
                    "Compute and memory are shares of their peaks, occupancy one of the warps that fit. Each \
                     launch was replayed alone on the GPU.",
                )
                .left_out(output.launches_left_out)
                .column("Launch", |launch| launch.id)
                .column("Kernel", |launch| launch.name.as_str())
                .column("Grid", |launch| by(launch.grid))
                .column("Block", |launch| by(launch.block))
                .figure("Duration", Unit::Ns, |launch| launch.figures.duration_ns)
                .figure("Compute", Unit::Ratio, |launch| launch.figures.compute_share)
                .figure("Memory", Unit::Ratio, |launch| launch.figures.bandwidth_share)
                .figure("Occupancy", Unit::Ratio, |launch| launch.figures.achieved_occupancy)
                .figure("At most", Unit::Ratio, |launch| launch.figures.theoretical_occupancy)
                .figure("L1 hits", Unit::Ratio, |launch| launch.figures.l1_hit_rate)
                .figure("L2 hits", Unit::Ratio, |launch| launch.figures.l2_hit_rate),
        );
        Ok(page)
    }
}

/// `1024 × 2 × 1`.
fn by([x, y, z]: [u32; 3]) -> Cell {
    Cell::from(format!("{x} × {y} × {z}"))
}

#[cfg(test)]
mod tests {
    use flopwatch_model::Metric;

    use super::*;

    fn capture() -> Timeline {
        let metric = |value, unit: &str| Metric {
            value,
            unit: unit.to_owned(),
        };
        let launch = |id, name: &str| KernelProfile {
            id,
            name: name.to_owned(),
            grid: [4, 2, 1],
            metrics: [
                (
                    "gpu__time_duration.sum".to_owned(),
                    metric(MetricValue::Number(1500.0), "ns"),
                ),
                (
                    "launch__thread_count".to_owned(),
                    metric(MetricValue::Integer(u64::MAX), "thread"),
                ),
                (
                    "device__name".to_owned(),
                    metric(MetricValue::Text("H100".to_owned()), ""),
                ),
            ]
            .into(),
            ..KernelProfile::default()
        };
        let mut timeline = Timeline::default();
        timeline.capture.profiles = vec![launch(0, "gemm"), launch(1, "copy"), launch(2, "gemm")];
        timeline
    }

    #[test]
    fn every_metric_is_there_as_the_report_has_it() {
        let found = of(&capture(), &ProfiledKernelsParams::default());
        let launch = serde_json::to_value(&found.launches[0]).unwrap();
        let expected = serde_json::json!({
            "gpu__time_duration.sum": 1500.0,
            "launch__thread_count": u64::MAX,
            "device__name": "H100",
        });
        assert_eq!(launch["metrics"], expected);
        assert_eq!(launch["units"]["gpu__time_duration.sum"], "ns");
        assert_eq!(launch["units"]["device__name"], serde_json::Value::Null);
        assert_eq!(launch["figures"]["duration_ns"], 1500.0);
        assert_eq!((found.launches.len(), found.launches_left_out), (3, 0));
    }

    #[test]
    fn launches_and_metrics_are_picked_by_their_names() {
        let params = ProfiledKernelsParams {
            name_contains: "gemm".to_owned(),
            metric_contains: "time".to_owned(),
            limit: 1,
        };
        let found = of(&capture(), &params);
        let ids: Vec<u64> = found.launches.iter().map(|launch| launch.id).collect();
        assert_eq!((ids, found.launches_left_out), (vec![0], 1));
        assert_eq!(found.launches[0].metrics.len(), 1);
    }

    #[test]
    fn a_capture_without_such_launches_says_so() {
        let found = of(&Timeline::default(), &ProfiledKernelsParams::default());
        assert!(found.launches.is_empty() && found.not_captured.len() == 1);
    }
}
