//! What torch.compile did: when it compiled, which compiled regions ran, and where the compiled
//! graph was left.
//!
//! `PyTorch` marks it in a Kineto capture by names (`torch/_dynamo/utils.py`,
//! `torch/csrc/dynamo/eval_frame.c`, `torch/_inductor/output_code.py`): `NAME (dynamo_timed)` is a
//! phase of the compiler, `Torch-CompileActivity Region: FRAME/RECOMPILE` a run of compiled code,
//! `TorchDynamo Cache Lookup` the search for code whose guards hold,
//! `## Call CompiledFxGraph KEY ##` the run of a graph. The last stands on the host and again on
//! the GPU's timeline (`gpu_user_annotation`); only the host's counts.

mod given_up;
mod graph_break;
mod phases;
mod recompile;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use flopwatch_model::{Category, RowId, Timeline, index};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::coverage::Coverage;
use crate::enclosing::Threads;
use crate::interval::{Interval, Intervals};

pub use given_up::GivenUp;
pub use graph_break::{BreakReason, GraphBreak};
pub use phases::CompilePhase;
pub use recompile::Recompile;

/// Where such events stand.
pub const COMPILED_CATEGORIES: [Category; 2] = [Category::CpuOp, Category::Annotation];

/// The end of the name of a phase.
const TIMED: &str = " (dynamo_timed)";
/// The beginning of the name of a run.
const REGION: &str = "Torch-Compiled Region";
/// The beginning of the name of the Python function that such a graph is.
const PYTHON_GRAPH: &str = "<eval_with_key>";
/// What says which code is being compiled.
const COMPILE_ID: &str = "compile_id=";

/// A function, however often it was compiled: the graph of compiled autograd and the frame of
/// [`CompileId`].
pub type Function = (Option<u32>, u32);

/// Which code: the function's frame, counted from 0 as they were first compiled, and how often it
/// was compiled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompileId {
    /// The graph of compiled autograd that it belongs to, where it does.
    pub autograd: Option<u32>,
    /// The function's frame, counted from 0 as they were first compiled.
    pub frame: u32,
    /// 0 of the first compilation.
    pub recompile: u32,
}

impl CompileId {
    /// Of `0/1` or `!2/0/1`, as `torch._guards.CompileId` prints it; `None` of anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (autograd, rest) = match text.strip_prefix('!') {
            Some(text) => {
                let (autograd, rest) = text.split_once('/')?;
                (Some(autograd.parse().ok()?), rest)
            }
            None => (None, text),
        };
        let (frame, recompile) = rest.split_once('/')?;
        Some(Self {
            autograd,
            frame: frame.parse().ok()?,
            recompile: recompile.parse().ok()?,
        })
    }

    /// The function, without how often it was compiled.
    pub const fn function(self) -> Function {
        (self.autograd, self.frame)
    }
}

impl fmt::Display for CompileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(autograd) = self.autograd {
            write!(f, "!{autograd}/")?;
        }
        write!(f, "{}/{}", self.frame, self.recompile)
    }
}

impl Serialize for CompileId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for CompileId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CompileId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "Code as torch.compile counts it: the function's frame and how often it was compiled before, e.g. 0/1."
        })
    }
}

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// A phase of the compiler.
    Phase,
    /// The compiler at work, not timed by itself.
    Compiler,
    /// What the compiler says of the code that it compiles.
    Data(CompileId),
    /// A run of compiled code; versions before 2.6 do not say of which.
    Region(Option<CompileId>),
    /// The search for code whose guards hold.
    CacheLookup,
    /// What runs before the graph: bytecode and wrappers.
    Prologue,
    /// The autograd function of a graph, forward.
    Function,
    /// The same, backward: its graph runs on the thread of autograd, outside any region.
    Backward,
    /// A run of a graph.
    Graph,
    /// A graph that no backend compiled (`backend="eager"`), which Python runs. Python stacks alone
    /// have it.
    PythonGraph,
}

impl MarkKind {
    /// Of the name of an event on the host; `None` of any other.
    pub fn of(name: &str) -> Option<Self> {
        if name.ends_with(TIMED) {
            return Some(Self::Phase);
        }
        if let Some(rest) = name.strip_prefix(REGION) {
            let id = rest.strip_prefix(": ").and_then(CompileId::parse);
            return Some(Self::Region(id));
        }
        if name.starts_with("## Call CompiledFxGraph") {
            return Some(Self::Graph);
        }
        if let Some((before, id)) = name.split_once(COMPILE_ID)
            && before.contains("_data: ")
        {
            let id = id.split([',', ' ']).next()?;
            return CompileId::parse(id).map(Self::Data);
        }
        match name {
            "TorchDynamo Cache Lookup" => Some(Self::CacheLookup),
            "Pregraph bytecode" | "AOTDispatcher Runtime Wrapper Prologue" => Some(Self::Prologue),
            "CompiledFunction" => Some(Self::Function),
            "CompiledFunctionBackward" => Some(Self::Backward),
            "dynamo" | "entire_backward_compile" => Some(Self::Compiler),
            _ => None,
        }
    }
}

/// An event that says something of compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// What the event says.
    pub marked: MarkKind,
    /// The event's time, in ns since the session's start.
    pub time: Interval,
    /// The timeline's row.
    pub row: RowId,
    /// The thread, as [`Threads`] numbers it.
    pub thread: u32,
    /// The category that holds the event.
    pub category: Category,
    /// The place among the events of the category.
    pub at: u32,
}

impl Mark {
    /// Where it is in the timeline of input `input`.
    pub fn location(&self, input: u32) -> TimelineLocation {
        TimelineLocation::new(self.time.start, self.time.end, Some(self.row)).of_input(input)
    }
}

/// A run of compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Event of the run.
    pub mark: Mark,
    /// Which code.
    pub id: Option<CompileId>,
    /// The run around it, by its place among the runs: this one goes on where that one left its
    /// graph.
    pub outer: Option<usize>,
    /// Time in ns in which code was compiled inside.
    pub compile_ns: u64,
}

/// What torch.compile did in a capture.
#[derive(Debug, Clone, Default)]
pub struct CompileActivity {
    /// By thread, then by start, then the longest first.
    marks: Vec<Mark>,
    /// The runs, in that order.
    runs: Vec<Run>,
    /// When each thread compiled.
    compiling: BTreeMap<u32, (Intervals, Coverage)>,
    /// When any thread compiled.
    any: Coverage,
}

impl CompileActivity {
    /// Of `timeline`. Needs rows, names, and the events of [`COMPILED_CATEGORIES`].
    pub fn of(timeline: &Timeline, threads: &Threads) -> Self {
        let mut marks = Vec::new();
        for category in COMPILED_CATEGORIES.into_iter().chain([Category::PythonFunction]) {
            let is_python = category == Category::PythonFunction;
            // FX makes such functions without torch.compile, too.
            if is_python && marks.is_empty() {
                break;
            }
            let Some(events) = timeline.capture.events.get(&category) else {
                continue;
            };
            let of = |name: &String| {
                if is_python {
                    name.starts_with(PYTHON_GRAPH).then_some(MarkKind::PythonGraph)
                } else {
                    MarkKind::of(name)
                }
            };
            let marked: Vec<Option<MarkKind>> = events.names.iter().map(of).collect();
            if marked.iter().all(Option::is_none) {
                continue;
            }
            for (at, (name, row)) in (0_u32..).zip(events.name.iter().zip(&events.row)) {
                let known = marked.get(name.index()).copied().flatten();
                if let (Some(marked), Some(thread)) = (known, threads.of_row(*row)) {
                    marks.push(Mark {
                        marked,
                        time: Interval::of(events, index(at)),
                        row: *row,
                        thread,
                        category,
                        at,
                    });
                }
            }
        }
        marks.sort_by_key(|mark| {
            (
                mark.thread,
                mark.time.start,
                std::cmp::Reverse(mark.time.end),
                mark.category,
            )
        });
        let mut times: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
        for mark in marks.iter().filter(|mark| mark.marked == MarkKind::Phase) {
            times.entry(mark.thread).or_default().push(mark.time);
        }
        let compiling = times.into_iter().map(|(thread, times)| {
            let union = Intervals::union_of(times);
            let coverage = Coverage::of(&union);
            (thread, (union, coverage))
        });
        let compiling: BTreeMap<u32, (Intervals, Coverage)> = compiling.collect();
        let any = compiling.values().flat_map(|(union, _)| union.as_slice());
        let any = Coverage::of(&any.copied().collect());
        let mut compiled = Self {
            marks,
            runs: Vec::new(),
            compiling,
            any,
        };
        compiled.runs = compiled.nested_runs();
        compiled
    }

    fn nested_runs(&self) -> Vec<Run> {
        let runs: Vec<(Mark, Option<CompileId>)> = self
            .marks
            .iter()
            .filter_map(|mark| match mark.marked {
                MarkKind::Region(id) => Some((*mark, id)),
                _ => None,
            })
            .collect();
        let marks: Vec<Mark> = runs.iter().map(|(mark, _)| *mark).collect();
        let outer = enclosing(&marks);
        runs.into_iter()
            .zip(outer)
            .map(|((mark, id), outer)| Run {
                mark,
                id,
                outer,
                compile_ns: self.compile_ns_within(mark.thread, mark.time),
            })
            .collect()
    }

    /// Whether the capture holds anything of torch.compile.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Every mark, by thread and start.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Every run, by thread and start.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Runs that are in no other one.
    pub fn outermost(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.outer.is_none())
    }

    /// When each thread compiled: the union of its phases, which nest.
    pub fn compiling(&self) -> impl Iterator<Item = (u32, &Intervals)> {
        self.compiling.iter().map(|(thread, (union, _))| (*thread, union))
    }

    /// Time in ns in which threads compiled: the sum over threads of the union of their phases.
    pub fn compile_ns(&self) -> u64 {
        self.compiling().map(|(_, union)| union.len_ns()).sum()
    }

    /// How much of `time` the thread compiled, in ns.
    pub fn compile_ns_within(&self, thread: u32, time: Interval) -> u64 {
        let coverage = self.compiling.get(&thread);
        coverage.map_or(0, |(_, coverage)| coverage.within(time))
    }

    /// How much of `time` any thread compiled, in ns.
    pub fn any_compile_ns_within(&self, time: Interval) -> u64 {
        self.any.within(time)
    }

    /// Mean length in ns of the outermost runs in which nothing was compiled; `None` without any.
    pub fn mean_run_ns(&self) -> Option<u64> {
        let clean = self.outermost().filter(|run| run.compile_ns == 0);
        let (count, total) = clean.fold((0_u64, 0_u64), |(count, total), run| {
            (count + 1, total.saturating_add(run.mark.time.len()))
        });
        total.checked_div(count)
    }

    /// Searches for code whose guards hold: how many, and their time in ns.
    pub fn cache_lookups(&self) -> (u64, u64) {
        let lookups = self.marks.iter().filter(|mark| mark.marked == MarkKind::CacheLookup);
        lookups.fold((0, 0), |(count, total), mark| {
            (count + 1, total.saturating_add(mark.time.len()))
        })
    }

    /// The times of each thread in which it ran compiled code: runs, and graphs outside of them, as
    /// those of the backward pass.
    pub fn running(&self) -> BTreeMap<u32, Intervals> {
        self.union_by_thread(|marked| {
            matches!(
                marked,
                MarkKind::Region(_) | MarkKind::Function | MarkKind::Backward | MarkKind::Graph
            )
        })
    }

    /// The times of each thread in which it ran a graph, without what stands between graphs.
    pub fn in_graphs(&self) -> BTreeMap<u32, Intervals> {
        self.union_by_thread(|marked| matches!(marked, MarkKind::Function | MarkKind::Backward | MarkKind::Graph))
    }

    fn union_by_thread(&self, wanted: impl Fn(MarkKind) -> bool) -> BTreeMap<u32, Intervals> {
        let mut times: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
        for mark in self.marks.iter().filter(|mark| wanted(mark.marked)) {
            times.entry(mark.thread).or_default().push(mark.time);
        }
        let unions = times
            .into_iter()
            .map(|(thread, times)| (thread, Intervals::union_of(times)));
        unions.collect()
    }

    /// The marks of `thread` that begin within `time`.
    pub fn within(&self, thread: u32, time: Interval) -> &[Mark] {
        let before = |key: (u32, u64)| self.marks.partition_point(|mark| (mark.thread, mark.time.start) < key);
        let (first, last) = (before((thread, time.start)), before((thread, time.end)));
        self.marks.get(first..last).unwrap_or_default()
    }
}

/// The place of the innermost of `marks` around each; they are by thread, start and the longest
/// first.
pub(crate) fn enclosing(marks: &[Mark]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut outer = Vec::with_capacity(marks.len());
    for (position, mark) in marks.iter().enumerate() {
        let around = |at: &usize| {
            marks
                .get(*at)
                .filter(|outer| outer.thread == mark.thread && outer.time.end > mark.time.start)
        };
        while open.pop_if(|at| around(at).is_none()).is_some() {}
        let innermost = open
            .iter()
            .rev()
            .find(|at| around(at).is_some_and(|outer| outer.time.end >= mark.time.end));
        outer.push(innermost.copied());
        open.push(position);
    }
    outer
}
