//! The critical path of an iteration or of the whole capture: what bounds it.

use strum::VariantArray;

mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use flopwatch_measures::critical_path::{self, PathPart, PathWindow, Segment};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::{self, Assignment, IterateBy, IterationOptions, Iterations};
use flopwatch_measures::work::{GPU_WORK, GpuWork};
use flopwatch_model::{Category, ColumnId, Needs, RowId, Timeline, gpu_work_and, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// The longest chain of work that waits for work.
#[derive(Debug)]
pub struct CriticalPath;

/// Parameters of [`CriticalPath`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CriticalPathParams {
    /// How iterations are looked for.
    pub by: IterateBy,
    /// The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to
    /// choose one.
    #[schemars(length(max = 1024))]
    pub range: String,
    /// Number of the iteration; without one, the iteration of median length, the first of each loop
    /// left out.
    pub number: Option<u64>,
    /// The whole capture instead of an iteration, of the process with the most GPU work.
    pub whole: bool,
    /// Most segments in the list, the longest ones.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for CriticalPathParams {
    fn default() -> Self {
        Self {
            by: IterateBy::Auto,
            range: String::new(),
            number: None,
            whole: false,
            limit: 500,
        }
    }
}

/// The result of the analysis `critical-path`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CriticalPathResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Reservations about the figures, as sentences.
    pub cautions: Vec<String>,
    /// Number of the iteration; null of the whole capture.
    pub iteration: Option<u64>,
    /// Name of the iteration's range or step.
    pub iteration_name: String,
    /// Process whose path it is.
    pub process: u32,
    /// Begin of the path in ns since the session's start.
    pub start_ns: u64,
    /// End of the path in ns.
    pub end_ns: u64,
    /// Sum of the segments in ns.
    pub path_ns: u64,
    /// Time in ns between begin and end that no segment has: waiting that no record explains.
    pub unexplained_ns: u64,
    /// Length in ns of the longest chain of GPU work alone: a lower bound of the window's time
    /// however fast the processor is.
    pub gpu_chain_ns: u64,
    /// What bounds the window; null without a path.
    pub verdict: Option<PathVerdict>,
    /// The verdict's share of the path.
    pub verdict_ratio: f64,
    /// The parts of the path.
    pub parts: Vec<PathShare>,
    /// What the path runs through, the longest in all first; at most 50.
    pub names: Vec<PathName>,
    /// Segments of the path by time.
    pub rows: Vec<PathSegment>,
    /// Shorter segments that the list leaves out.
    pub left_out: u64,
    /// Operators and API calls in the window.
    pub cpu_events: u64,
    /// Kernels, copies and memsets in the window.
    pub gpu_events: u64,
    /// Those of them whose launch was not recorded.
    pub unlaunched: u64,
}

/// What bounds a window: the largest share of its critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum PathVerdict {
    /// The processor: operators, program code, data loading, launches, and returns from waiting.
    CpuBound,
    /// Kernels that compute.
    ComputeBound,
    /// Communication that nothing hides.
    CommunicationBound,
    /// Copies and memsets.
    CopyBound,
    /// The steps of streams from one work to the next that had been launched before: nothing runs
    /// meanwhile.
    GapBound,
}

impl PathVerdict {
    /// Every verdict, in published order.
    const ALL: &'static [Self] = Self::VARIANTS;

    /// What a segment counts for.
    pub fn of(segment: &Segment) -> Self {
        let is_gpu_work = segment.event.is_some_and(|(category, _)| category.is_gpu_work());
        match segment.part {
            // A stream goes on behind another one, as it does behind its own work.
            PathPart::Sync if is_gpu_work => Self::GapBound,
            PathPart::Cpu | PathPart::DataLoading | PathPart::LaunchOverhead | PathPart::Sync => Self::CpuBound,
            PathPart::Compute => Self::ComputeBound,
            PathPart::Communication => Self::CommunicationBound,
            PathPart::Copy => Self::CopyBound,
            PathPart::KernelGap => Self::GapBound,
        }
    }

    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::CpuBound => "CPU-bound",
            Self::ComputeBound => "compute-bound",
            Self::CommunicationBound => "communication-bound",
            Self::CopyBound => "copy-bound",
            Self::GapBound => "bound by gaps between kernels",
        }
    }
}

/// A part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PathShare {
    /// What bounds the program during it.
    pub part: PathPart,
    /// Time of the path in this part, in ns.
    pub time_ns: u64,
    /// Its share of the path.
    pub of_path_ratio: f64,
}

/// What the path runs through, by name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PathName {
    /// Name of the operator, call or kernel; empty of the program's own code.
    pub name: String,
    /// What it is on the path.
    pub part: PathPart,
    /// Segments of it.
    pub segments: u64,
    /// Sum of their lengths in ns.
    pub time_ns: u64,
    /// Their share of the path.
    pub of_path_ratio: f64,
}

/// A segment of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PathSegment {
    /// The kind of time that the segment is.
    pub part: PathPart,
    /// Name of the operator, call or kernel; empty of the program's own code.
    pub name: String,
    /// Begin in ns since the session's start.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// Length in ns.
    pub time_ns: u64,
    /// The timeline's row.
    pub row: RowId,
}

const CATEGORIES: &[Category] = gpu_work_and![
    Category::CudaSync,
    Category::CudaApi,
    Category::NvtxRange,
    Category::CpuOp,
    Category::Annotation,
    Category::Step
];

impl Analysis for CriticalPath {
    const NAME: &'static str = "critical-path";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "The longest chain of work that waits for work in an iteration: whether CPU, compute, copies or communication bound it.";
    const TITLE: &'static str = "Critical path";
    const GROUP: crate::Group = crate::Group::Steps;
    const NEEDS: Needs = Needs::of(CATEGORIES)
        .columns(&[
            ColumnId::Launch,
            ColumnId::StepNumber,
            ColumnId::RangeStyle,
            ColumnId::WaitOnStream,
            ColumnId::WaitOnRecord,
        ])
        .rows()
        .names()
        .correlations();
    type Params = CriticalPathParams;
    type Output = CriticalPathResult;

    fn run(inputs: &Inputs<'_>, params: &CriticalPathParams) -> Result<CriticalPathResult, AnalysisError> {
        Ok(CriticalPathResult::of(inputs.first(), params))
    }

    fn page(output: &CriticalPathResult) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

/// What the path is of.
struct PathScope {
    window: PathWindow,
    iteration: Option<u64>,
    name: String,
    cautions: Vec<String>,
}

impl CriticalPathResult {
    /// The critical path of the window that `params` ask for.
    pub fn of(timeline: &Timeline, params: &CriticalPathParams) -> Self {
        let work = GpuWork::of(timeline);
        let mut result = Self::default();
        let parts: [(&[Category], &str); 2] = [
            (GPU_WORK, "GPU work on the path"),
            (&[Category::CudaApi], "launches and waits on the path"),
        ];
        result.not_captured = NotCaptured::of_parts(&timeline.capture, &parts);
        let mut chosen = match choose(timeline, &work, params) {
            Ok(chosen) => chosen,
            Err(reason) => {
                result.not_captured.push(reason);
                return result;
            }
        };
        let mut found = critical_path::of(timeline, &work, chosen.window);
        if found.cpu_events == 0
            && let Some(whole) = PathWindow::whole(timeline, &work)
            && whole.process != chosen.window.process
        {
            chosen.cautions.push(format!(
                "Process {} marks the iteration and has no operators or calls: the path is of process {}, which launches.",
                chosen.window.process.2, whole.process.2
            ));
            let time = chosen.window.time;
            chosen.window = PathWindow { time, ..whole };
            found = critical_path::of(timeline, &work, chosen.window);
        }
        let Some(span) = found.span() else { return result };
        result.cautions = chosen.cautions;
        if !timeline.capture.captured.contains(&Category::CpuOp) {
            result.cautions.push(
                "No operators were recorded: processor time between API calls is the program's own code, whatever it is."
                    .to_owned(),
            );
        }
        if found.unlaunched > 0 {
            result.cautions.push(format!(
                "{} of {} pieces of GPU work have no recorded launch: nothing on the processor leads to them.",
                found.unlaunched, found.gpu_events
            ));
        }
        if found.guessed_waits > 0 {
            result.cautions.push(format!(
                "{} waits of a stream for another one are guessed: the capture does not say which event they were for.",
                found.guessed_waits
            ));
        }
        result.iteration = chosen.iteration;
        result.iteration_name = chosen.name;
        result.process = chosen.window.process.2;
        (result.start_ns, result.end_ns) = (span.start, span.end);
        result.path_ns = found.len_ns();
        result.unexplained_ns = span.len().saturating_sub(result.path_ns);
        result.gpu_chain_ns = found.gpu_chain_ns;
        (result.cpu_events, result.gpu_events, result.unlaunched) =
            (found.cpu_events, found.gpu_events, found.unlaunched);
        result.fill(timeline, &found, index(params.limit));
        result
    }

    fn fill(&mut self, timeline: &Timeline, found: &critical_path::CriticalPath, limit: usize) {
        let share = |time_ns| ratio(time_ns, self.path_ns).unwrap_or(0.0);
        let parts = found.parts();
        self.parts = PathPart::ALL
            .iter()
            .copied()
            .map(|part| {
                let time_ns = parts.get(&part).copied().unwrap_or(0);
                let of_path_ratio = share(time_ns);
                PathShare {
                    part,
                    time_ns,
                    of_path_ratio,
                }
            })
            .collect();
        let sums = PathVerdict::ALL.iter().copied().map(|verdict| {
            let of = found.segments.iter().filter(|of| PathVerdict::of(of) == verdict);
            (of.map(|segment| segment.time.len()).sum::<u64>(), verdict)
        });
        if let Some((time_ns, verdict)) = sums.rev().max_by_key(|(time_ns, _)| *time_ns) {
            self.verdict = Some(verdict);
            self.verdict_ratio = share(time_ns);
        }
        let mut names: BTreeMap<(PathPart, &str), (u64, u64)> = BTreeMap::new();
        for segment in &found.segments {
            let sum = names.entry((segment.part, name_of(timeline, *segment))).or_default();
            *sum = (sum.0 + 1, sum.1 + segment.time.len());
        }
        let mut names: Vec<PathName> = names
            .into_iter()
            .map(|((part, name), (segments, time_ns))| PathName {
                name: name.to_owned(),
                part,
                segments,
                time_ns,
                of_path_ratio: share(time_ns),
            })
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.time_ns));
        names.truncate(50);
        self.names = names;
        let mut kept = found.segments.clone();
        kept.sort_by_key(|segment| (std::cmp::Reverse(segment.time.len()), segment.time.start));
        self.left_out = u64::try_from(kept.len().saturating_sub(limit)).unwrap_or(u64::MAX);
        kept.truncate(limit);
        kept.sort_by_key(|segment| segment.time.start);
        self.rows = kept
            .into_iter()
            .map(|segment| PathSegment {
                part: segment.part,
                name: name_of(timeline, segment).to_owned(),
                start_ns: segment.time.start,
                end_ns: segment.time.end,
                time_ns: segment.time.len(),
                row: segment.row,
            })
            .collect();
    }
}

fn name_of(timeline: &Timeline, segment: Segment) -> &str {
    let events = segment
        .event
        .and_then(|(category, at)| Some((timeline.capture.events.get(&category)?, at)));
    events.map_or("", |(events, at)| events.name_of(index(at)))
}

fn choose(timeline: &Timeline, work: &GpuWork, params: &CriticalPathParams) -> Result<PathScope, NotCaptured> {
    let whole = |cautions: Vec<String>| {
        let window = PathWindow::whole(timeline, work);
        let window = window.ok_or_else(|| NotCaptured::new("the critical path", "no GPU work was recorded"))?;
        Ok(PathScope {
            window,
            iteration: None,
            name: String::new(),
            cautions,
        })
    };
    if params.whole {
        return whole(Vec::new());
    }
    let options = IterationOptions::new(params.by, &params.range);
    let iterations = iteration::of_work(timeline, work, &options);
    if iterations.list.is_empty() {
        let asked = params.number.is_some() || !params.range.is_empty() || params.by != IterateBy::Auto;
        return match iterations.not_found {
            Some(reason) if asked => Err(reason),
            reason => {
                let reason = reason.map(|reason| reason.reason).unwrap_or_default();
                whole(vec![format!("The path is of the whole capture: {reason}.")])
            }
        };
    }
    let position = find_position(&iterations, params.number).ok_or_else(|| {
        let wanted = params.number.unwrap_or(0);
        NotCaptured::new("the critical path", format!("no iteration has the number {wanted}"))
    })?;
    let window = PathWindow::of_iteration(timeline, &iterations, position);
    let mut window = window.ok_or_else(|| NotCaptured::new("the critical path", "the iteration has no row"))?;
    if iterations.is_device_time() {
        window.time = launches_of(timeline, work, &iterations, position).ok_or_else(|| {
            let reason = "the iteration is GPU time, and none of its launches was recorded";
            NotCaptured::new("the critical path", reason)
        })?;
        window.thread = None;
    }
    let iteration = iterations.list.get(index(position)).copied();
    Ok(PathScope {
        window,
        iteration: iteration.map(|iteration| iteration.number),
        name: iteration.map_or("", |iteration| iteration.name(timeline)).to_owned(),
        cautions: iterations.cautions,
    })
}

/// The iteration of that number, or the one of median length.
fn find_position(iterations: &Iterations, number: Option<u64>) -> Option<u32> {
    let mut candidates: Vec<u32> = Vec::new();
    let mut position = 0_u32;
    for of in iterations.loops() {
        for (nth, iteration) in of.iter().enumerate() {
            let wanted = number.map_or(nth > 0 || of.len() == 1, |number| iteration.number == number);
            if wanted {
                candidates.push(position);
            }
            position += 1;
        }
    }
    if number.is_some() {
        return candidates.first().copied();
    }
    candidates.sort_by_key(|position| {
        iterations
            .list
            .get(index(*position))
            .map_or(0, |iteration| iteration.time.len())
    });
    candidates.get(candidates.len().checked_sub(1)? / 2).copied()
}

/// From the first to the last launch of the iteration's GPU work.
fn launches_of(timeline: &Timeline, work: &GpuWork, iterations: &Iterations, position: u32) -> Option<Interval> {
    let api = timeline.capture.events.get(&Category::CudaApi)?;
    let assignment: Assignment = iterations.assign(timeline, work);
    let of = work
        .all()
        .iter()
        .zip(&assignment.iteration)
        .filter(|(_, of)| **of == position);
    let calls = of.filter_map(|(work, _)| work.launch(timeline));
    let starts = calls.filter_map(|call| api.start_ns.get(call).copied());
    let (first, last) = starts.fold((u64::MAX, 0), |(first, last), start| {
        (first.min(start), last.max(start))
    });
    (first <= last).then(|| Interval::new(first, last + 1))
}
