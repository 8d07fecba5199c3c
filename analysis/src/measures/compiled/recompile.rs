//! Code that was compiled again, because a guard of what had been compiled failed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{CompileId, Compiled, Marked, Run};
use crate::measures::interval::Interval;
use crate::model::{ColumnId, Timeline, index};
use crate::page::Place;

/// Most differences of shapes that are told.
const MOST_DIFFERENCES: usize = 4;

/// Code that was compiled again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recompile {
    /// Which code.
    pub code: CompileId,
    /// Time in ns that its compilation took in the capture, backward pass included; null where it was compiled before.
    pub compile_ns: Option<u64>,
    /// Runs in the capture.
    pub runs: u64,
    /// The guard that failed. Kineto's captures never say it; `TORCH_LOGS=recompiles` does.
    pub guard: Option<String>,
    /// What is different from the code compiled just before, as far as the shapes of the graph's inputs tell: this is inferred. Null where shapes were not
    /// recorded or one of both did not run.
    pub changed: Option<String>,
    /// Where it was compiled, else where it first ran.
    pub place: Option<Place>,
}

/// Time in ns that was spent on code, and the longest piece of it with its row.
pub(crate) type CompileTime = (u64, Option<(Interval, u32)>);

impl Compiled {
    /// Time that was spent on each code. What nothing says the code of is under `None`.
    pub(crate) fn compile_time_by_code(&self) -> BTreeMap<Option<CompileId>, CompileTime> {
        let mut found: BTreeMap<Option<CompileId>, CompileTime> = BTreeMap::new();
        for (thread, union) in self.compiling() {
            let mut said_before = 0;
            for time in union.as_slice() {
                let code = self.code_compiled(thread, *time, said_before);
                said_before = time.end;
                let row = self.within(thread, *time).first().map_or(0, |mark| mark.row);
                let (total, longest) = found.entry(code).or_default();
                *total += time.len();
                if longest.is_none_or(|(known, _)| time.len() > known.len()) {
                    *longest = Some((*time, row));
                }
            }
        }
        found
    }

    /// The code that a thread compiled in `time`: the compiler says it just before or in it; else the next run is of it.
    fn code_compiled(&self, thread: u32, time: Interval, from: u64) -> Option<CompileId> {
        let id = |marked: Marked| match marked {
            Marked::Data(id) => Some(id),
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
                    Marked::Region(id) => Some(id),
                    Marked::CacheLookup | Marked::Phase | Marked::Backward => Some(None),
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
        let shapes = |code: CompileId| self.input_shapes(timeline, first.get(&code)?.0);
        let told = codes.into_iter().map(|code| {
            let compiled = compile_time.get(&Some(code));
            let run = first.get(&code);
            let compiled_at = compiled.and_then(|(_, longest)| *longest).map(|(time, row)| Place {
                input,
                start_ns: time.start,
                end_ns: time.end,
                row: Some(row),
            });
            let before = CompileId {
                recompile: code.recompile - 1,
                ..code
            };
            Recompile {
                code,
                compile_ns: compiled.map(|(ns, _)| *ns),
                runs: run.map_or(0, |(_, runs)| *runs),
                guard: None,
                changed: shapes(before)
                    .zip(shapes(code))
                    .and_then(|(before, now)| difference(before, now)),
                place: compiled_at.or_else(|| run.map(|(run, _)| run.mark.place(input))),
            }
        });
        told.collect()
    }

    /// Shapes of the inputs of the graph that `run` ran first.
    fn input_shapes<'a>(&self, timeline: &'a Timeline, run: &Run) -> Option<&'a str> {
        let marks = self.within(run.mark.thread, run.mark.time);
        let function = marks.iter().find(|mark| mark.marked == Marked::Function)?;
        let events = timeline.capture.events.get(&function.category)?;
        events.text(ColumnId::InputShapes, index(function.at))
    }
}

/// How the shapes of inputs differ, in words.
fn difference(before: &str, now: &str) -> Option<String> {
    let list = |text: &str| serde_json::from_str::<Vec<Value>>(text).ok();
    let (before, now) = (list(before)?, list(now)?);
    let differ = before
        .iter()
        .zip(&now)
        .enumerate()
        .filter(|(_, (before, now))| before != now);
    let told: Vec<String> = differ
        .clone()
        .take(MOST_DIFFERENCES)
        .map(|(at, (before, now))| format!("input {at}: {before} became {now}"))
        .collect();
    let more = differ.count() - told.len();
    let mut told = told.join("; ");
    if more > 0 {
        told = format!("{told}; {more} more");
    }
    if before.len() != now.len() {
        let number = format!("{} inputs became {}", before.len(), now.len());
        told = if told.is_empty() {
            number
        } else {
            format!("{number}; {told}")
        };
    }
    if told.is_empty() {
        told.push_str("the shapes of inputs are the same: a value, a type, a stride or a global changed");
    }
    Some(told)
}
