//! The phases of the compiler.

use std::collections::BTreeMap;

use flopwatch_model::{Timeline, index};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CompileActivity, Mark, MarkKind, TIMED, enclosing};
use crate::interval::{Interval, Intervals};

/// A phase of the compiler, all its events together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompilePhase {
    /// Its name, e.g. `compile_fx_inner`.
    pub name: String,
    /// How often it ran.
    pub calls: u64,
    /// Time in ns in which it ran, phases inside it counted in: the union per thread, summed over
    /// threads.
    pub total_ns: u64,
    /// Time in ns in which it ran and no phase inside it. These add up to the whole compile time.
    pub own_ns: u64,
    /// The longest of its events.
    pub longest: TimelineLocation,
}

impl CompileActivity {
    /// The phases, the longest own time first.
    pub fn phases(&self, timeline: &Timeline, input: u32) -> Vec<CompilePhase> {
        let marks = self.marks().iter();
        let marks: Vec<Mark> = marks.filter(|mark| mark.marked == MarkKind::Phase).copied().collect();
        let outer = enclosing(&marks);
        let mut inside: Vec<Vec<Interval>> = vec![Vec::new(); marks.len()];
        for (mark, outer) in marks.iter().zip(&outer) {
            if let Some(times) = outer.and_then(|outer| inside.get_mut(outer)) {
                times.push(mark.time);
            }
        }
        let mut found: BTreeMap<&str, (CompilePhase, BTreeMap<u32, Vec<Interval>>)> = BTreeMap::new();
        for (mark, inside) in marks.iter().zip(inside) {
            let events = timeline.capture.events.get(&mark.category);
            let name = events.map_or("", |events| events.name_of(index(mark.at)));
            let name = name.strip_suffix(TIMED).unwrap_or(name);
            let (phase, times) = found.entry(name).or_insert_with(|| {
                let phase = CompilePhase {
                    name: name.to_owned(),
                    calls: 0,
                    total_ns: 0,
                    own_ns: 0,
                    longest: mark.location(input),
                };
                (phase, BTreeMap::new())
            });
            phase.calls += 1;
            phase.own_ns += mark.time.len() - Intervals::union_of(inside).clip(mark.time).len_ns();
            if mark.time.len() > phase.longest.end_ns - phase.longest.start_ns {
                phase.longest = mark.location(input);
            }
            times.entry(mark.thread).or_default().push(mark.time);
        }
        let phases = found.into_values().map(|(phase, times)| CompilePhase {
            total_ns: times
                .into_values()
                .map(|times| Intervals::union_of(times).len_ns())
                .sum(),
            ..phase
        });
        let mut phases: Vec<CompilePhase> = phases.collect();
        phases.sort_by_key(|phase| std::cmp::Reverse((phase.own_ns, phase.total_ns)));
        phases
    }
}
