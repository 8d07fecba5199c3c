//! Ranges and operators, and what is called and launched inside them.

use std::collections::BTreeMap;

use flopwatch_analysis_testing::Trace;
use flopwatch_measures::holder::{HolderQuery, innermost};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::range_tree::RangeTree;
use flopwatch_model::{Category, EventId, Events, Timeline, Track, index};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Moments, Size, answer, list, nested, number};

type Span = (u64, u64);

fn holds(outer: Span, inner: Span) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// Of nested ranges the shortest around `inner`, which is none of them.
fn around(ranges: &[Span], inner: Span) -> Option<usize> {
    let outer = ranges
        .iter()
        .enumerate()
        .filter(|(_, range)| **range != inner && holds(**range, inner));
    outer.min_by_key(|(_, range)| range.1 - range.0).map(|(at, _)| at)
}

/// What a thread did: ranges, calls that launch (start, length, and the work's start and length),
/// calls that wait.
#[derive(Debug, Clone)]
struct Program {
    ranges: Vec<Span>,
    launches: Vec<(u64, u64, u64, u64)>,
    waits: Vec<Span>,
}

fn program() -> impl Strategy<Value = Program> {
    // Calls of a thread do not cross its ranges: each is in one slot of 4 ns, of which a launch has
    // the first half.
    let launches = vec((0_u64..36, 1_u64..3, 0_u64..250, 0_u64..30), 0..12);
    (nested(14), launches, vec(0_u64..36, 0..8)).prop_map(|(ranges, launches, waits)| Program {
        ranges,
        launches: launches
            .into_iter()
            .map(|(slot, length, start, took)| (slot * 4, length, start, took))
            .collect(),
        waits: waits.into_iter().map(|slot| (slot * 4 + 2, slot * 4 + 4)).collect(),
    })
}

impl Program {
    fn timeline(&self, category: Category, of: Track) -> Timeline {
        let mut trace = Trace::new();
        let rows = trace.thread(1, 1, of);
        let api = trace.thread(1, 1, Track::CudaApi);
        let stream = trace.stream(1, 0, 7);
        for (at, (start, end)) in self.ranges.iter().enumerate() {
            trace.event(category, rows, name(at), *start, *end);
        }
        for (start, length, begin, took) in &self.launches {
            trace.launch_kernel((api, *start, start + length), (stream, "gemm", *begin, begin + took));
        }
        for (start, end) in &self.waits {
            trace.call(api, "cudaStreamSynchronize", *start, *end);
        }
        for captured in [Category::CudaApi, Category::CudaKernel, category] {
            trace.captured(captured);
        }
        trace.build()
    }

    /// GPU operations whose call is inside a time.
    fn inside(&self, range: Span) -> impl Iterator<Item = Span> {
        let inside = self
            .launches
            .iter()
            .filter(move |(start, length, _, _)| holds(range, (*start, start + length)));
        inside.map(|(_, _, begin, took)| (*begin, begin + took))
    }
}

/// One of two names.
fn name(at: usize) -> &'static str {
    ["one", "other"][at % 2]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    #[test]
    fn parents_are_the_shortest_ranges_around(ranges in nested(30), asked in vec((0_u64..128, 1_u64..20), 0..20)) {
        let mut trace = Trace::new();
        let row = trace.thread(1, 1, Track::Nvtx);
        for (start, end) in &ranges {
            trace.event(Category::NvtxRange, row, "range", *start, *end);
        }
        trace.captured(Category::NvtxRange);
        let timeline = trace.build();
        let none = Events::new(Category::NvtxRange);
        let events = timeline.capture.events.get(&Category::NvtxRange).unwrap_or(&none);
        let (tree, parents) = (RangeTree::of(events, |_| true), events.parents(|_| true));
        for (at, range) in ranges.iter().enumerate() {
            let expected = around(&ranges, *range);
            prop_assert_eq!(tree.parent(at).map(EventId::index), expected);
            prop_assert_eq!(parents.get(at).map(EventId::index), expected);
            let levels = ranges.iter().filter(|outer| *outer != range && holds(**outer, *range)).count();
            prop_assert_eq!(index(tree.level(at)), levels);
        }
        let mut asked: Vec<Span> = asked.into_iter().map(|(start, length)| (start, start + length)).collect();
        asked.sort_unstable();
        let queries: Vec<HolderQuery> = asked.iter().map(|(start, end)| HolderQuery { time: Interval::new(*start, *end), row }).collect();
        for (time, found) in asked.iter().zip(innermost(events, |_| true, &queries).iter()) {
            let expected = ranges.iter().enumerate().filter(|(_, range)| holds(**range, *time));
            let expected = expected.min_by_key(|(_, range)| range.1 - range.0).map(|(at, _)| at);
            prop_assert_eq!(found.map(EventId::index), expected);
        }
    }

    /// Ranges that cross have the shortest one around them as their parent too.
    #[test]
    fn parents_of_ranges_that_cross_are_the_shortest_ones_around(ranges in vec((0_u64..40, 0_u64..30), 0..20)) {
        let mut trace = Trace::new();
        let row = trace.thread(1, 1, Track::Nvtx);
        for (start, length) in &ranges {
            trace.event(Category::NvtxRange, row, "range", *start, start + length);
        }
        trace.captured(Category::NvtxRange);
        let timeline = trace.build();
        let Some(events) = timeline.capture.events.get(&Category::NvtxRange) else { return Ok(()) };
        let tree = RangeTree::of(events, |_| true);
        let span = |at: usize| (events.start_ns[at], events.end_ns(at));
        for at in 0..events.len() {
            let outer = (0..events.len()).filter(|outer| holds(span(*outer), span(at)) && (span(*outer) != span(at) || *outer < at));
            let outer = outer.filter(|outer| *outer != at);
            let expected = outer.min_by_key(|outer| (span(*outer).1 - span(*outer).0, std::cmp::Reverse(*outer)));
            prop_assert_eq!(tree.parent(at).map(EventId::index), expected);
        }
    }

    #[test]
    fn an_operations_time_is_split_by_each_nanosecond(program in program()) {
        prop_assume!(!program.ranges.is_empty());
        let timeline = program.timeline(Category::CpuOp, Track::CpuOp);
        let found = answer("operations", &json!({"kind": "cpu_op"}), &timeline);
        let api = program.launches.iter().map(|(start, length, _, _)| (*start, start + length));
        let api = Moments::of(api.chain(program.waits.iter().copied()));
        let busy = Moments::of(program.launches.iter().map(|(_, _, begin, took)| (*begin, begin + took)));
        let waiting = Moments::of(program.waits.iter().copied()).and(&busy);
        let operations = list(&found["operations"]);
        let by_name: BTreeMap<&str, &Value> = operations.iter().map(|row| (row["operation"].as_str().unwrap(), row)).collect();
        for (nth, name_of) in ["one", "other"].into_iter().enumerate() {
            let calls: Vec<Span> = program.ranges.iter().copied().skip(nth).step_by(2).collect();
            let Some(row) = by_name.get(name_of) else {
                prop_assert!(calls.is_empty());
                continue;
            };
            let sum = |of: &dyn Fn(&Moments, Span) -> u64| -> u64 {
                calls.iter().map(|call| of(&Moments::of([*call]), *call)).sum::<u64>()
            };
            let inside = |call: Span| Moments::of(program.ranges.iter().copied().filter(|inner| *inner != call && holds(call, *inner)));
            for (field, expected) in [
                ("total_ns", sum(&|time, _| time.count())),
                ("self_ns", sum(&|time, call| time.without(&inside(call)).count())),
                ("gpu_ns", sum(&|_, call| Moments::of(program.inside(call)).count())),
                ("gpu_pieces", sum(&|_, call| program.inside(call).count().size())),
                ("cpu_ns", sum(&|time, _| time.without(&api).count())),
                ("wait_ns", sum(&|time, _| time.and(&waiting).count())),
                ("overhead_ns", sum(&|time, _| time.and(&api).without(&waiting).count())),
            ] {
                prop_assert_eq!(row[field].as_u64(), Some(expected), "{} of {}", field, name_of);
            }
            // GPU operations that the operation launched itself: no operation inside holds the
            // call.
            let own = program.launches.iter().filter(|(start, length, _, _)| {
                let holder = program.ranges.iter().enumerate().filter(|(_, range)| holds(**range, (*start, start + length)));
                let holder = holder.min_by_key(|(_, range)| range.1 - range.0);
                holder.is_some_and(|(at, _)| name(at) == name_of)
            });
            let own = Moments::of(own.map(|(_, _, begin, took)| (*begin, begin + took)));
            prop_assert_eq!(row["self_gpu_ns"].as_u64(), Some(own.count()), "own GPU time of {}", name_of);
        }
        let inside_any = Moments::of(program.ranges.iter().copied()).count();
        prop_assert_eq!(number(&found["self_ns"]), inside_any);
    }

    #[test]
    fn tables_of_ranges_are_those_of_each_range_by_itself(program in program()) {
        prop_assume!(!program.ranges.is_empty());
        let timeline = program.timeline(Category::NvtxRange, Track::Nvtx);
        let parameters = json!({"limit": 1000});
        let ranges = &program.ranges;
        let trace = answer("nvtx_pushpop_trace", &parameters, &timeline);
        prop_assert_eq!(list(&trace["rows"]).len(), ranges.len());
        for row in list(&trace["rows"]) {
            let at = usize::try_from(number(&row["range_id"])).unwrap() - 1;
            let range = ranges[at];
            let children = || ranges.iter().filter(|inner| around(ranges, **inner) == Some(at));
            prop_assert_eq!((number(&row["start_ns"]), number(&row["duration_ns"])), (range.0, range.1 - range.0));
            prop_assert_eq!(number(&row["children"]), children().count().size());
            prop_assert_eq!(number(&row["children_ns"]), children().map(|inner| inner.1 - inner.0).sum::<u64>());
            prop_assert_eq!(row["parent_id"].as_u64(), around(ranges, range).map(|outer| u64::try_from(outer).unwrap() + 1));
        }
        let projected = answer("nvtx_gpu_proj_trace", &parameters, &timeline);
        let of_ranges = list(&projected["rows"]).iter().filter(|row| !row["name"].is_null());
        let reported: BTreeMap<Span, &Value> = of_ranges.map(|row| ((number(&row["start_ns"]), number(&row["start_ns"]) + number(&row["duration_ns"])), row)).collect();
        for range in ranges {
            let gpu_ops: Vec<Span> = program.inside(*range).collect();
            let Some(row) = reported.get(range) else {
                prop_assert!(gpu_ops.is_empty());
                continue;
            };
            let start = gpu_ops.iter().map(|work| work.0).min().unwrap();
            let end = gpu_ops.iter().map(|work| work.1).max().unwrap();
            prop_assert_eq!((number(&row["projected_start_ns"]), number(&row["projected_duration_ns"])), (start, end - start));
            prop_assert_eq!(number(&row["operations"]), gpu_ops.len().size());
        }
        let by_kernel = answer("nvtx_kern_sum", &parameters, &timeline);
        for (nth, name_of) in ["one", "other"].into_iter().enumerate() {
            let of_name = ranges.iter().skip(nth).step_by(2);
            let gpu_ops: Vec<Span> = of_name.flat_map(|range| program.inside(*range)).collect();
            let row = list(&by_kernel["rows"]).iter().find(|row| row["range"].as_str().is_some_and(|range| range.trim_start_matches(':') == name_of));
            let total = row.map_or(0, |row| number(&row["total_ns"]));
            prop_assert_eq!(total, gpu_ops.iter().map(|work| work.1 - work.0).sum::<u64>());
// A kernel in two ranges of the name is one.
            let of_name = |range: Span| ranges.iter().skip(nth).step_by(2).any(|outer| *outer == range);
            let launched = |launch: &&(u64, u64, u64, u64)| {
                let call = (launch.0, launch.0 + launch.1);
                ranges.iter().any(|range| of_name(*range) && holds(*range, call))
            };
            let kernels = program.launches.iter().filter(launched).count();
            prop_assert_eq!(row.map_or(0, |row| number(&row["kernels"])), kernels.size());
        }
        let runs = answer("cuda_kern_exec_trace", &parameters, &timeline);
        let mut found: Vec<[Option<u64>; 4]> = list(&runs["rows"])
            .iter()
            .map(|row| ["api_start_ns", "queue_duration_ns", "kernel_duration_ns", "total_duration_ns"].map(|field| row[field].as_u64()))
            .collect();
        let mut expected: Vec<[Option<u64>; 4]> = program
            .launches
            .iter()
            .map(|(start, length, begin, took)| {
                let end = start + length;
                let queue = (*begin >= end).then(|| begin - end);
                [Some(*start), queue, Some(*took), Some((begin + took).max(end) - start)]
            })
            .collect();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}
