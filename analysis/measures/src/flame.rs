//! Time by the stack of frames that it was spent in: the tree behind flame graphs.
//!
//! A thread's stack at a moment is what has begun and not ended on it then, in the order of the
//! starts: steps, ranges, functions of Python, operators, calls. Time of the CPU belongs to the
//! stack of its moment; a GPU operation belongs, with its whole length, to the stack of the
//! launching thread when the launching call began. Equal stacks are merged. Nothing is lost on the
//! way: the tree's total is the time that it was made of, and the children of a frame never exceed
//! it.

mod cut;
mod frame;
mod sampled;
mod stack;
mod tree;

pub use cut::{Cut, Flame, FlameRow};
pub use frame::{Frame, FrameKind};
pub use tree::{FlameTree, Side};

use std::cmp::Reverse;

use flopwatch_model::{Category, ColumnId, Events, Row, RowId, Timeline, index};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::stack::{Span, Stack};
use crate::enclosing::Threads;
use crate::gpu::{Gpu, GpuStream};
use crate::interval::Interval;
use crate::operation_name::normalised;
use crate::work::GPU_WORK;

/// Which time a flame graph is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlameWeight {
    /// The lengths of GPU operations, added up: what runs at once counts for each. Operations of
    /// accelerators without streams nest, and count once per row.
    #[default]
    Gpu,
    /// The time of each thread in which it was inside any frame.
    Cpu,
    /// Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is
    /// one sample.
    Samples,
}

/// Which frames stacks are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlameStacks {
    /// Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA
    /// calls, too.
    #[default]
    All,
    /// NVTX ranges.
    Nvtx,
    /// Steps, annotations and operators.
    Operators,
    /// Functions of Python.
    Python,
}

impl FlameStacks {
    /// The categories whose events are frames. Of events with the same times the one of the earlier
    /// category is outside. Samples bring their frames along, whatever is picked.
    pub fn categories(self, weight: FlameWeight) -> &'static [Category] {
        use Category::{Annotation, CpuOp, CpuSample, CudaApi, NvtxRange, PythonFunction, Step};
        match (self, weight) {
            (_, FlameWeight::Samples) => &[CpuSample],
            (Self::All, FlameWeight::Gpu) => &[Step, NvtxRange, Annotation, PythonFunction, CpuOp],
            (Self::All, FlameWeight::Cpu) => &[Step, NvtxRange, Annotation, PythonFunction, CpuOp, CudaApi],
            (Self::Nvtx, _) => &[NvtxRange],
            (Self::Operators, _) => &[Step, Annotation, CpuOp],
            (Self::Python, _) => &[PythonFunction],
        }
    }
}

/// What the outermost frames stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlameGrouping {
    /// Nothing: equal stacks are one, whoever they are of.
    #[default]
    None,
    /// Processes.
    Process,
    /// Threads: of GPU operations those that launched them.
    Thread,
    /// GPUs. The time of the CPU is not parted by them.
    Device,
    /// Streams of GPUs. The time of the CPU is not parted by them.
    Stream,
}

/// Options of a flame graph: which time, which frames, and of which window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlameOptions {
    /// Which time.
    pub weight: FlameWeight,
    /// Which frames.
    pub stacks: FlameStacks,
    /// What the outermost frames are.
    pub group_by: FlameGrouping,
    /// Whether ranges, steps and operators whose names differ in numbers alone are one frame.
    pub merge_numbered: bool,
    /// Time before and behind it is left out.
    pub window: Option<Interval>,
}

/// Number of events that a flame tree holds, and of those that it cannot hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlameCoverage {
    /// GPU operations.
    pub gpu_ops: u64,
    /// GPU operations whose launch was not captured.
    pub unlaunched_ops: u64,
    /// Length in ns of those.
    pub unlaunched_ns: u64,
    /// NVTX ranges of start/end style: they do not nest, and are no frames.
    pub start_end_ranges: u64,
}

/// [`ColumnId::RangeStyle`] of a range that nests.
const PUSH_POP: u64 = 0;

/// A GPU operation by the call that launched it.
#[derive(Debug, Clone, Copy)]
struct LaunchedOperation {
    /// When the call began.
    called: u64,
    /// When the operation ran, within the window.
    time: Interval,
    frame: u32,
    row: RowId,
}

impl FlameTree {
    /// Adds the time of `timeline` to one side of the tree. Needs rows, names, the categories of
    /// [`FlameStacks::categories`], those of GPU work, [`Category::DeviceOp`] and
    /// [`Category::CudaApi`], and the columns [`ColumnId::Launch`], [`ColumnId::RangeStyle`] and
    /// [`ColumnId::PythonId`]; of samples the column [`ColumnId::CallStack`] and the stacks of
    /// calls.
    pub fn add(&mut self, timeline: &Timeline, options: &FlameOptions, side: Side) -> FlameCoverage {
        let threads = Threads::by_label_too(timeline);
        let mut coverage = FlameCoverage::default();
        let window = options.window.unwrap_or(Interval::new(0, u64::MAX));
        if options.weight == FlameWeight::Samples {
            self.add_samples(timeline, options.group_by, window, side);
            return coverage;
        }
        let mut stacks = self.stacks(timeline, &threads, options, &mut coverage);
        match options.weight {
            FlameWeight::Samples => {}
            FlameWeight::Cpu => {
                let mut rows: Vec<Option<&Row>> = vec![None; stacks.len()];
                for (id, row) in RowId::all().zip(&timeline.capture.rows) {
                    let thread = threads.of_row(id);
                    if let Some(known) = thread.and_then(|thread| rows.get_mut(index(thread))) {
                        known.get_or_insert(row);
                    }
                }
                for (row, spans) in rows.into_iter().zip(&stacks) {
                    let root = row.map_or(Self::ROOT, |row| self.group_of_cpu(row, options.group_by));
                    self.add_covered(spans, root, window, side);
                }
            }
            FlameWeight::Gpu => {
                let launched = self.launched(timeline, &threads, options, side, &mut coverage);
                for (spans, launched) in stacks.iter_mut().zip(launched) {
                    self.add_launched(timeline, options, side, (spans, launched));
                }
                self.add_device_ops(timeline, options, window, side);
            }
        }
        coverage
    }

    /// What nests on each thread, by start and, of equal starts, the longest first.
    fn stacks(
        &mut self,
        timeline: &Timeline,
        threads: &Threads,
        options: &FlameOptions,
        coverage: &mut FlameCoverage,
    ) -> Vec<Vec<Span>> {
        let mut stacks: Vec<Vec<Span>> = vec![Vec::new(); index(threads.count())];
        let mut categories = 0;
        for category in options.stacks.categories(options.weight) {
            let Some(events) = timeline.capture.events.get(category) else {
                continue;
            };
            categories += 1;
            let frames = self.frames_of(*category, events, options.merge_numbered);
            let style = events.column(ColumnId::RangeStyle);
            for at in order(*category, events) {
                let at = index(at);
                if style.and_then(|style| style.get(at)).unwrap_or(PUSH_POP) != PUSH_POP {
                    coverage.start_end_ranges += 1;
                    continue;
                }
                let thread = events.row.get(at).and_then(|row| threads.of_row(*row));
                let Some(spans) = thread.and_then(|thread| stacks.get_mut(index(thread))) else {
                    continue;
                };
                let frame = events.name.get(at).and_then(|name| frames.get(name.index()));
                let Some(frame) = frame.copied() else { continue };
                spans.push(Span {
                    time: Interval::of(events, at),
                    frame,
                });
            }
        }
        if categories > 1 {
            // Stable: of equal times the earlier category stays outside.
            stacks
                .par_iter_mut()
                .for_each(|spans| spans.sort_by_key(|span| (span.time.start, Reverse(span.time.end))));
        }
        stacks
    }

    fn frames_of(&mut self, category: Category, events: &Events, merge_numbered: bool) -> Vec<u32> {
        let kind = FrameKind::of(category);
        let numbered = merge_numbered && kind.may_be_numbered();
        let names = events.names.iter();
        names
            .map(|name| {
                if numbered {
                    self.frame(kind, &normalised(name))
                } else {
                    self.frame(kind, name)
                }
            })
            .collect()
    }

    /// The time in which a thread, or a row of a device, was inside anything.
    fn add_covered(&mut self, spans: &[Span], root: u32, window: Interval, side: Side) {
        let mut stack = Stack::new(self, root, Some(side));
        for span in spans {
            let time = span.time.intersect(window);
            if !time.is_empty() {
                stack.begin(Span { time, ..*span });
            }
        }
        stack.finish();
    }

    /// The GPU operations of each thread in the order of their calls. Those without one are in the
    /// tree then.
    fn launched(
        &mut self,
        timeline: &Timeline,
        threads: &Threads,
        options: &FlameOptions,
        side: Side,
        coverage: &mut FlameCoverage,
    ) -> Vec<Vec<LaunchedOperation>> {
        let mut by_thread: Vec<Vec<LaunchedOperation>> = vec![Vec::new(); index(threads.count())];
        let calls = timeline.capture.events.get(&Category::CudaApi);
        let window = options.window.unwrap_or(Interval::new(0, u64::MAX));
        for category in GPU_WORK {
            let Some(events) = timeline.capture.events.get(category) else {
                continue;
            };
            let frames = self.frames_of(*category, events, false);
            let launches = events.column(ColumnId::Launch);
            for (at, (row, name)) in events.row.iter().zip(&events.name).enumerate() {
                let time = Interval::of(events, at).intersect(window);
                let Some(frame) = frames.get(name.index()).copied().filter(|_| !time.is_empty()) else {
                    continue;
                };
                coverage.gpu_ops += 1;
                let call = || {
                    let launch = u32::try_from(launches?.get(at)?).ok()?;
                    let launch = (launch != ColumnId::NO_LAUNCH).then(|| index(launch))?;
                    let thread = threads.of_row(*calls?.row.get(launch)?)?;
                    Some((calls?.start_ns.get(launch).copied()?, thread))
                };
                let thread = call().and_then(|(called, thread)| Some((called, by_thread.get_mut(index(thread))?)));
                if let Some((called, thread)) = thread {
                    thread.push(LaunchedOperation {
                        called,
                        time,
                        frame,
                        row: *row,
                    });
                    continue;
                }
                coverage.unlaunched_ops += 1;
                coverage.unlaunched_ns = coverage.unlaunched_ns.saturating_add(time.len());
                let group = match options.group_by {
                    FlameGrouping::Thread => Self::ROOT,
                    _ => self.group_of_gpu(timeline, *row, options.group_by),
                };
                let unlaunched = self.frame(FrameKind::Rest, NO_LAUNCH);
                let parent = self.child(group, unlaunched);
                let leaf = self.child(parent, frame);
                self.spend(leaf, side, time, 1);
            }
        }
        by_thread
            .par_iter_mut()
            .for_each(|launched| launched.sort_by_key(|launched| launched.called));
        by_thread
    }

    fn add_launched(
        &mut self,
        timeline: &Timeline,
        options: &FlameOptions,
        side: Side,
        (spans, launched): (&[Span], Vec<LaunchedOperation>),
    ) {
        let mut groups: Vec<Option<u32>> = vec![None; timeline.capture.rows.len()];
        let mut spans = spans.iter().peekable();
        let mut stack = Stack::new(self, Self::ROOT, None);
        for operation in launched {
            while let Some(span) = spans.next_if(|span| span.time.start <= operation.called) {
                stack.begin(*span);
            }
            let known = groups.get(operation.row.index()).copied().flatten();
            let group = known.unwrap_or_else(|| {
                let group = stack.tree.group_of_gpu(timeline, operation.row, options.group_by);
                if let Some(slot) = groups.get_mut(operation.row.index()) {
                    *slot = Some(group);
                }
                group
            });
            let parent = stack.at(operation.called, group);
            let leaf = stack.tree.child(parent, operation.frame);
            stack.tree.spend(leaf, side, operation.time, 1);
        }
    }

    /// Operations of accelerators without streams: they nest on their row.
    fn add_device_ops(&mut self, timeline: &Timeline, options: &FlameOptions, window: Interval, side: Side) {
        let Some(events) = timeline.capture.events.get(&Category::DeviceOp) else {
            return;
        };
        let frames = self.frames_of(Category::DeviceOp, events, false);
        let mut rows: Vec<Vec<Span>> = vec![Vec::new(); timeline.capture.rows.len()];
        for (at, (row, name)) in events.row.iter().zip(&events.name).enumerate() {
            if let (Some(spans), Some(frame)) = (rows.get_mut(row.index()), frames.get(name.index())) {
                spans.push(Span {
                    time: Interval::of(events, at),
                    frame: *frame,
                });
            }
        }
        for (row, spans) in RowId::all().zip(rows).filter(|(_, spans)| !spans.is_empty()) {
            let group = self.group_of_gpu(timeline, row, options.group_by);
            self.add_covered(&spans, group, window, side);
        }
    }

    fn group_of_cpu(&mut self, row: &Row, by: FlameGrouping) -> u32 {
        match by {
            FlameGrouping::None | FlameGrouping::Device | FlameGrouping::Stream => Self::ROOT,
            FlameGrouping::Process => self.group(&format!("process {}", row.process)),
            FlameGrouping::Thread => {
                let label = match row.thread {
                    Some(thread) => format!("process {}, thread {thread}", row.process),
                    None => row.label.clone(),
                };
                self.group(&label)
            }
        }
    }

    fn group_of_gpu(&mut self, timeline: &Timeline, row: RowId, by: FlameGrouping) -> u32 {
        let label = match by {
            FlameGrouping::None | FlameGrouping::Thread => None,
            FlameGrouping::Process => timeline.row(row).map(|row| format!("process {}", row.process)),
            FlameGrouping::Device => Gpu::of_row(timeline, row).map(Gpu::label),
            FlameGrouping::Stream => GpuStream::of_row(timeline, row).map(GpuStream::label),
        };
        label.map_or(Self::ROOT, |label| self.group(&label))
    }

    fn group(&mut self, label: &str) -> u32 {
        let frame = self.frame(FrameKind::Group, label);
        self.child(Self::ROOT, frame)
    }
}

/// The name of the frame around GPU operations of which no call is known.
pub const NO_LAUNCH: &str = "(launch not captured)";

/// The places of `events` by start and then the longest first. Of Python's functions with the same
/// times the one that was called first is outside.
fn order(category: Category, events: &Events) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(events.len()).unwrap_or(u32::MAX)).collect();
    if let Some(ids) = events
        .column(ColumnId::PythonId)
        .filter(|_| category == Category::PythonFunction)
    {
        order.sort_by_key(|at| {
            let time = Interval::of(events, index(*at));
            (time.start, Reverse(time.end), ids.get(index(*at)))
        });
    }
    order
}

#[cfg(test)]
mod tests;
