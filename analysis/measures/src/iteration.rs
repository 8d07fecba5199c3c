//! Iterations of the training or inference loop: where each begins and ends, and which GPU work
//! belongs to it.
//!
//! They are found from the steps that the profiler marked on the host or derived for a device, else
//! from the range that repeats, else from the period of the kernels' sequence.
//! [`Iterations::source`] says which, [`Iterations::cautions`] what may be wrong with it. Where
//! nothing repeats clearly there are no iterations, with the reason in [`Iterations::not_found`].

mod assign;
mod device_step;
mod period;
mod ranges;
mod share;
mod unit;

use flopwatch_model::{Category, ColumnId, RowId, Timeline, gpu_work_and, index};
use flopwatch_report::NotCaptured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::work::GpuWork;

pub use assign::Assignment;
pub use ranges::normalized;
pub use unit::IterationUnit;

/// Categories that [`of`] and [`Iterations::assign`] read.
pub const ITERATION_CATEGORIES: &[Category] = gpu_work_and![
    Category::CudaApi,
    Category::NvtxRange,
    Category::Annotation,
    Category::Step,
    Category::Derived
];

/// Columns that they read; rows and names are needed too.
pub const ITERATION_COLUMNS: &[ColumnId] = &[ColumnId::Launch, ColumnId::StepNumber, ColumnId::RangeStyle];

/// How iterations are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IterateBy {
    /// By steps, else by ranges, else by the sequence of kernels.
    #[default]
    Auto,
    /// By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the
    /// line `Steps` of a device.
    Step,
    /// By the NVTX range or annotation that repeats.
    Range,
    /// By the period of the sequence of kernels.
    Kernels,
}

/// What is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IterationOptions {
    /// What marks the iterations.
    pub by: IterateBy,
    /// The range that is an iteration, as [`normalized`] makes it or as it is; empty to choose one.
    pub range: String,
}

impl IterationOptions {
    /// Iterations that `by` marks, of the range of that name; an empty one is chosen.
    pub fn new(by: IterateBy, range: &str) -> Self {
        let range = range.to_owned();
        Self { by, range }
    }
}

/// What iterations were found from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IterationSource {
    /// Steps that the profiler marked.
    Step,
    /// The line `Steps` of a device, which XLA's profiler derives of the work of each step: an
    /// iteration is time of the device.
    DeviceStep,
    /// A range that repeats: an iteration is one range.
    Range,
    /// A range that repeats: an iteration is from its start to its next start, because the range
    /// holds only a part of the work.
    RangeToNext,
    /// The period of the sequence of kernels on the busiest stream of each device: an iteration is
    /// GPU time.
    KernelPeriod,
}

/// One iteration of one loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration {
    /// The step's number, or how many iterations of its loop are before it.
    pub number: u64,
    /// Its time: on the host; of [`IterationSource::KernelPeriod`] and
    /// [`IterationSource::DeviceStep`] on the device.
    pub time: Interval,
    /// The timeline's row: the thread that runs the loop; of [`IterationSource::KernelPeriod`] the
    /// stream, of [`IterationSource::DeviceStep`] the device's line.
    pub row: RowId,
    /// The event that it was found from.
    pub event: Option<(Category, u32)>,
}

impl Iteration {
    /// The name of the event that it was found from; empty without one.
    pub fn name(self, timeline: &Timeline) -> &str {
        let events = self
            .event
            .and_then(|(category, at)| Some((timeline.capture.events.get(&category)?, at)));
        events.map_or("", |(events, at)| events.name_of(index(at)))
    }
}

/// The iterations of a capture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Iterations {
    /// What they were found from; `None` without any.
    pub source: Option<IterationSource>,
    /// What repeats: a range's [`normalized`] name; empty of a period of kernels.
    pub name: String,
    /// The iterations by row (the loop that they are of), and then by start.
    pub list: Vec<Iteration>,
    /// How sure it is that these are iterations, from 0 to 1: 1 of marked steps; of ranges the
    /// lower of the share of GPU work that is launched inside, and of the share of ranges that
    /// launch as much as the median one; of a period the share of kernels that are the same one
    /// period later, each name counted equally.
    pub confidence_ratio: f64,
    /// What may be wrong with them, in sentences.
    pub cautions: Vec<String>,
    /// Why there are none.
    pub not_found: Option<NotCaptured>,
}

impl Iterations {
    /// The loops: iterations of one row each, by start.
    pub fn loops(&self) -> impl Iterator<Item = &[Iteration]> {
        self.list.chunk_by(|one, next| one.row == next.row)
    }

    /// Whether they are time of devices, not of the host.
    pub fn is_device_time(&self) -> bool {
        matches!(
            self.source,
            Some(IterationSource::KernelPeriod | IterationSource::DeviceStep)
        )
    }

    /// Whether they may be parts of an iteration, such as layers, as one of the cautions says: a
    /// range named after a part of a model, or a period of kernels, which is that of the layers
    /// where the capture holds few iterations.
    pub fn may_be_parts(&self) -> bool {
        self.source == Some(IterationSource::KernelPeriod)
            || (self.source.is_some() && ranges::names_a_part(&self.name))
    }

    fn none(reason: impl Into<String>) -> Self {
        Self {
            not_found: Some(NotCaptured::new("iterations", reason)),
            ..Self::default()
        }
    }

    fn sorted(mut self) -> Self {
        self.list
            .sort_by_key(|iteration| (iteration.row, iteration.time.start, iteration.number));
        self
    }
}

/// The iterations of `timeline`. Needs [`ITERATION_CATEGORIES`], [`ITERATION_COLUMNS`], rows and
/// names.
pub fn of(timeline: &Timeline, options: &IterationOptions) -> Iterations {
    of_work(timeline, &GpuWork::of(timeline), options)
}

/// The same, of a timeline whose GPU work the caller has at hand.
pub fn of_work(timeline: &Timeline, work: &GpuWork, options: &IterationOptions) -> Iterations {
    if !options.range.is_empty() {
        return ranges::named(timeline, work, &options.range);
    }
    match options.by {
        IterateBy::Step => steps(timeline, work)
            .unwrap_or_else(|| Iterations::none("no steps were marked; call the profiler's step() or annotate steps")),
        IterateBy::Range => ranges::chosen(timeline, work)
            .unwrap_or_else(|| Iterations::none("no range repeats around the launches of GPU work, as many each time")),
        IterateBy::Kernels => period::of(timeline, work),
        IterateBy::Auto => steps(timeline, work)
            .or_else(|| ranges::chosen(timeline, work))
            .unwrap_or_else(|| period::of(timeline, work)),
    }
}

/// The steps on the host, else those of the devices. Without GPU work that belongs to a step by its
/// launch those of the devices come first: a step on the host may be over before an accelerator
/// begins it.
fn steps(timeline: &Timeline, work: &GpuWork) -> Option<Iterations> {
    if work.all().is_empty() {
        device_step::of(timeline).or_else(|| marked(timeline))
    } else {
        marked(timeline).or_else(|| device_step::of(timeline))
    }
}

/// The steps that the profiler marked on the host; of steps inside steps of the same thread the
/// outer ones.
fn marked(timeline: &Timeline) -> Option<Iterations> {
    let steps = timeline.capture.events.get(&Category::Step)?;
    let numbers = steps.column(ColumnId::StepNumber);
    let rows = steps.rows_end();
    let mut ends = vec![0; rows];
    let mut list = Vec::new();
    for (at, row) in (0_u32..).zip(&steps.row) {
        let time = Interval::of(steps, index(at));
        let Some(end) = ends
            .get_mut(row.index())
            .filter(|end| !time.is_empty() && time.start >= **end)
        else {
            continue;
        };
        *end = time.end;
        list.push(Iteration {
            number: numbers.and_then(|numbers| numbers.get(index(at))).unwrap_or(0),
            time,
            row: *row,
            event: Some((Category::Step, at)),
        });
    }
    let first = list.first()?;
    let name = normalized(first.name(timeline)).into_owned();
    let iterations = Iterations {
        source: Some(IterationSource::Step),
        name,
        list,
        confidence_ratio: 1.0,
        ..Iterations::default()
    };
    Some(iterations.sorted())
}

#[cfg(test)]
mod tests;
