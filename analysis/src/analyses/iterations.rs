//! The iterations of a capture: how long each took, on the host and on the GPU, and what its time
//! went to.

mod bubbles;
mod detail;
mod page;

use flopwatch_measures::exclusive_time::{BusyByClass, ExclusiveTime};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::iteration::{
    self, Assignment, ITERATION_CATEGORIES, ITERATION_COLUMNS, IterateBy, Iteration, IterationOptions, IterationSource,
    Iterations as Found,
};
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::{GpuWork, Work};
use flopwatch_model::{Category, Figures, Needs, RowId, Timeline, approximate, count, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

pub use bubbles::PipelineBubbles;
pub use detail::{IterationDetail, IterationKernel};

/// Timing of each iteration.
#[derive(Debug)]
pub struct Iterations;

/// Parameters of [`Iterations`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IterationsParams {
    /// How iterations are looked for.
    pub by: IterateBy,
    /// The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to
    /// choose one.
    #[schemars(length(max = 1024))]
    pub range: String,
    /// Most iterations in the list, the first ones.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
    /// Number of an iteration whose kernels are listed.
    pub number: Option<u64>,
    /// Most kernels of that list.
    #[schemars(range(min = 1, max = 10_000))]
    pub kernel_limit: u32,
}

impl Default for IterationsParams {
    fn default() -> Self {
        Self {
            by: IterateBy::Auto,
            range: String::new(),
            limit: 1000,
            number: None,
            kernel_limit: 20,
        }
    }
}

/// The result of the analysis `iterations`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct IterationsResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// What the iterations were found from; null where there are none.
    pub source: Option<IterationSource>,
    /// What repeats: the range's name, numbers as `#`; empty of a period of kernels.
    pub name: String,
    /// How sure it is that these are iterations, from 0 to 1.
    pub confidence_ratio: f64,
    /// Reservations about the figures, as sentences.
    pub cautions: Vec<String>,
    /// Loops that iterate side by side: threads, or of a period of kernels devices.
    pub loops: u64,
    /// Iterations of all loops.
    pub iterations: u64,
    /// Those at the beginning of each loop that took more than 1.5 times the median: no statistics
    /// hold them.
    pub warm_up_iterations: u64,
    /// How GPU work was assigned.
    pub assigned: AssignedWork,
    /// Length of an iteration: on the host, of a period of kernels on the GPU. Without warm-up;
    /// null without others.
    pub time: Option<IterationStatistics>,
    /// From the first start to the last end of an iteration's GPU work, summed over its devices.
    /// Without warm-up.
    pub gpu_span: Option<IterationStatistics>,
    /// What the GPU time of all iterations without warm-up went to. The parts add up to the window.
    pub parts: ExclusiveTime,
    /// Where devices waited for each other inside of iterations; empty of one device.
    pub bubbles: Vec<PipelineBubbles>,
    /// The iterations, loop by loop.
    pub rows: Vec<IterationRow>,
    /// Iterations behind the list's limit.
    pub left_out: u64,
    /// The iteration that was asked for, in each loop that has it.
    pub details: Vec<IterationDetail>,
}

/// How GPU work was assigned to iterations, in pieces: kernels, copies and memsets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AssignedWork {
    /// Launched by the loop's thread during the iteration.
    pub by_thread: u64,
    /// Launched by another thread of the process during the iteration.
    pub by_process: u64,
    /// Without a recorded launch: by the time of its start.
    pub by_time: u64,
    /// Of no iteration.
    pub outside: u64,
}

/// Figures of lengths in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct IterationStatistics {
    /// Shortest.
    pub min_ns: u64,
    /// Median; between two middle ones, their mean.
    pub median_ns: f64,
    /// Mean.
    pub mean_ns: f64,
    /// The shortest that 95 of 100 do not exceed (nearest rank).
    pub p95_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Standard deviation of a sample (divided by one less than their number); 0 of one.
    pub deviation_ns: f64,
}

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct IterationRow {
    /// The timeline's row: the thread of the loop, or of a period of kernels the stream.
    pub row: RowId,
    /// Process of the loop.
    pub process: u32,
    /// The step's number, or how many iterations of its loop are before it.
    pub number: u64,
    /// Name of its range or step; empty of a period of kernels.
    pub name: String,
    /// Start in ns since the session's start.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// Length in ns.
    pub time_ns: u64,
    /// From its start to the loop's next one in ns; null of the last.
    pub period_ns: Option<u64>,
    /// Start of its first GPU work in ns; null without any.
    pub gpu_start_ns: Option<u64>,
    /// End of its last GPU work in ns.
    pub gpu_end_ns: Option<u64>,
    /// Devices that worked for it.
    pub devices: u32,
    /// What its GPU time went to: per device from its first to its last work, summed over devices.
    pub parts: ExclusiveTime,
    /// Time in ns from the end of the loop's GPU work of earlier iterations to the start of its
    /// own; 0 where they overlap, null of the first.
    pub gpu_gap_before_ns: Option<u64>,
    /// Kernels that ran for it.
    pub kernels: u64,
    /// Whole CUDA graphs: how many kernels ran in them was not recorded.
    pub graphs: u64,
    /// Copies and memsets.
    pub copies: u64,
    /// Whether it is warm-up.
    pub warm_up: bool,
    /// Whether it took much longer than the others: more than the median by 10 percent and by four
    /// median deviations.
    pub outlier: bool,
}

impl Analysis for Iterations {
    const NAME: &'static str = "iterations";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Iterations of the training or inference loop: timing, what their GPU time went to, outliers and pipeline bubbles.";
    const TITLE: &'static str = "Iterations";
    const GROUP: Group = Group::Steps;
    const NEEDS: Needs = Needs::of(ITERATION_CATEGORIES)
        .columns(ITERATION_COLUMNS)
        .rows()
        .names();
    type Params = IterationsParams;
    type Output = IterationsResult;

    fn run(inputs: &Inputs<'_>, params: &IterationsParams) -> Result<IterationsResult, AnalysisError> {
        Ok(IterationsResult::of(inputs.first(), params))
    }

    fn page(output: &IterationsResult) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

impl IterationsResult {
    /// The iterations of `timeline`.
    pub fn of(timeline: &Timeline, params: &IterationsParams) -> Self {
        let work = GpuWork::of(timeline);
        let options = IterationOptions::new(params.by, &params.range);
        let found = iteration::of_work(timeline, &work, &options);
        let assignment = found.assign(timeline, &work);
        Self::of_found(timeline, &work, &found, &assignment, params)
    }

    fn of_found(
        timeline: &Timeline,
        work: &GpuWork,
        found: &Found,
        assignment: &Assignment,
        params: &IterationsParams,
    ) -> Self {
        let lists = assignment.by_iteration(work, found.list.len());
        let mut rows: Vec<IterationRow> = Vec::with_capacity(found.list.len());
        let mut worked = lists.iter();
        for of in found.loops() {
            rows.extend(rows_of_loop(timeline, of, &mut worked));
        }
        let steady = || rows.iter().filter(|row| !row.warm_up);
        let mut result = Self {
            not_captured: found.not_found.iter().cloned().collect(),
            source: found.source,
            name: found.name.clone(),
            confidence_ratio: found.confidence_ratio,
            cautions: found.cautions.clone(),
            loops: count(found.loops().count()),
            iterations: count(rows.len()),
            warm_up_iterations: count(rows.len() - steady().count()),
            assigned: AssignedWork {
                by_thread: assignment.by_thread,
                by_process: assignment.by_process,
                by_time: assignment.by_time,
                outside: assignment.outside,
            },
            time: IterationStatistics::of(steady().map(|row| row.time_ns)),
            gpu_span: IterationStatistics::of(steady().filter(|row| row.devices > 0).map(|row| row.parts.window_ns)),
            parts: steady().fold(ExclusiveTime::default(), |sum, row| sum.plus(row.parts)),
            bubbles: bubbles::of(timeline, work, &rows),
            details: detail::of(timeline, &rows, &lists, params),
            rows: Vec::new(),
            left_out: 0,
        };
        let missing = NotCaptured::unless_any(
            &timeline.capture,
            flopwatch_measures::work::GPU_WORK,
            "GPU time of iterations",
        );
        result.not_captured.extend(missing.or_else(|| {
            NotCaptured::inside_graphs(&timeline.capture, "what iterations compute and communicate in graphs")
        }));
        let limit = index(params.limit);
        result.left_out = count(rows.len().saturating_sub(limit));
        rows.truncate(limit);
        result.rows = rows;
        result
    }
}

/// The rows of one loop. `worked` gives the work of its iterations.
fn rows_of_loop<'a>(
    timeline: &Timeline,
    of: &[Iteration],
    worked: &mut impl Iterator<Item = &'a Vec<Work>>,
) -> Vec<IterationRow> {
    let mut rows = Vec::with_capacity(of.len());
    let mut gpu_until: Option<u64> = None;
    for (position, iteration) in of.iter().enumerate() {
        let work: &[Work] = worked.next().map_or(&[], Vec::as_slice);
        let next = of.get(position + 1);
        let mut row = row_of(timeline, *iteration, work);
        row.period_ns = next.map(|next| next.time.start.saturating_sub(iteration.time.start));
        row.gpu_gap_before_ns = gpu_until
            .zip(row.gpu_start_ns)
            .map(|(until, start)| start.saturating_sub(until));
        gpu_until = gpu_until.max(row.gpu_end_ns);
        rows.push(row);
    }
    let lengths = || rows.iter().map(|row| row.time_ns);
    let usual = median(lengths());
    let slow = |row: &&IterationRow| row.time_ns > usual.saturating_add(usual / 2);
    // More than half of them cannot exceed the median, so that some are left.
    let warm = rows.iter().take_while(slow).count();
    let usual = median(lengths().skip(warm));
    let deviation = median(lengths().skip(warm).map(|time| time.abs_diff(usual)));
    for (position, row) in rows.iter_mut().enumerate() {
        row.warm_up = position < warm;
        let above = row.time_ns.saturating_sub(usual);
        row.outlier = !row.warm_up && above > usual / 10 && above > deviation.saturating_mul(4);
    }
    rows
}

fn row_of(timeline: &Timeline, iteration: Iteration, work: &[Work]) -> IterationRow {
    let of = |category| work.iter().filter(|work| work.category == category).count();
    let (kernels, graphs) = (of(Category::CudaKernel), of(Category::CudaGraph));
    let mut row = IterationRow {
        row: iteration.row,
        process: timeline.row(iteration.row).map_or(0, |row| row.process),
        number: iteration.number,
        name: iteration.name(timeline).to_owned(),
        start_ns: iteration.time.start,
        end_ns: iteration.time.end,
        time_ns: iteration.time.len(),
        gpu_start_ns: work.iter().map(|work| work.time.start).min(),
        gpu_end_ns: work.iter().map(|work| work.time.end).max(),
        kernels: count(kernels),
        graphs: count(graphs),
        copies: count(work.len() - kernels - graphs),
        ..IterationRow::default()
    };
    for (_, work) in devices(timeline, work) {
        let start = work.iter().map(|work| work.time.start).min().unwrap_or(0);
        let end = work.iter().map(|work| work.time.end).max().unwrap_or(0);
        row.devices += 1;
        row.parts = row
            .parts
            .plus(ExclusiveTime::of(&busy(&work), Interval::new(start, end)));
    }
    row
}

/// The work of each device, by capture, machine and ordinal.
fn devices(timeline: &Timeline, work: &[Work]) -> std::collections::BTreeMap<(u32, u32, u32), Vec<Work>> {
    let mut devices: std::collections::BTreeMap<_, Vec<Work>> = std::collections::BTreeMap::new();
    for work in work {
        if let Some(row) = timeline.row(work.row)
            && let Some(device) = row.device
        {
            devices
                .entry((row.capture, row.machine, device))
                .or_default()
                .push(*work);
        }
    }
    devices
}

fn busy(work: &[Work]) -> BusyByClass {
    let with = |class| -> Intervals {
        let of_class = work.iter().filter(|work| work.class == class);
        of_class.map(|work| work.time).collect()
    };
    BusyByClass {
        compute: with(WorkClass::Compute),
        communication: with(WorkClass::Communication),
        memory: with(WorkClass::Memory),
    }
}

/// The median in whole ns; 0 of none.
fn median(values: impl Iterator<Item = u64>) -> u64 {
    Figures::of(&mut values.collect::<Vec<u64>>()).whole_median()
}

impl IterationStatistics {
    /// Of `values`; `None` of none.
    pub fn of(values: impl Iterator<Item = u64>) -> Option<Self> {
        let mut values: Vec<u64> = values.collect();
        let median_ns = Figures::of(&mut values).median()?;
        values.sort_unstable();
        let (min_ns, max_ns) = (*values.first()?, *values.last()?);
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        let number = approximate(u128::from(count(values.len())));
        let mean_ns = approximate(sum) / number;
        let squares = values
            .iter()
            .map(|value| (approximate(u128::from(*value)) - mean_ns).powi(2));
        let variance = squares.sum::<f64>() / (number - 1.0).max(1.0);
        Some(Self {
            min_ns,
            median_ns,
            mean_ns,
            p95_ns: *values.get((values.len() * 95).div_ceil(100).saturating_sub(1))?,
            max_ns,
            deviation_ns: variance.sqrt(),
        })
    }
}

#[cfg(test)]
mod tests;
