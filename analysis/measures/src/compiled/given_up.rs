//! Functions that Dynamo began to compile and gave up.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::{Timeline, index};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CompileActivity, CompileId, MarkKind};

/// The compilation of a function, from its first trace to its guards (PyTorch 2.6 and later).
const BEGUN: &str = "entire_frame_compile_data: ";
/// The last phase of one that gives code.
const DONE: &str = "build_guards_data: ";

/// A function that Dynamo gave up in the capture: it runs uncompiled from then on, and functions
/// that it calls are compiled by themselves. A graph break in a loop or a `with` does that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GivenUp {
    /// The number that its code would have had.
    pub code: CompileId,
    /// Time in ns that the attempt took.
    pub compile_ns: u64,
    /// The longest piece of it.
    pub place: Option<TimelineLocation>,
}

impl CompileActivity {
    /// What was given up, by code. PyTorch counts the same as `total` less `ok` of
    /// `counters["frames"]`.
    pub fn given_up(&self, timeline: &Timeline, input: u32) -> Vec<GivenUp> {
        let (mut begun, mut done) = (BTreeSet::new(), BTreeSet::new());
        for mark in self.marks() {
            let name = || {
                let events = timeline.capture.events.get(&mark.category);
                events.map_or("", |events| events.name_of(index(mark.at)))
            };
            match mark.marked {
                MarkKind::Data(id) if name().starts_with(BEGUN) => drop(begun.insert(id)),
                MarkKind::Data(id) if name().starts_with(DONE) => drop(done.insert(id)),
                MarkKind::Region(Some(id)) => drop(done.insert(id)),
                _ => {}
            }
        }
        let times: BTreeMap<_, _> = self.compile_time_by_code();
        let given_up = begun.difference(&done).map(|code| {
            let (compile_ns, longest) = times.get(&Some(*code)).copied().unwrap_or_default();
            GivenUp {
                code: *code,
                compile_ns,
                place: longest
                    .map(|(time, row)| TimelineLocation::new(time.start, time.end, Some(row)).of_input(input)),
            }
        });
        given_up.collect()
    }
}
