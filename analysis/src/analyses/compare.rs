//! Two captures of one program, before and after a change: whether they can be compared, what
//! became slower or faster, and whether that is more than noise.

mod comparability;
mod differences;
mod page;
mod side;
mod verdict;

use flopwatch_measures::counterpart::Units;
use flopwatch_measures::iteration::IterateBy;
use flopwatch_model::{Category, ColumnId, Needs, Timeline, gpu_work_and};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyses::compare::side::Side;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

pub use comparability::{Comparability, ComparabilityFactor};
pub use differences::{CopyDifference, GpuTimeDifference, MemoryDifference, PeakMemory, TimeDifference};
pub use verdict::{ComparedTime, ComparedTimeKind, ComparisonVerdict};

/// Compares two captures, before and after.
#[derive(Debug)]
pub struct Compare;

/// Parameters of [`Compare`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompareParams {
    /// What times are compared per.
    pub per: ComparedPer,
    /// How iterations are found.
    pub by: IterateBy,
    /// The NVTX range or annotation that is an iteration; empty to find it.
    #[schemars(length(max = 1024))]
    pub range: String,
    /// Change of the compared time, in percent, from which on it is a regression or an improvement.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub threshold_percent: f64,
    /// Change in percent below which one run a side cannot tell a change from noise, whatever the
    /// threshold.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub noise_floor_percent: f64,
    /// Comparability below which there is no verdict, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub least_comparability: f64,
    /// Confidence, in percent, of the test of iterations and of the interval of the change.
    #[schemars(range(min = 50, max = 99))]
    pub confidence_percent: u32,
    /// Iterations at the beginning of each capture that are left out, as their warm-up.
    #[schemars(range(min = 0, max = 100_000))]
    pub skip_iterations: u32,
    /// Most rows of each list, those that differ most.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for CompareParams {
    fn default() -> Self {
        Self {
            per: ComparedPer::Auto,
            by: IterateBy::Auto,
            range: String::new(),
            threshold_percent: 5.0,
            noise_floor_percent: 2.0,
            least_comparability: 0.5,
            confidence_percent: 95,
            skip_iterations: 0,
            limit: 200,
        }
    }
}

/// What times are compared per.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedPer {
    /// An iteration where both captures have some of one kind and name, else the whole capture.
    #[default]
    Auto,
    /// The whole capture.
    Capture,
}

/// What a time is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedUnit {
    /// An iteration: times of all of them, divided by their number.
    Iteration,
    /// The whole capture.
    Capture,
}

/// The result. Differences are after less before: above 0 is slower, or more.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Whether the change is a regression, an improvement, none, or cannot be told.
    pub verdict: ComparisonVerdict,
    /// Why, in a sentence for people.
    pub verdict_reason: String,
    /// Time before divided by time after, of `time`: above 1 is faster. Null where no time can be
    /// compared.
    pub speedup: Option<f64>,
    /// Whether the captures can be compared at all.
    pub comparability: Comparability,
    /// The time that the verdict is about.
    pub time: ComparedTime,
    /// What the times below are per.
    pub unit: ComparedUnit,
    /// What an iteration is called, by what it was found from: `step`, `block`, `period of kernels`
    /// and so on; null where whole captures are compared.
    pub iteration_unit: Option<String>,
    /// The captures.
    pub before: ComparedCapture,
    /// The second capture.
    pub after: ComparedCapture,
    /// How the GPUs spent the time: exclusive parts that add up to their window.
    pub gpu_time: Vec<GpuTimeDifference>,
    /// Kernels, the largest difference first.
    pub kernels: Vec<TimeDifference>,
    /// Kernels behind those.
    pub kernels_left_out: u64,
    /// Copies and memsets by direction.
    pub copies: Vec<CopyDifference>,
    /// NVTX ranges, annotations and operators by name, the largest difference first. Their times
    /// are inclusive: a range holds those inside it.
    pub ranges: Vec<TimeDifference>,
    /// Ranges behind those.
    pub ranges_left_out: u64,
    /// Peak of memory.
    pub memory_diff: MemoryDifference,
    /// What cannot be compared, and why.
    pub not_captured: Vec<NotCaptured>,
}

/// One of the captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComparedCapture {
    /// The session's identifier.
    pub session_id: String,
    /// Name of the profiler that took it.
    pub tool: String,
    /// Version of the compared capture.
    pub tool_version: String,
    /// Length of the capture in ns.
    pub duration_ns: u64,
    /// The GPUs that did work, by their product names; an ordinal where the source names none.
    pub gpus: Vec<String>,
    /// Iterations that are compared; 0 where none were found, or none are compared.
    pub iterations: u64,
    /// Kernels that ran in what is compared.
    pub kernels: u64,
    /// Kernels of these whose launch was not recorded: they belong to the iteration in which they
    /// began.
    pub kernels_without_launch: u64,
}

impl Analysis for Compare {
    const NAME: &'static str = "compare";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Two captures, before and after a change: comparability, what differs per iteration and per kernel, and a verdict.";
    const INPUTS: InputCount = InputCount::Two;
    const TITLE: &'static str = "Before and after";
    const GROUP: Group = Group::Comparison;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaApi,
        Category::NvtxRange,
        Category::CpuOp,
        Category::Annotation,
        Category::Step
    ])
    .columns(&[
        ColumnId::Bytes,
        ColumnId::Launch,
        ColumnId::StepNumber,
        ColumnId::RangeStyle,
    ])
    .names()
    .name_details()
    .rows()
    .counters()
    .allocations();
    type Params = CompareParams;
    type Output = Comparison;

    fn run(inputs: &Inputs<'_>, params: &CompareParams) -> Result<Comparison, AnalysisError> {
        Ok(of(inputs.first(), inputs.second(), params))
    }

    fn verdict(output: &Comparison) -> Option<&'static str> {
        Some(output.verdict.name())
    }

    fn page(output: &Comparison) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

/// Compares `before` with `after`. Needs [`Compare::NEEDS`].
pub fn of(before: &Timeline, after: &Timeline, params: &CompareParams) -> Comparison {
    let (mut before, mut after) = (Side::of(before, 0, params), Side::of(after, 1, params));
    let both = !before.iterations.is_empty() && !after.iterations.is_empty();
    let alike = before.found.source == after.found.source && before.found.name == after.found.name;
    let unit = if both && alike && params.per == ComparedPer::Auto {
        ComparedUnit::Iteration
    } else {
        before.compare_whole();
        after.compare_whole();
        ComparedUnit::Capture
    };
    let units = Units {
        before: before.units(),
        after: after.units(),
    };
    let kernels = differences::kernels(&before, &after, units);
    let ranges = differences::ranges(&before, &after, units);
    let comparability = comparability::of(&before, &after, units, &kernels);
    let judgement = verdict::of(&before, &after, &comparability, params);
    let limited = |mut rows: Vec<TimeDifference>| {
        let left_out = cut(&mut rows, params.limit);
        (rows, left_out)
    };
    let mut not_captured = Vec::new();
    let gpu_time = differences::gpu_time(&before, &after, units);
    let copies = differences::copies(&before, &after, units);
    let memory_diff = differences::memory(&before, &after);
    for (side, which) in [(&before, "before"), (&after, "after")] {
        let capture = &side.timeline.capture;
        let missing = [
            (&[Category::CudaKernel][..], "kernels"),
            (
                &[Category::NvtxRange, Category::CpuOp, Category::Annotation],
                "ranges and operators",
            ),
        ];
        for (categories, what) in missing {
            not_captured.extend(NotCaptured::unless_any(capture, categories, &format!("{what} {which}")));
        }
        if side.peaks().is_empty() {
            let reason = "neither allocations nor a series of memory in use were recorded; capture with profile_memory=True (PyTorch), \
                          --cuda-memory-usage=true (Nsight Systems) or NVML samples";
            not_captured.push(NotCaptured::new(format!("peak memory {which}"), reason));
        }
    }
    let (kernels, kernels_left_out) = limited(kernels);
    let (ranges, ranges_left_out) = limited(ranges);
    Comparison {
        verdict: judgement.verdict,
        verdict_reason: judgement.reason,
        speedup: judgement.time.speedup(),
        comparability,
        time: judgement.time,
        unit,
        iteration_unit: (unit == ComparedUnit::Iteration).then(|| before.found.unit().one.to_owned()),
        before: before.about(),
        after: after.about(),
        gpu_time,
        kernels,
        kernels_left_out,
        copies,
        ranges,
        ranges_left_out,
        memory_diff,
        not_captured,
    }
}

#[cfg(test)]
mod tests;
