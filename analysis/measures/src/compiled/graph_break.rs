//! Graph breaks of `torch.compile`: where the program left a compiled graph, and why.
//!
//! A function that cannot be compiled as one graph is compiled as several: the compiled code runs
//! the first graph, then what cannot be compiled, and calls a function for the rest
//! (`torch_dynamo_resume_in_NAME_at_LINE`), which is compiled code again. Its run lies inside the
//! first one's. So every run inside another one stands for a graph break, and what ran on the
//! thread between the graph's end and the inner run is what broke it.
//!
//! A function that breaks in a loop or a `with` is given up: it runs uncompiled, and what it calls
//! is compiled, so that its graphs run side by side. So do functions that are compiled apart. The
//! entry to compiled code tells them apart, a function of Python of `torch.compile`: what was given
//! up has one for all, and what was compiled apart has one each.

use std::collections::BTreeMap;

use flopwatch_model::{Category, ColumnId, Events, Timeline, index};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CompileActivity, CompileId, Function, Mark, MarkKind, Run, enclosing};
use crate::enclosing::Threads;
use crate::interval::Interval;

/// Maximum number of runs of one graph break that are searched for its reason.
const MAX_RUNS: u64 = 16;
/// Maximum number of events of a category that are searched between two graphs.
const MAX_EVENTS: usize = 4096;
/// Maximum number of marks before a run that are searched for the end of the graph.
const MAX_MARKS: usize = 256;
/// Prefix of the name that Python has for the rest of a function after a graph break.
const RESUME: &str = "torch_dynamo_resume_in_";

/// Graph breaks by the function whose graph ended, the function that goes on, and whether the
/// function around both was given up.
type Breaks = BTreeMap<(Option<Function>, Option<Function>, bool), GraphBreak>;

/// Why a graph ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakReason {
    /// A branch depends on the values of a tensor.
    DataDependentBranch,
    /// A value of a tensor is read by Python: `.item()`, `.tolist()`.
    ScalarRead,
    /// The shape of a result depends on the values of a tensor: `nonzero`, a mask as index.
    DataDependentShape,
    /// Something is printed or logged.
    Output,
    /// A call of a Python function, other than those above, that cannot be compiled.
    PythonCall,
    /// An operator that cannot be compiled.
    Operator,
    /// The capture does not show the reason.
    Unknown,
}

impl BreakReason {
    /// The reason in a few words, for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::DataDependentBranch => "a branch depends on the values of a tensor",
            Self::ScalarRead => "Python reads a value of a tensor",
            Self::DataDependentShape => "a shape depends on the values of a tensor",
            Self::Output => "something is printed or logged",
            Self::PythonCall => "Python calls what is not compiled",
            Self::Operator => "an operator runs that is not compiled",
            Self::Unknown => "unknown: nothing was recorded between the graphs",
        }
    }

    /// What a user can change so that the graph does not end here, as a sentence.
    pub const fn suggestion(self) -> &'static str {
        match self {
            Self::DataDependentBranch => {
                "Write the branch as torch.where or torch.cond, or decide it outside the compiled function."
            }
            Self::ScalarRead => {
                "Keep the value a tensor; where Python needs it, set torch._dynamo.config.capture_scalar_outputs = True, or read it outside the compiled function."
            }
            Self::DataDependentShape => {
                "Set torch._dynamo.config.capture_dynamic_output_shape_ops = True, or keep the shape fixed: torch.where instead of a mask as index."
            }
            Self::Output => {
                "Remove it from the compiled function, or name it in torch._dynamo.config.reorderable_logging_functions."
            }
            Self::PythonCall => {
                "Move the call out of the compiled function, or make it an operator with torch.library.custom_op."
            }
            Self::Operator => {
                "Register the operator with torch.library.custom_op and register_fake, or remove torch.compiler.disable around it."
            }
            Self::Unknown => {
                "Run with TORCH_LOGS=graph_breaks, which names the reason and the line; profile with with_stack=True, and the capture has the line."
            }
        }
    }

    /// The reason that an operator between two graphs stands for.
    fn of_operator(name: &str) -> Self {
        match name {
            "aten::is_nonzero" | "aten::equal" | "aten::allclose" => Self::DataDependentBranch,
            "aten::item" | "aten::_local_scalar_dense" | "aten::tolist" => Self::ScalarRead,
            "aten::nonzero" | "aten::masked_select" | "aten::_unique2" | "aten::unique_consecutive" => {
                Self::DataDependentShape
            }
            _ => Self::Operator,
        }
    }

    /// The reason that a Python function between two graphs stands for.
    fn of_function(name: &str) -> Self {
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if is(&[
            "built-in function print",
            "logging/__init__.py",
            "warnings.warn",
            "warnings.py",
        ]) {
            Self::Output
        } else if is(&["built-in method item ", "built-in method tolist "]) {
            Self::ScalarRead
        } else {
            Self::PythonCall
        }
    }
}

impl GraphBreak {
    fn explain(&mut self, reason: Option<(BreakReason, String)>) {
        if let Some((reason, seen)) = reason {
            self.reason = reason;
            self.seen = seen;
        }
    }
}

/// A graph break: where one compiled graph ends and the next begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphBreak {
    /// The code whose graph ended, as it was compiled first in the capture.
    pub broken: Option<CompileId>,
    /// The compiled code that the program goes on with after the break.
    pub resumed: Option<CompileId>,
    /// Why the graph ended.
    pub reason: BreakReason,
    /// What ran between the graphs, e.g. `aten::item`; empty where nothing was recorded.
    pub seen: String,
    /// Source line on which the program goes on after the break, e.g. `train.py(10): forward`; of a
    /// function that was given up, that function. Null without Python stacks.
    pub location: Option<String>,
    /// Whether the function was given up: it runs uncompiled, and its graphs are those of functions
    /// that it calls. Only Python stacks tell.
    pub is_given_up: bool,
    /// What a user can change so that the graph does not end here, as a sentence.
    pub suggestion: String,
    /// How often the program went through the break in the capture.
    pub runs: u64,
    /// Sum in ns of the time between the two graphs over all `runs`, without compilation.
    pub between_ns: u64,
    /// The first of the `runs` in the timeline: from the end of the graph to the start of the next.
    pub place: TimelineLocation,
}

impl CompileActivity {
    /// The graph breaks of the capture, the longest `between_ns` first. A break is listed once,
    /// however often its functions were compiled again. `input` is the capture's index for
    /// [`GraphBreak::place`].
    pub fn graph_breaks(&self, timeline: &Timeline, threads: &Threads, input: u32) -> Vec<GraphBreak> {
        let mut found: Breaks = BTreeMap::new();
        for run in self.runs() {
            let Some(outer) = run.outer.and_then(|outer| self.runs().get(outer)) else {
                continue;
            };
            let (between, knows_graph) = self.between(outer, run);
            let known = self.count(&mut found, (outer, run), between, input, false);
            if known.runs <= MAX_RUNS {
                if known.reason == BreakReason::Unknown {
                    let body = || body(timeline, threads, outer);
                    known.explain(self.reason(timeline, threads, (body, run), (between, knows_graph)));
                }
                if known.location.is_none() {
                    known.location = location(timeline, threads, run);
                }
            }
        }
        for (entry, before, run) in self.adjacent_runs(timeline, threads) {
            let between = Interval::new(before.mark.time.end, run.mark.time.start);
            let known = self.count(&mut found, (before, run), between, input, true);
            if known.runs <= MAX_RUNS {
                let around = || function_around(timeline, threads, entry, (before, run));
                if known.reason == BreakReason::Unknown {
                    let body = || around().map(|(id, _)| id);
                    known.explain(self.reason(timeline, threads, (body, run), (between, true)));
                }
                if known.location.is_none() {
                    known.location = around().map(|(_, name)| name.to_owned());
                }
            }
        }
        let mut breaks: Vec<GraphBreak> = found.into_values().collect();
        for one in &mut breaks {
            one.reason.suggestion().clone_into(&mut one.suggestion);
        }
        breaks.sort_by_key(|one| (std::cmp::Reverse(one.between_ns), one.place.start_ns));
        breaks
    }

    /// Adds one run to a graph break.
    fn count<'a>(
        &self,
        found: &'a mut Breaks,
        (broken, resumed): (&Run, &Run),
        between: Interval,
        input: u32,
        is_given_up: bool,
    ) -> &'a mut GraphBreak {
        let function = |run: &Run| run.id.map(CompileId::function);
        let known = found
            .entry((function(broken), function(resumed), is_given_up))
            .or_insert_with(|| GraphBreak {
                broken: broken.id,
                resumed: resumed.id,
                reason: BreakReason::Unknown,
                seen: String::new(),
                location: None,
                is_given_up,
                suggestion: String::new(),
                runs: 0,
                between_ns: 0,
                place: TimelineLocation::new(between.start, between.end, Some(resumed.mark.row)).of_input(input),
            });
        known.runs += 1;
        known.between_ns += between.len() - self.compile_ns_within(resumed.mark.thread, between);
        known
    }

    /// Outermost runs one after the other in one entry to compiled code, with the entry.
    fn adjacent_runs(&self, timeline: &Timeline, threads: &Threads) -> Vec<(Interval, &Run, &Run)> {
        let mut entries = entries(timeline, threads);
        if entries.is_empty() {
            return Vec::new();
        }
        let runs: BTreeMap<(Category, u32), &Run> = self
            .outermost()
            .map(|run| ((run.mark.category, run.mark.at), run))
            .collect();
        entries.extend(runs.values().map(|run| run.mark));
        entries.sort_by_key(|mark| (mark.thread, mark.time.start, std::cmp::Reverse(mark.time.end)));
        let outer = enclosing(&entries);
        let mut last: BTreeMap<usize, &Run> = BTreeMap::new();
        let mut pairs = Vec::new();
        for (mark, outer) in entries.iter().zip(outer) {
            let run = runs.get(&(mark.category, mark.at)).copied();
            if let Some((run, entry)) = run.zip(outer)
                && let Some(before) = last.insert(entry, run)
                && let Some(entry) = entries.get(entry)
            {
                pairs.push((entry.time, before, run));
            }
        }
        pairs
    }

    /// From the end of what `outer` ran compiled before `run`, up to `run`, and whether the capture
    /// says where that ended: operators of a graph that no backend compiled look like those behind
    /// it.
    fn between(&self, outer: &Run, run: &Run) -> (Interval, bool) {
        let before = Interval::new(outer.mark.time.start, run.mark.time.start);
        let marks = self.within(outer.mark.thread, before).iter().rev().take(MAX_MARKS);
        let compiled = marks.filter(|mark| {
            mark.time.end <= run.mark.time.start
                && matches!(
                    mark.marked,
                    MarkKind::Function
                        | MarkKind::Graph
                        | MarkKind::PythonGraph
                        | MarkKind::Prologue
                        | MarkKind::Region(_)
                )
                && (mark.category, mark.at) != (outer.mark.category, outer.mark.at)
        });
        let (mut end, mut knows_graph) = (outer.mark.time.start, false);
        for mark in compiled {
            end = end.max(mark.time.end);
            knows_graph |= mark.marked != MarkKind::Prologue;
        }
        (Interval::new(end, run.mark.time.start), knows_graph)
    }

    /// What ran in `between` and is no part of torch.compile itself.
    fn reason(
        &self,
        timeline: &Timeline,
        threads: &Threads,
        (body, run): (impl Fn() -> Option<u64>, &Run),
        (between, knows_graph): (Interval, bool),
    ) -> Option<(BreakReason, String)> {
        // Before the search for the next code, and before that is compiled.
        let own = self.within(run.mark.thread, between).iter();
        let own = own.filter(|mark| {
            matches!(
                mark.marked,
                MarkKind::CacheLookup | MarkKind::Phase | MarkKind::Compiler
            )
        });
        let until = own.map(|mark| mark.time.start).min().unwrap_or(between.end);
        let eager = Interval::new(between.start, until);
        let operators = timeline.capture.events.get(&Category::CpuOp);
        let operator = operators.and_then(|events| {
            let mut on_thread = beginning_in(events, eager, (threads, run.mark.thread));
            let wanted = on_thread.find(|at| {
                let name = events.name_of(*at);
                MarkKind::of(name).is_none() && (knows_graph || BreakReason::of_operator(name) != BreakReason::Operator)
            })?;
            let name = events.name_of(wanted);
            Some((BreakReason::of_operator(name), name.to_owned()))
        });
        let function = || {
            let name = called_by(timeline, (threads, run.mark.thread), body()?, eager)?;
            Some((BreakReason::of_function(name), without_address(name).to_owned()))
        };
        // A call of Python says less than the operator that it calls, unless that is any operator.
        match operator {
            Some((BreakReason::Operator, name)) => function()
                .filter(|(reason, _)| *reason != BreakReason::PythonCall)
                .or(Some((BreakReason::Operator, name))),
            Some(known) => Some(known),
            None => function(),
        }
    }
}

/// The line on which a function goes on behind a break, as Python's tracer has it.
fn location(timeline: &Timeline, threads: &Threads, run: &Run) -> Option<String> {
    let functions = timeline.capture.events.get(&Category::PythonFunction)?;
    let mut inside = beginning_in(functions, run.mark.time, (threads, run.mark.thread));
    let name = functions.name_of(inside.next()?);
    let (file, function) = name.split_once(": ")?;
    let function = function.strip_prefix(RESUME)?;
    let (function, _) = function.rsplit_once("_at_")?;
    Some(format!("{file}: {function}"))
}

/// Entries to compiled code: calls of what `torch.compile` made of a function. Until `PyTorch` 2.5
/// they had the name that `torch.compiler.disable` still has.
fn entries(timeline: &Timeline, threads: &Threads) -> Vec<Mark> {
    let Some(functions) = timeline.capture.events.get(&Category::PythonFunction) else {
        return Vec::new();
    };
    let is_entry = |name: &String| {
        name.contains("torch/_dynamo/eval_frame.py(")
            && (name.ends_with(": compile_wrapper") || name.ends_with(": _fn"))
    };
    let known: Vec<bool> = functions.names.iter().map(is_entry).collect();
    let mut entries = Vec::new();
    for (at, (name, row)) in (0_u32..).zip(functions.name.iter().zip(&functions.row)) {
        if known.get(name.index()) == Some(&true)
            && let Some(thread) = threads.of_row(*row)
        {
            entries.push(Mark {
                marked: MarkKind::Compiler,
                time: Interval::of(functions, index(at)),
                row: *row,
                thread,
                category: Category::PythonFunction,
                at,
            });
        }
    }
    entries
}

/// The innermost function of Python within `entry` around two runs: its id and name.
fn function_around<'a>(
    timeline: &'a Timeline,
    threads: &Threads,
    entry: Interval,
    (before, run): (&Run, &Run),
) -> Option<(u64, &'a str)> {
    let functions = timeline.capture.events.get(&Category::PythonFunction)?;
    let ids = functions.column(ColumnId::PythonId)?;
    let ahead = Interval::new(entry.start, before.mark.time.start);
    let around = beginning_in(functions, ahead, (threads, run.mark.thread))
        .filter(|at| functions.end_ns(*at) >= run.mark.time.end && functions.end_ns(*at) < entry.end);
    let innermost = around.last()?;
    Some((ids.get(innermost)?, functions.name_of(innermost)))
}

/// The Python id of the function that `run` runs.
fn body(timeline: &Timeline, threads: &Threads, run: &Run) -> Option<u64> {
    let functions = timeline.capture.events.get(&Category::PythonFunction)?;
    let ids = functions.column(ColumnId::PythonId)?;
    ids.get(beginning_in(functions, run.mark.time, (threads, run.mark.thread)).next()?)
}

/// What the function with the id `body` calls in `time` by itself, not by what calls its graphs.
fn called_by<'a>(timeline: &'a Timeline, of: (&'a Threads, u32), body: u64, time: Interval) -> Option<&'a str> {
    let functions = timeline.capture.events.get(&Category::PythonFunction)?;
    let parents = functions.column(ColumnId::PythonParent)?;
    let called = beginning_in(functions, time, of).find(|at| parents.get(*at) == Some(body))?;
    Some(functions.name_of(called))
}

/// Indices of the events of a thread that begin in `time`, at most [`MAX_EVENTS`].
fn beginning_in<'a>(
    events: &'a Events,
    time: Interval,
    (threads, thread): (&'a Threads, u32),
) -> impl Iterator<Item = usize> + 'a {
    let first = events.start_ns.partition_point(|start| *start < time.start);
    let last = events.start_ns.partition_point(|start| *start < time.end);
    let candidates = (first..last).take(MAX_EVENTS);
    candidates.filter(move |at| {
        let row = events.row.get(*at);
        row.and_then(|row| threads.of_row(*row)) == Some(thread)
    })
}

/// `<built-in method item of Tensor object>` of the same with the object's address.
fn without_address(name: &str) -> &str {
    name.split_once(" object at 0x").map_or(name, |(before, _)| before)
}
