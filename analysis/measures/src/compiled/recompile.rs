//! Code that was compiled again, because a guard of what had been compiled failed.

use std::collections::BTreeMap;

use flopwatch_model::{Category, ColumnId, RowId, Timeline, index};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{CompileActivity, CompileId, MarkKind, Run};
use crate::interval::Interval;

/// Most events that are looked at for the first operator of a run.
const MAX_EVENTS: usize = 4096;
/// Most differences of inputs that are told.
const MAX_DIFFERENCES: usize = 4;

/// Code that was compiled again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recompile {
    /// Which code.
    pub code: CompileId,
    /// Time in ns that its compilation took in the capture, backward pass included; null where it
    /// was compiled before.
    pub compile_ns: Option<u64>,
    /// Runs in the capture.
    pub runs: u64,
    /// The guard that failed. Kineto's captures never say it; `TORCH_LOGS=recompiles` does.
    pub guard: Option<String>,
    /// What is different from the code compiled just before, as far as the shapes and types of the
    /// graph's inputs tell, or of its first operator's where nothing was recorded of the graph:
    /// this is inferred. Null where shapes were not recorded or one of both did not run.
    pub changed: Option<String>,
    /// Where it was compiled, else where it first ran.
    pub place: Option<TimelineLocation>,
}

/// Time in ns that was spent on code, and the longest piece of it with its row.
pub(crate) type CompileTime = (u64, Option<(Interval, RowId)>);

impl CompileActivity {
    /// Time that was spent on each code. What nothing says the code of is under `None`.
    pub(crate) fn compile_time_by_code(&self) -> BTreeMap<Option<CompileId>, CompileTime> {
        let mut found: BTreeMap<Option<CompileId>, CompileTime> = BTreeMap::new();
        for (thread, union) in self.compiling() {
            let mut said_before = 0;
            for time in union.as_slice() {
                let code = self.code_compiled(thread, *time, said_before);
                said_before = time.end;
                let (total, longest) = found.entry(code).or_default();
                *total += time.len();
                if let Some(mark) = self.within(thread, *time).first()
                    && longest.is_none_or(|(known, _)| time.len() > known.len())
                {
                    *longest = Some((*time, mark.row));
                }
            }
        }
        found
    }

    /// The code that a thread compiled in `time`: the compiler says it just before or in it; else
    /// the next run is of it.
    fn code_compiled(&self, thread: u32, time: Interval, from: u64) -> Option<CompileId> {
        let id = |marked: MarkKind| match marked {
            MarkKind::Data(id) => Some(id),
            _ => None,
        };
        // Said by an event around the phases, just before them; else inside.
        let around = self.within(thread, Interval::new(from, time.start));
        let before = around.iter().rev().find_map(|mark| id(mark.marked));
        let inside = || self.within(thread, time).iter().find_map(|mark| id(mark.marked));
        let next = || {
            let behind = self.within(thread, Interval::new(time.end, u64::MAX)).iter();
            behind
                .map(|mark| mark.marked)
                .find_map(|marked| match marked {
                    MarkKind::Region(id) => Some(id),
                    MarkKind::CacheLookup | MarkKind::Phase | MarkKind::Backward => Some(None),
                    _ => None,
                })
                .flatten()
        };
        before.or_else(inside).or_else(next)
    }

    /// What was compiled again, by code.
    pub fn recompiles(&self, timeline: &Timeline, input: u32) -> Vec<Recompile> {
        let compile_time = self.compile_time_by_code();
        let mut first: BTreeMap<CompileId, (&Run, u64)> = BTreeMap::new();
        for run in self.runs() {
            if let Some(id) = run.id {
                first.entry(id).or_insert((run, 0)).1 += 1;
            }
        }
        let mut codes: Vec<CompileId> = first
            .keys()
            .copied()
            .chain(compile_time.keys().copied().flatten())
            .filter(|code| code.recompile > 0)
            .collect();
        codes.sort_unstable();
        codes.dedup();
        let inputs = |code: CompileId| self.inputs(timeline, first.get(&code)?.0);
        let recompiles = codes.into_iter().map(|code| {
            let compiled = compile_time.get(&Some(code));
            let run = first.get(&code);
            let compiled_at = compiled
                .and_then(|(_, longest)| *longest)
                .map(|(time, row)| TimelineLocation::new(time.start, time.end, Some(row)).of_input(input));
            let before = CompileId {
                recompile: code.recompile - 1,
                ..code
            };
            Recompile {
                code,
                compile_ns: compiled.map(|(ns, _)| *ns),
                runs: run.map_or(0, |(_, runs)| *runs),
                guard: None,
                changed: inputs(before)
                    .zip(inputs(code))
                    .and_then(|(before, now)| difference(before, now)),
                place: compiled_at.or_else(|| run.map(|(run, _)| run.mark.location(input))),
            }
        });
        recompiles.collect()
    }

    /// The inputs of the graph that `run` ran first.
    fn inputs<'a>(&self, timeline: &'a Timeline, run: &Run) -> Option<GraphInputs<'a>> {
        let (thread, time) = (run.mark.thread, run.mark.time);
        let function = self
            .within(thread, time)
            .iter()
            .find(|mark| mark.marked == MarkKind::Function);
        let (category, at, of) = if let Some(function) = function {
            (function.category, index(function.at), "input")
        } else {
            let operators = timeline.capture.events.get(&Category::CpuOp)?;
            let first = operators.start_ns.partition_point(|start| *start < time.start);
            let last = operators.start_ns.partition_point(|start| *start < time.end);
            let on_thread = |at: &usize| {
                // The thread's operators are on one row with its runs.
                operators.row.get(*at) == Some(&run.mark.row) && operators.text(ColumnId::InputShapes, *at).is_some()
            };
            let at = (first..last).take(MAX_EVENTS).find(on_thread)?;
            (Category::CpuOp, at, "first operator's input")
        };
        let events = timeline.capture.events.get(&category)?;
        Some(GraphInputs {
            shapes: events.text(ColumnId::InputShapes, at)?,
            types: events.text(ColumnId::InputTypes, at),
            of,
        })
    }
}

/// What a graph is given.
#[derive(Debug, Clone, Copy)]
struct GraphInputs<'a> {
    /// A JSON list with a list of sizes for each.
    shapes: &'a str,
    /// A JSON list with a name for each.
    types: Option<&'a str>,
    /// What they are inputs of, in words.
    of: &'static str,
}

/// How inputs differ, in words.
fn difference(before: GraphInputs<'_>, now: GraphInputs<'_>) -> Option<String> {
    let list = |text: &str| serde_json::from_str::<Vec<Value>>(text).ok();
    let (old, new) = (list(before.shapes)?, list(now.shapes)?);
    let types = || Some((list(before.types?)?, list(now.types?)?));
    let (old_types, new_types) = types().unwrap_or_default();
    let of = now.of;
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let differ = |before: &[Value], now: &[Value]| -> Vec<String> {
        let pairs = before.iter().zip(now).enumerate();
        let differ = pairs.filter(|(_, (before, now))| before != now);
        differ
            .map(|(at, (before, now))| format!("{of} {at}: {} became {}", plain(before), plain(now)))
            .collect()
    };
    let mut changes = differ(&old, &new);
    changes.extend(differ(&old_types, &new_types));
    let more = changes.len().saturating_sub(MAX_DIFFERENCES);
    changes.truncate(MAX_DIFFERENCES);
    if more > 0 {
        changes.push(format!("{more} more"));
    }
    if old.len() != new.len() {
        changes.insert(0, format!("{} inputs became {}", old.len(), new.len()));
    }
    if changes.is_empty() {
        changes.push("the shapes of inputs are the same: a value, a type, a stride or a global changed".to_owned());
    }
    Some(changes.join("; "))
}
