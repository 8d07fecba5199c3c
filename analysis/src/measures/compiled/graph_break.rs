//! Where the program left a compiled graph, and why.
//!
//! A function that cannot be compiled as one graph is compiled as several: the compiled code runs the first graph, then what cannot be compiled, and calls a function
//! for the rest (`torch_dynamo_resume_in_NAME_at_LINE`), which is compiled code again. Its run lies inside the first one's. So every run inside another one
//! stands for a graph break, and what ran on the thread between the graph's end and the inner run is what broke it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{CompileId, Compiled, Function, Marked, Run};
use crate::measures::enclosing::Threads;
use crate::measures::interval::Interval;
use crate::model::{Category, ColumnId, Events, Timeline};
use crate::page::Place;

/// Most runs of one break that are looked at for its reason.
const MOST_RUNS: u64 = 16;
/// Most events of a category that are looked at between a graph and the next.
const MOST_EVENTS: usize = 4096;
/// Most marks before a run that are looked at for the end of the graph.
const MOST_MARKS: usize = 256;
/// What Python calls the rest of a function behind a break.
const RESUME: &str = "torch_dynamo_resume_in_";

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
    /// Another call of Python that is not compiled.
    PythonCall,
    /// An operator that is not compiled.
    Operator,
    /// The capture does not say.
    Unknown,
}

impl BreakReason {
    /// In words.
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

    /// What to do.
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

    /// Of an operator that ran between graphs.
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

    /// Of a function of Python that ran between graphs.
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

/// Where one compiled graph ends and another begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphBreak {
    /// The code whose graph ended, as it was compiled first in the capture.
    pub broken: Option<CompileId>,
    /// The code that goes on.
    pub resumed: Option<CompileId>,
    /// Why.
    pub reason: BreakReason,
    /// What ran between the graphs, e.g. `aten::item`; empty where nothing was recorded.
    pub seen: String,
    /// Where it goes on, e.g. `train.py(10): forward`; null without Python stacks.
    pub location: Option<String>,
    /// What to do.
    pub suggestion: String,
    /// How often the program went through it in the capture.
    pub runs: u64,
    /// Time in ns between the graphs over these runs, without compilation.
    pub between_ns: u64,
    /// The first of them: from the end of the graph to the start of the next.
    pub place: Place,
}

impl Compiled {
    /// The breaks, the most time between graphs first. Functions count once, however often they were compiled again.
    pub fn graph_breaks(&self, timeline: &Timeline, threads: &Threads, input: u32) -> Vec<GraphBreak> {
        let mut found: BTreeMap<(Option<Function>, Option<Function>), GraphBreak> = BTreeMap::new();
        for run in self.runs() {
            let Some(outer) = run.outer.and_then(|outer| self.runs().get(outer)) else {
                continue;
            };
            let between = self.between(outer, run);
            let idle = between.len() - self.compile_ns_within(run.mark.thread, between);
            let function = |run: &Run| run.id.map(CompileId::function);
            let known = found
                .entry((function(outer), function(run)))
                .or_insert_with(|| GraphBreak {
                    broken: outer.id,
                    resumed: run.id,
                    reason: BreakReason::Unknown,
                    seen: String::new(),
                    location: None,
                    suggestion: String::new(),
                    runs: 0,
                    between_ns: 0,
                    place: Place {
                        input,
                        start_ns: between.start,
                        end_ns: between.end,
                        row: Some(run.mark.row),
                    },
                });
            known.runs += 1;
            known.between_ns += idle;
            if known.runs <= MOST_RUNS {
                if known.reason == BreakReason::Unknown
                    && let Some((reason, seen)) = self.reason(timeline, threads, (outer, run), between)
                {
                    known.reason = reason;
                    known.seen = seen;
                }
                if known.location.is_none() {
                    known.location = location(timeline, threads, run);
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

    /// From the end of what `outer` ran compiled before `run`, up to `run`.
    fn between(&self, outer: &Run, run: &Run) -> Interval {
        let before = Interval::new(outer.mark.time.start, run.mark.time.start);
        let marks = self.within(outer.mark.thread, before).iter().rev().take(MOST_MARKS);
        let compiled = marks.filter(|mark| {
            mark.time.end <= run.mark.time.start
                && matches!(
                    mark.marked,
                    Marked::Function | Marked::Graph | Marked::Prologue | Marked::Region(_)
                )
                && (mark.category, mark.at) != (outer.mark.category, outer.mark.at)
        });
        let end = compiled.map(|mark| mark.time.end).max();
        Interval::new(end.unwrap_or(outer.mark.time.start), run.mark.time.start)
    }

    /// What ran in `between` and is no part of torch.compile itself.
    fn reason(
        &self,
        timeline: &Timeline,
        threads: &Threads,
        (outer, run): (&Run, &Run),
        between: Interval,
    ) -> Option<(BreakReason, String)> {
        // Before the search for the next code, and before that is compiled.
        let own = self.within(run.mark.thread, between).iter();
        let own = own.filter(|mark| matches!(mark.marked, Marked::CacheLookup | Marked::Phase | Marked::Compiler));
        let until = own.map(|mark| mark.time.start).min().unwrap_or(between.end);
        let eager = Interval::new(between.start, until);
        let operators = timeline.capture.events.get(&Category::CpuOp);
        let operator = operators.and_then(|events| {
            let mut on_thread = beginning_in(events, eager, (threads, run.mark.thread));
            let wanted = on_thread.find(|at| Marked::of(events.name_of(*at)).is_none())?;
            let name = events.name_of(wanted);
            Some((BreakReason::of_operator(name), name.to_owned()))
        });
        let function = || {
            let name = called_by(timeline, threads, outer, eager)?;
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

/// What the function that `run` runs calls in `time` by itself, not by what calls its graphs.
fn called_by<'a>(timeline: &'a Timeline, threads: &Threads, run: &Run, time: Interval) -> Option<&'a str> {
    let functions = timeline.capture.events.get(&Category::PythonFunction)?;
    let (ids, parents) = (
        functions.column(ColumnId::PythonId)?,
        functions.column(ColumnId::PythonParent)?,
    );
    let of = (threads, run.mark.thread);
    let body = ids.get(beginning_in(functions, run.mark.time, of).next()?)?;
    let called = beginning_in(functions, time, of).find(|at| parents.get(*at) == Some(body))?;
    Some(functions.name_of(called))
}

/// Places of the events of a thread that begin in `time`.
fn beginning_in<'a>(
    events: &'a Events,
    time: Interval,
    (threads, thread): (&'a Threads, u32),
) -> impl Iterator<Item = usize> + 'a {
    let first = events.start_ns.partition_point(|start| *start < time.start);
    let last = events.start_ns.partition_point(|start| *start < time.end);
    let places = (first..last).take(MOST_EVENTS);
    places.filter(move |at| {
        let row = events.row.get(*at);
        row.and_then(|row| threads.of_row(*row)) == Some(thread)
    })
}

/// `<built-in method item of Tensor object>` of the same with the object's address.
fn without_address(name: &str) -> &str {
    name.split_once(" object at 0x").map_or(name, |(before, _)| before)
}
