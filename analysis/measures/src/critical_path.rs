//! The critical path: the longest chain of work that waits for work, of one process within a
//! window.
//!
//! Nodes are the beginnings and ends of CPU operators, CUDA API calls and GPU work; edges say what
//! waits for what, with the time it costs (after HTA's `critical_path_analysis.py`, with the
//! differences that `docs/analyses/steps.md` gives):
//!
//! | edge | from, to | weight |
//! |---|---|---|
//! | processor | one node of a thread to its next | the time between; of a call that waits for the GPU none |
//! | work | begin to end of a kernel or copy | its length |
//! | order | end of the stream's previous work, or of another stream's that it waited for, to begin of the next | none |
//! | overlap | begin to begin, and end to end, of such work and of the next that began before it had ended | the time between |
//! | launch | begin of the call to begin of its work, where all that this had to wait for had ended when the call began | the time between |
//! | gap | end of the stream's previous work to begin of the next, which was launched before | the time between |
//! | sync | end of GPU work to the end of the call, or to the begin of another stream's work, that waited for it | the time between |
//!
//! Every edge goes forward in time and costs no more than the time between its ends, so that the
//! path is never longer than the wall. The edges of a stream cover all its work, so that the path
//! is never shorter than the time in which any one stream was busy.
//!
//! Between its operators the thread of control runs the program's own code, which counts as
//! processor time; where the operators of another thread of the process begin meanwhile (PyTorch's
//! backward pass), control passes to that thread and back. Gaps of other threads weigh nothing.

mod gpu;
mod graph;
mod host;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::{Category, NameId, RowId, Timeline, index};
use schemars::JsonSchema;
use serde::Serialize;

use crate::interval::{Interval, Intervals};
use crate::iteration::{Assignment, Iterations};
use crate::kernel_class::WorkClass;
use crate::work::GpuWork;
use graph::{Graph, Item};
use strum::VariantArray;

/// What a part of the critical path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum PathPart {
    /// The processor runs operators, API calls, or the program's own code between them.
    Cpu,
    /// The processor runs in a range or operator that loads data, by its name.
    DataLoading,
    /// From the begin of a launch call to the begin of its work on an empty stream.
    LaunchOverhead,
    /// A kernel computes.
    Compute,
    /// A kernel, or a copy between devices, communicates.
    Communication,
    /// A copy or memset.
    Copy,
    /// A stream goes from one work to the next.
    KernelGap,
    /// From the end of GPU work to the return of the call, or the begin of the work, that waited
    /// for it.
    Sync,
}

impl PathPart {
    /// Every part, in published order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::DataLoading => "data loading",
            Self::LaunchOverhead => "launch overhead",
            Self::Compute => "GPU compute",
            Self::Communication => "GPU communication",
            Self::Copy => "copies",
            Self::KernelGap => "gaps between kernels",
            Self::Sync => "synchronisation",
        }
    }

    const fn of_class(class: WorkClass) -> Self {
        match class {
            WorkClass::Compute => Self::Compute,
            WorkClass::Communication => Self::Communication,
            WorkClass::Memory => Self::Copy,
        }
    }
}

/// A piece of the critical path: one event, or the step from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The kind of time that the segment is.
    pub part: PathPart,
    /// Time of the segment.
    pub time: Interval,
    /// The event that it belongs to: the innermost operator or call, the work, or the work behind a
    /// gap; `None` of the program's own code.
    pub event: Option<(Category, u32)>,
    /// The timeline's row of the event, or of the thread.
    pub row: RowId,
}

/// The critical path of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// The segments in order. They do not overlap; what is between them is waiting that no record
    /// explains.
    pub segments: Vec<Segment>,
    /// The longest chain of GPU work in ns, in the order of its streams and of their waits for each
    /// other: how long the window would take if the processor cost nothing.
    pub gpu_chain_ns: u64,
    /// Operators and API calls in the window.
    pub cpu_events: u64,
    /// GPU work in the window.
    pub gpu_events: u64,
    /// Part of it whose launch was not recorded, so that nothing on the processor leads to it.
    pub unlaunched: u64,
    /// Part of it whose stream waited for an event of which the capture does not say in which
    /// stream it was recorded: what it waited for is a guess.
    pub guessed_waits: u64,
}

impl CriticalPath {
    /// Sum of the segments in ns.
    pub fn len_ns(&self) -> u64 {
        self.segments.iter().map(|segment| segment.time.len()).sum()
    }

    /// From the path's begin to its end.
    pub fn span(&self) -> Option<Interval> {
        let (first, last) = (self.segments.first()?, self.segments.last()?);
        Some(Interval::new(first.time.start, last.time.end))
    }

    /// Time in ns of each part.
    pub fn parts(&self) -> BTreeMap<PathPart, u64> {
        let mut parts = BTreeMap::new();
        for segment in &self.segments {
            *parts.entry(segment.part).or_default() += segment.time.len();
        }
        parts
    }
}

/// What the path is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathWindow {
    /// When its calls and operators begin.
    pub time: Interval,
    /// Capture, machine and process.
    pub process: (u32, u32, u32),
    /// The thread of control; `None` to take the one that launches most.
    pub thread: Option<u64>,
}

impl PathWindow {
    /// The whole of the process that launched the most GPU work; `None` without GPU work.
    pub fn whole(timeline: &Timeline, work: &GpuWork) -> Option<Self> {
        let mut processes: BTreeMap<_, u64> = BTreeMap::new();
        for work in work.all() {
            if let Some(row) = timeline.row(work.row) {
                *processes.entry((row.capture, row.machine, row.process)).or_default() += 1;
            }
        }
        let (process, _) = processes
            .into_iter()
            .max_by_key(|(process, count)| (*count, std::cmp::Reverse(*process)))?;
        Some(Self {
            time: Interval::new(0, u64::MAX),
            process,
            thread: None,
        })
    }

    /// An iteration.
    pub fn of_iteration(timeline: &Timeline, iterations: &Iterations, number: u32) -> Option<Self> {
        let iteration = iterations
            .list
            .get(index(number))
            .filter(|_| number != Assignment::NONE)?;
        let row = timeline.row(iteration.row)?;
        Some(Self {
            time: iteration.time,
            process: (row.capture, row.machine, row.process),
            thread: row.thread,
        })
    }
}

/// The critical path of `window`.
///
/// Of GPU work it has what is launched in the window, and what runs in it though launched before.
/// Needs the categories of GPU work, `cuda_api`, `cpu_op`, `cuda_sync`, `nvtx_range` and
/// `annotation`, rows, names and correlations, and the columns of launches, of what
/// synchronisations wait for and of styles of ranges.
pub fn of(timeline: &Timeline, work: &GpuWork, window: PathWindow) -> CriticalPath {
    let mut graph = Graph::default();
    let host = host::add(timeline, work, window, &mut graph);
    let first_work = graph.items.len();
    let found = gpu::add(timeline, work, window, &host, &mut graph);
    let gpu_events = graph.items.len() - first_work;
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let order = graph.order();
    let steps = graph.longest(&order, false);
    let alone = graph.longest(&order, true);
    let loading = loading(timeline, window.process);
    let mut segments = Vec::new();
    for step in steps {
        let segment = Segment {
            part: step.part,
            time: step.time,
            event: step.event,
            row: step.row,
        };
        if segment.part == PathPart::Cpu {
            let thread = timeline.row(step.row).and_then(|row| row.thread);
            push_host(&mut segments, segment, thread.and_then(|thread| loading.get(&thread)));
        } else {
            push(&mut segments, segment);
        }
    }
    CriticalPath {
        segments,
        gpu_chain_ns: alone.iter().map(|step| step.time.len()).sum(),
        cpu_events: count(first_work),
        gpu_events: count(gpu_events),
        unlaunched: found.unlaunched,
        guessed_waits: found.guessed_waits,
    }
}

/// Adds a segment to the path, to its last one where both are of one event.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    if segment.time.is_empty() {
        return;
    }
    if let Some(last) = segments.last_mut()
        && (last.part, last.event, last.row, last.time.end)
            == (segment.part, segment.event, segment.row, segment.time.start)
    {
        last.time.end = segment.time.end;
        return;
    }
    segments.push(segment);
}

/// Adds processor time, of which the parts that `loading` holds are data loading.
fn push_host(segments: &mut Vec<Segment>, segment: Segment, loading: Option<&Intervals>) {
    let Some(loading) = loading else {
        return push(segments, segment);
    };
    let mut start = segment.time.start;
    for piece in loading.clip(segment.time).as_slice() {
        let before = Interval::new(start, piece.start);
        push(
            segments,
            Segment {
                time: before,
                ..segment
            },
        );
        let part = PathPart::DataLoading;
        push(
            segments,
            Segment {
                part,
                time: *piece,
                ..segment
            },
        );
        start = piece.end;
    }
    let rest = Interval::new(start, segment.time.end);
    push(segments, Segment { time: rest, ..segment });
}

/// Parts of names by which programs and frameworks call the loading of data.
pub const DATA_LOADING: [&str; 5] = ["dataloader", "data_load", "load_batch", "load_data", "dataiter"];

/// When each thread of the process loads data, by the names of its operators, annotations and
/// ranges.
fn loading(timeline: &Timeline, process: (u32, u32, u32)) -> BTreeMap<u64, Intervals> {
    let mut threads: BTreeMap<u64, Vec<Interval>> = BTreeMap::new();
    for category in [Category::CpuOp, Category::Annotation, Category::NvtxRange] {
        let Some(events) = timeline.capture.events.get(&category) else {
            continue;
        };
        let names = NameId::all().zip(&events.names);
        let loads = |name: &str| {
            let lower = name.to_ascii_lowercase();
            DATA_LOADING.iter().any(|part| lower.contains(part))
        };
        let of: BTreeSet<NameId> = names.filter(|(_, name)| loads(name)).map(|(id, _)| id).collect();
        if of.is_empty() {
            continue;
        }
        for (at, (name, row)) in events.name.iter().zip(&events.row).enumerate() {
            if of.contains(name)
                && let Some(row) = timeline.row(*row)
                && (row.capture, row.machine, row.process) == process
                && let Some(thread) = row.thread
            {
                threads.entry(thread).or_default().push(Interval::of(events, at));
            }
        }
    }
    let sets = threads
        .into_iter()
        .map(|(thread, list)| (thread, Intervals::union_of(list)));
    sets.collect()
}

#[cfg(test)]
mod tests;
