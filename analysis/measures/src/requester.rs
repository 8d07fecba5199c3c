//! Who asked an allocator for memory: the operator, the function of Python, the range and the call
//! of the CUDA API around it.
//!
//! Of a framework the thread that asked is known, and what runs on it then. The driver is asked by
//! a call, which the allocation names.

use std::collections::HashMap;

use flopwatch_model::{Allocation, Category, NameId, RowId, Timeline, Track, index};
use flopwatch_report::page::TableBuilder;
use schemars::JsonSchema;
use serde::Serialize;

use crate::holder::{HolderQuery, innermost, row_on};
use crate::interval::Interval;

/// Categories that [`Requesters::of`] reads; rows, names and correlations are needed too.
pub const REQUESTER_CATEGORIES: &[Category] = &[
    Category::CudaApi,
    Category::CpuOp,
    Category::PythonFunction,
    Category::NvtxRange,
    Category::Annotation,
];

/// Operators whose only work is to get memory: who asks is the operator around them.
const GETS_MEMORY: [&str; 10] = [
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::empty_strided_cuda",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::resize_",
    "aten::to",
    "aten::_to_copy",
    "aten::clone",
];

/// Index of an event that requested memory among the events of its category; `None` for no event.
type EventIndex = Option<u32>;

/// Who asked for one allocation, as places among the events of a category.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requester {
    /// Among [`Category::CpuOp`].
    pub operator: EventIndex,
    /// Among [`Category::PythonFunction`].
    pub function: EventIndex,
    /// Among [`Category::NvtxRange`].
    pub range: EventIndex,
    /// Among [`Category::Annotation`].
    pub annotation: EventIndex,
    /// Among [`Category::CudaApi`].
    pub call: EventIndex,
}

/// Who asked, by name. A part that is not known is null.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "MemoryRequester")]
pub struct RequesterName {
    /// The innermost operator that does more than to get memory.
    pub operator: Option<String>,
    /// The innermost function of Python that is not built in.
    pub function: Option<String>,
    /// The innermost NVTX range or annotation.
    pub range: Option<String>,
    /// The call of the CUDA API.
    pub call: Option<String>,
}

impl RequesterName {
    /// For people: what is known of it, the operator first.
    pub fn shown(&self) -> Option<String> {
        let parts = [&self.operator, &self.function, &self.range, &self.call];
        let known: Vec<&str> = parts.into_iter().filter_map(Option::as_deref).collect();
        (!known.is_empty()).then(|| known.join(" in "))
    }

    /// Adds a column for each part of who asked.
    pub fn columns<'a, T: Copy>(table: TableBuilder<T>, requester: impl Fn(T) -> &'a Self) -> TableBuilder<T> {
        table
            .column("Operator", |row| requester(row).operator.as_deref())
            .column("Function", |row| requester(row).function.as_deref())
            .column("Range", |row| requester(row).range.as_deref())
            .column("Call", |row| requester(row).call.as_deref())
    }
}

/// Who asked for each of some allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requesters {
    by_allocation: HashMap<u32, Requester>,
}

impl Requesters {
    /// Of those at the places `wanted` among the allocations of `timeline`.
    pub fn of(timeline: &Timeline, wanted: impl IntoIterator<Item = u32>) -> Self {
        let capture = &timeline.capture;
        let wanted = wanted.into_iter();
        let asked: Vec<(u32, &Allocation)> = wanted
            .filter_map(|at| Some((at, capture.allocations.get(index(at))?)))
            .collect();
        let mut found = Self::default();
        let mut queries = Questions::of(timeline, &asked);
        for (at, call) in &queries.calls {
            found.by_allocation.entry(*at).or_default().call = Some(*call);
        }
        queries.asked.sort_by_key(|(_, query)| query.time.start);
        for (category, track) in TRACKS {
            let Some(events) = capture.events.get(&category) else {
                continue;
            };
            let left_out: Vec<bool> = events.names.iter().map(|name| is_left_out(category, name)).collect();
            let is_kept = |at: usize| {
                let name = events.name.get(at).and_then(|name| left_out.get(name.index()));
                !name.copied().unwrap_or(false)
            };
            let rows = row_on(timeline, track);
            let on_track = queries.asked.iter().filter_map(|(at, query)| {
                let row = (*rows.get(query.row.index())?)?;
                Some((*at, HolderQuery { row, ..*query }))
            });
            let (events_at, on_track): (Vec<u32>, Vec<HolderQuery>) = on_track.unzip();
            for (at, answer) in events_at.iter().zip(innermost(events, is_kept, &on_track).iter()) {
                if let Some(answer) = answer {
                    let requester = found.by_allocation.entry(*at).or_default();
                    *requester.slot(category) = Some(answer.number());
                }
            }
        }
        found
    }

    /// Who asked for the allocation at `at`; nothing known where it was not wanted.
    pub fn get(&self, at: u32) -> Requester {
        self.by_allocation.get(&at).copied().unwrap_or_default()
    }

    /// Whether somebody is known of any allocation.
    pub fn is_empty(&self) -> bool {
        self.by_allocation.is_empty()
    }
}

/// Categories, each with its track, whose events may have asked for memory.
const TRACKS: [(Category, Track); 4] = [
    (Category::CpuOp, Track::CpuOp),
    (Category::PythonFunction, Track::Python),
    (Category::NvtxRange, Track::Nvtx),
    (Category::Annotation, Track::Annotation),
];

/// Whether who asks is rather what is around an event of that name.
fn is_left_out(category: Category, name: &str) -> bool {
    match category {
        Category::CpuOp => GETS_MEMORY.contains(&name),
        Category::PythonFunction => name.starts_with("<built-in") || name.starts_with("$<built-in"),
        _ => false,
    }
}

impl Requester {
    fn slot(&mut self, category: Category) -> &mut EventIndex {
        match category {
            Category::CpuOp => &mut self.operator,
            Category::PythonFunction => &mut self.function,
            Category::NvtxRange => &mut self.range,
            Category::Annotation => &mut self.annotation,
            _ => &mut self.call,
        }
    }

    /// By name.
    pub fn name(&self, timeline: &Timeline) -> RequesterName {
        let name = |category: Category, event: EventIndex| {
            let events = timeline.capture.events.get(&category)?;
            let name = events.name_of(index(event?));
            (!name.is_empty()).then(|| name.to_owned())
        };
        RequesterName {
            operator: name(Category::CpuOp, self.operator),
            function: name(Category::PythonFunction, self.function),
            range: name(Category::NvtxRange, self.range).or_else(|| name(Category::Annotation, self.annotation)),
            call: name(Category::CudaApi, self.call),
        }
    }

    /// The ids of the names, by which what the same ones asked for is put together.
    pub fn key(&self, timeline: &Timeline) -> [Option<NameId>; 5] {
        let number = |category: Category, event: EventIndex| {
            let events = timeline.capture.events.get(&category)?;
            events.name.get(index(event?)).copied()
        };
        [
            number(Category::CpuOp, self.operator),
            number(Category::PythonFunction, self.function),
            number(Category::NvtxRange, self.range),
            number(Category::Annotation, self.annotation),
            number(Category::CudaApi, self.call),
        ]
    }

    /// The timeline's row on which that is.
    pub fn row(&self, timeline: &Timeline) -> Option<RowId> {
        let row = |category: Category, event: EventIndex| {
            let events = timeline.capture.events.get(&category)?;
            events.row.get(index(event?)).copied()
        };
        let events_at = [
            (Category::CpuOp, self.operator),
            (Category::PythonFunction, self.function),
            (Category::CudaApi, self.call),
            (Category::NvtxRange, self.range),
            (Category::Annotation, self.annotation),
        ];
        events_at.into_iter().find_map(|(category, event)| row(category, event))
    }
}

/// When and on which row was asked, by allocation.
#[derive(Debug, Default)]
struct Questions {
    asked: Vec<(u32, HolderQuery)>,
    calls: Vec<(u32, u32)>,
}

impl Questions {
    fn of(timeline: &Timeline, asked: &[(u32, &Allocation)]) -> Self {
        let capture = &timeline.capture;
        let mut found = Self::default();
        // Any row of a thread stands for it.
        let mut threads: HashMap<(u32, u64), RowId> = HashMap::new();
        for (id, row) in RowId::all().zip(&capture.rows) {
            if let Some(thread) = row.thread {
                threads.entry((row.process, thread)).or_insert(id);
            }
        }
        let wanted = asked.iter().filter(|(_, one)| one.correlation != 0);
        let mut calls: HashMap<(u32, u32), Option<u32>> =
            wanted.map(|(_, one)| ((one.process, one.correlation), None)).collect();
        if let Some(events) = capture.events.get(&Category::CudaApi).filter(|_| !calls.is_empty()) {
            for (at, (correlation, row)) in (0_u32..).zip(events.correlation.iter().zip(&events.row)) {
                let process = timeline.row(*row).map(|row| row.process);
                if let Some(call) = process.and_then(|process| calls.get_mut(&(process, *correlation))) {
                    // A call of the runtime is around that of the driver.
                    call.get_or_insert(at);
                }
            }
        }
        for (at, one) in asked {
            let call = calls.get(&(one.process, one.correlation)).copied().flatten();
            let of_call = call.and_then(|call| {
                let events = capture.events.get(&Category::CudaApi)?;
                Some((Interval::of(events, index(call)), *events.row.get(index(call))?))
            });
            let of_thread = || {
                let row = threads.get(&(one.process, one.thread?))?;
                Some((Interval::new(one.t_ns, one.t_ns), *row))
            };
            found.calls.extend(call.map(|call| (*at, call)));
            if let Some((time, row)) = of_call.or_else(of_thread) {
                found.asked.push((*at, HolderQuery { time, row }));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::MemoryKind;

    use super::*;

    #[test]
    fn who_asks_is_the_operator_that_does_more_than_to_get_memory() {
        let mut trace = Trace::new();
        let (operators, python) = (trace.thread(1, 7, Track::CpuOp), trace.thread(1, 7, Track::Python));
        trace.event(Category::CpuOp, operators, "aten::linear", 0, 100);
        trace.event(Category::CpuOp, operators, "aten::empty", 10, 20);
        trace.event(Category::PythonFunction, python, "model.py(3): forward", 0, 200);
        trace.event(Category::PythonFunction, python, "<built-in method linear>", 0, 150);
        let mut timeline = trace.build();
        let ask = |t_ns, thread| Allocation {
            t_ns,
            process: 1,
            thread: Some(thread),
            device: Some(0),
            bytes: 8,
            ..Allocation::default()
        };
        timeline.capture.allocations = vec![ask(15, 7), ask(15, 8), ask(120, 7)];
        let found = Requesters::of(&timeline, 0..3);
        let shown: Vec<Option<String>> = (0..3).map(|at| found.get(at).name(&timeline).shown()).collect();
        let expected = [
            Some("aten::linear in model.py(3): forward".to_owned()),
            None,
            Some("model.py(3): forward".to_owned()),
        ];
        assert_eq!(shown, expected);
        assert_eq!(found.get(0).row(&timeline), Some(operators));
    }

    #[test]
    fn the_driver_is_asked_by_the_call_of_its_correlation_inside_a_range() {
        let mut trace = Trace::new();
        let (calls, ranges) = (trace.thread(1, 7, Track::CudaApi), trace.thread(1, 7, Track::Nvtx));
        trace.event(Category::NvtxRange, ranges, "load", 0, 100);
        trace.call(calls, "cudaMalloc", 10, 60);
        let mut timeline = trace.build();
        timeline.capture.allocations = vec![Allocation {
            t_ns: 55,
            process: 1,
            correlation: timeline.capture.events[&Category::CudaApi].correlation[0],
            device: Some(0),
            kind: Some(MemoryKind::Device),
            bytes: 8,
            ..Allocation::default()
        }];
        let found = Requesters::of(&timeline, [0]);
        assert_eq!(
            found.get(0).name(&timeline).shown().as_deref(),
            Some("load in cudaMalloc")
        );
    }
}
