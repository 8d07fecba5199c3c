//! Results under the names and in the units that clients of an earlier PyTorch profiling suite
//! know: `/api/profiler/{timeline,kernels,hta}`.
//!
//! They compute nothing of their own: `cpu-gpu`, `gpu-time` and the figures of kernels are said
//! again, in microseconds and percent. A figure that the capture does not hold is null.

use flopwatch_measures::work::NAMED_WORK;
use flopwatch_model::{Category, ColumnId, Needs, Timeline, approximate, figures_by_key, index, listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyses::cpu_gpu::CpuGpu;
use crate::analyses::cpu_gpu::CpuGpuParams;
use crate::analyses::gpu_time::GpuTime;
use crate::analyses::gpu_time::GpuTimeParams;
use crate::definition::{Analysis, AnalysisError, NoParameters};
use crate::group::Group;
use crate::input::Inputs;

/// From this share of the time in percent on idle GPUs are a bottleneck.
const IDLE_PCT: f64 = 30.0;
/// From this share of the time in percent on communication that nothing hides is a bottleneck;
/// XProf calls a program collective-bound from here on (`smart_suggestion`).
const COMMUNICATION_PCT: f64 = 30.0;
/// From this share of the time in percent on copies that nothing hides are a bottleneck.
const COPIES_PCT: f64 = 10.0;

/// When CPU and GPU were active.
#[derive(Debug)]
pub(crate) struct ProfilerTimelineAnalysis;

/// Time by kernel.
#[derive(Debug)]
pub(crate) struct ProfilerKernelsAnalysis;

/// What the GPUs did with their time, and what to do about it.
#[derive(Debug)]
pub(crate) struct ProfilerHtaAnalysis;

/// Parameters of `profiler-timeline`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfilerTimelineParams {
    /// Events shorter than this, in µs, are left out.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub min_duration_us: f64,
    /// Whether functions of the Python interpreter count as activity of the CPU.
    pub include_python_events: bool,
}

impl Default for ProfilerTimelineParams {
    fn default() -> Self {
        Self {
            min_duration_us: 1.0,
            include_python_events: true,
        }
    }
}

/// When CPU and GPU were active.
#[allow(clippy::struct_field_names, reason = "clients know these names")]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ProfilerTimeline {
    /// From the first event to the last, in µs.
    pub total_time_us: f64,
    /// Time in µs in which any thread was active; null where the CPU was not captured.
    pub cpu_active_time_us: Option<f64>,
    /// Time in µs in which any GPU was active; null where GPUs were not captured.
    pub gpu_active_time_us: Option<f64>,
    /// Time in µs in which both were; null where either was not captured.
    pub overlap_time_us: Option<f64>,
}

/// Parameters of `profiler-kernels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfilerKernelsParams {
    /// Most kernels, those that take longest.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for ProfilerKernelsParams {
    fn default() -> Self {
        Self { limit: 1000 }
    }
}

/// Time by kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfilerKernels {
    /// The kernels, the longest total time first; null where kernels were not captured.
    pub kernels: Option<Vec<ProfilerKernel>>,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfilerKernel {
    /// Name of the kernel.
    pub name: String,
    /// Total time of its launches in µs.
    pub cuda_time_us: f64,
}

/// What the GPUs did with their time. The window of each GPU is from its first work to its last;
/// the shares are of all windows together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HTAReport {
    /// Share in percent in which a GPU did nothing; null where GPUs were not captured.
    pub gpu_idle_time_pct: Option<f64>,
    /// Share in percent in which a GPU computed; null where GPUs were not captured.
    pub compute_time_pct: Option<f64>,
    /// Share in percent in which a GPU communicated, hidden behind computation or not: the three
    /// shares are no parts of a whole. Null where GPUs were not captured.
    pub communication_time_pct: Option<f64>,
    /// The ten kernels that take longest.
    pub top_kernels: Vec<HTAKernel>,
    /// What to do.
    pub recommendations: Vec<String>,
    /// What is slow.
    pub bottlenecks: Vec<String>,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HTAKernel {
    /// Name of the kernel.
    pub name: String,
    /// Total time of its launches in µs.
    pub time_us: f64,
}

impl Analysis for ProfilerTimelineAnalysis {
    const NAME: &'static str = "profiler-timeline";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Total, CPU-active, GPU-active and overlapping time in µs, as /api/profiler/timeline has it.";
    const TITLE: &'static str = "Active times for the earlier suite";
    const GROUP: Group = Group::EarlierSuite;
    const NEEDS: Needs = CpuGpu::NEEDS;
    type Params = ProfilerTimelineParams;
    type Output = ProfilerTimeline;

    fn run(inputs: &Inputs<'_>, params: &ProfilerTimelineParams) -> Result<ProfilerTimeline, AnalysisError> {
        Ok(timeline(inputs.first(), params))
    }
}

impl Analysis for ProfilerKernelsAnalysis {
    const NAME: &'static str = "profiler-kernels";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Total time of each kernel in µs, as /api/profiler/kernels has it.";
    const TITLE: &'static str = "Kernels for the earlier suite";
    const GROUP: Group = Group::EarlierSuite;
    const NEEDS: Needs = Needs::of(KERNELS).names();
    type Params = ProfilerKernelsParams;
    type Output = ProfilerKernels;

    fn run(inputs: &Inputs<'_>, params: &ProfilerKernelsParams) -> Result<ProfilerKernels, AnalysisError> {
        let timeline = inputs.first();
        let captured = KERNELS
            .iter()
            .any(|category| timeline.capture.captured.contains(category));
        let kernel = |(name, cuda_time_us)| ProfilerKernel { name, cuda_time_us };
        let kernels = || longest(timeline, index(params.limit)).into_iter().map(kernel).collect();
        Ok(ProfilerKernels {
            kernels: captured.then(kernels),
        })
    }
}

impl Analysis for ProfilerHtaAnalysis {
    const NAME: &'static str = "profiler-hta";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Idle, compute and communication time of the GPUs in percent, as /api/profiler/hta has it.";
    const TITLE: &'static str = "GPU time for the earlier suite";
    const GROUP: Group = Group::EarlierSuite;
    const NEEDS: Needs = NAMED_WORK.columns(&[ColumnId::Launch]);
    type Params = NoParameters;
    type Output = HTAReport;

    fn run(inputs: &Inputs<'_>, _params: &NoParameters) -> Result<HTAReport, AnalysisError> {
        Ok(report(inputs.first()))
    }
}

/// What runs on a GPU and computes, as the source names it: a whole graph hides the names of its
/// kernels.
const KERNELS: &[Category] = &[Category::CudaKernel, Category::CudaGraph];

fn us(ns: u64) -> f64 {
    approximate(ns.into()) / 1e3
}

fn timeline(timeline: &Timeline, params: &ProfilerTimelineParams) -> ProfilerTimeline {
    let shortest = std::time::Duration::try_from_secs_f64(params.min_duration_us / 1e6).unwrap_or_default();
    let asked = CpuGpuParams {
        min_duration_ns: u64::try_from(shortest.as_nanos()).unwrap_or(u64::MAX),
        include_python: params.include_python_events,
        ..CpuGpuParams::default()
    };
    let found = CpuGpu::of(timeline, &asked);
    let captured = &timeline.capture.captured;
    let gpu = captured
        .iter()
        .any(|category| category.is_gpu_work() || *category == Category::DeviceOp);
    let cpu = !found.cpu_categories.is_empty();
    ProfilerTimeline {
        total_time_us: us(found.total_ns),
        cpu_active_time_us: cpu.then(|| us(found.cpu_active_ns)),
        gpu_active_time_us: gpu.then(|| us(found.gpu_active_ns)),
        overlap_time_us: (cpu && gpu).then(|| us(found.overlap_ns)),
    }
}

/// The kernels and whole graphs that take longest, with their total time in µs.
fn longest(timeline: &Timeline, max: usize) -> Vec<(String, f64)> {
    let mut totals: Vec<(&str, u128)> = Vec::new();
    for kernels in KERNELS
        .iter()
        .filter_map(|category| timeline.capture.events.get(category))
    {
        let names = u32::try_from(kernels.names.len()).unwrap_or(u32::MAX);
        let figures = figures_by_key(names, &kernels.name, listed(&kernels.duration_ns));
        let by_name = kernels.names.iter().zip(&figures);
        let ran = by_name.filter(|(_, figures)| figures.count > 0);
        totals.extend(ran.map(|(name, figures)| (name.as_str(), figures.total)));
    }
    totals.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let totals = totals.into_iter().take(max);
    totals
        .map(|(name, total)| (name.to_owned(), approximate(total) / 1e3))
        .collect()
}

fn report(timeline: &Timeline) -> HTAReport {
    let found = GpuTime::of(timeline, &GpuTimeParams::default());
    let parts = found.all;
    let communication_ns = found.gpus.iter().map(|gpu| gpu.communication_ns);
    let communication_ns = communication_ns.fold(0, u64::saturating_add);
    let percent = |part: u64| {
        let share = approximate(part.into()) / approximate(parts.window_ns.into());
        (parts.window_ns > 0).then_some(share * 100.0)
    };
    let mut report = HTAReport {
        gpu_idle_time_pct: percent(parts.idle_ns),
        compute_time_pct: percent(parts.compute_ns),
        communication_time_pct: percent(communication_ns),
        top_kernels: longest(timeline, 10)
            .into_iter()
            .map(|(name, time_us)| HTAKernel { name, time_us })
            .collect(),
        recommendations: Vec::new(),
        bottlenecks: Vec::new(),
    };
    let rules = [
        (
            parts.idle_ns,
            IDLE_PCT,
            "GPUs do nothing",
            "see `gpu-time` for the gaps: launch more work ahead, or less often wait for it on the host",
        ),
        (
            parts.exposed_communication_ns,
            COMMUNICATION_PCT,
            "GPUs communicate and compute nothing meanwhile",
            "see `collectives`: overlap communication with computation, or send less",
        ),
        (
            parts.exposed_memory_ns,
            COPIES_PCT,
            "GPUs copy and do nothing else meanwhile",
            "copy asynchronously from pinned memory, on a stream of its own",
        ),
    ];
    for (part, from, what, remedy) in rules {
        if let Some(share) = percent(part).filter(|share| *share >= from) {
            report.bottlenecks.push(format!("{what} for {share:.1} % of the time"));
            report.recommendations.push(remedy.to_owned());
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    /// A call from 0 to 4 µs; a kernel from 2 to 7 µs and NCCL from 7 to 12 µs; a call from 18 to
    /// 22 µs with a kernel of 2 µs inside.
    fn trace() -> Timeline {
        let mut trace = Trace::new();
        let (stream, api) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        trace.call(api, "cudaLaunchKernel", 0, 4_000);
        trace.kernel(stream, "gemm", 2_000, 7_000);
        trace.kernel(stream, "ncclDevKernel_AllReduce_Sum_f32", 7_000, 12_000);
        trace.call(api, "cudaLaunchKernel", 18_000, 22_000);
        trace.kernel(stream, "gemm", 19_000, 21_000);
        trace.call(api, "cudaGetDevice", 30_000, 30_500);
        trace.build()
    }

    #[test]
    fn active_times_are_in_microseconds_without_short_events() {
        let params = ProfilerTimelineParams::default();
        let found = serde_json::to_value(timeline(&trace(), &params)).unwrap();
        let expected = serde_json::json!({
            "total_time_us": 22.0, "cpu_active_time_us": 8.0, "gpu_active_time_us": 12.0, "overlap_time_us": 4.0,
        });
        assert_eq!(found, expected);
        let nothing = timeline(&Timeline::default(), &params);
        assert_eq!(
            (
                nothing.cpu_active_time_us,
                nothing.gpu_active_time_us,
                nothing.overlap_time_us
            ),
            (None, None, None)
        );
    }

    #[test]
    fn kernels_are_told_by_their_total_time() {
        let gemm = ("gemm".to_owned(), 7.0);
        assert_eq!(longest(&trace(), 1), [gemm]);
        assert_eq!(longest(&trace(), 10).len(), 2);
    }

    #[test]
    fn shares_of_the_window_have_reasons_where_they_are_large() {
        // Of 19 µs: 7 computing, 5 communicating, 7 idle.
        let found = report(&trace());
        let near = |share: Option<f64>, expected: f64| (share.unwrap() - expected).abs() < 1e-9;
        assert!(near(found.compute_time_pct, 700.0 / 19.0), "{found:?}");
        assert!(near(found.communication_time_pct, 500.0 / 19.0), "{found:?}");
        assert!(near(found.gpu_idle_time_pct, 700.0 / 19.0), "{found:?}");
        assert_eq!(found.bottlenecks, ["GPUs do nothing for 36.8 % of the time"]);
        assert_eq!(found.recommendations.len(), 1);
        assert_eq!(report(&Timeline::default()).gpu_idle_time_pct, None);
    }
}
