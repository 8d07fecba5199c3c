use flopwatch_analysis_testing::Trace;
use flopwatch_measures::interval::Interval;
use flopwatch_model::Track;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Name, how often, GPU operations at a time.
fn actual(found: &PatternsOfLaunches) -> Vec<(&str, u64, u64)> {
    let actual = found.patterns.iter();
    actual
        .map(|pattern| (pattern.name.as_str(), pattern.count, pattern.length))
        .collect()
}

/// `attention` three times, each with an inner operator; the last one launches something else.
fn trace() -> Timeline {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (ops, api) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::CudaApi));
    for (start, last) in [(0, "scale"), (1000, "scale"), (2000, "mask")] {
        trace.event(Category::CpuOp, ops, "attention", start, start + 100);
        trace.event(Category::CpuOp, ops, "mm", start + 10, start + 30);
        for (at, name) in [(12, "gemm"), (40, "softmax"), (60, last)] {
            let call = (api, start + at, start + at + 5);
            trace.launch_kernel(call, (stream, name, start + at + 200, start + at + 210));
        }
    }
    trace.launch_kernel((api, 5000, 5001), (stream, "gemm", 5002, 5003));
    trace.build()
}

#[test]
fn equal_sequences_of_the_outermost_operator_are_counted() {
    let found = LaunchPatterns::of(&trace(), &LaunchPatternsParams::default());
    assert_eq!((found.patterns.len(), found.outside), (1, 1));
    let pattern = &found.patterns[0];
    assert_eq!(
        (pattern.name.as_str(), pattern.count, pattern.length),
        ("attention", 2, 3)
    );
    assert_eq!(pattern.gpu_ops, ["gemm", "softmax", "scale"]);
    assert_eq!((pattern.gpu_ns, pattern.host_ns, pattern.first_start_ns), (60, 200, 0));
}

#[test]
fn calls_of_one_operator_that_are_numbered_are_its_occurrences() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (ranges, api) = (trace.thread(1, 1, Track::Nvtx), trace.thread(1, 1, Track::CudaApi));
    for (start, name) in [(0, "aten::sort, op_id = 9"), (1000, "aten::sort, op_id = 10")] {
        trace.event(Category::NvtxRange, ranges, name, start, start + 100);
        for (at, kernel) in [(12, "count"), (40, "scan"), (60, "scatter")] {
            let call = (api, start + at, start + at + 5);
            let work = (stream, kernel, start + at + 200, start + at + 210);
            trace.launch_kernel(call, work);
        }
    }
    let found = LaunchPatterns::of(&trace.build(), &LaunchPatternsParams::default());
    let names = found
        .patterns
        .iter()
        .map(|pattern| (pattern.name.as_str(), pattern.count));
    assert_eq!(names.collect::<Vec<_>>(), [("aten::sort", 2)]);
}

#[test]
fn sequences_below_a_named_operator_are_its_own() {
    let params = LaunchPatternsParams {
        under: "mm".to_owned(),
        min_length: 1,
        ..LaunchPatternsParams::default()
    };
    let found = LaunchPatterns::of(&trace(), &params);
    let names: Vec<(&str, u64)> = found
        .patterns
        .iter()
        .map(|pattern| (pattern.name.as_str(), pattern.count))
        .collect();
    assert_eq!(names, [("mm", 3)]);
    assert_eq!(found.outside, 7);
}

/// `layer` twice in each of two `step`s; a layer holds `gemm` of one kernel and, besides, a kernel
/// of its own.
#[test]
fn a_range_counts_what_is_launched_in_those_inside_it_too() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (ranges, api) = (trace.thread(1, 1, Track::Nvtx), trace.thread(1, 1, Track::CudaApi));
    for step in [0, 1000] {
        trace.event(Category::NvtxRange, ranges, "step", step, step + 100);
        for layer in [step + 10, step + 50] {
            trace.event(Category::NvtxRange, ranges, "layer", layer, layer + 30);
            trace.event(Category::NvtxRange, ranges, "gemm", layer + 1, layer + 10);
            for (call, name) in [(layer + 2, "mm"), (layer + 20, "relu")] {
                let call = (api, call, call + 2);
                trace.launch_kernel(call, (stream, name, call.1 + 200, call.1 + 205));
            }
        }
    }
    let params = LaunchPatternsParams {
        min_length: 1,
        ..LaunchPatternsParams::default()
    };
    let timeline = trace.build();
    let found = LaunchPatterns::of(&timeline, &params);
    assert_eq!(actual(&found), [("layer", 4, 2), ("gemm", 4, 1), ("step", 2, 4)]);
    assert_eq!(found.patterns[2].gpu_ops, ["mm", "relu", "mm", "relu"]);
    assert_eq!((found.patterns[2].gpu_ns, found.patterns[2].host_ns), (40, 200));
}

/// `linear` is `addmm` and nothing else; `addmm` is called by itself once, and `t` only in
/// `linear`.
#[test]
fn a_range_that_is_the_whole_of_another_each_time_is_told_by_the_other() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (ops, api) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::CudaApi));
    for start in [0, 100, 200] {
        if start < 200 {
            trace.event(Category::CpuOp, ops, "linear", start, start + 50);
            trace.event(Category::CpuOp, ops, "t", start + 1, start + 49);
        }
        trace.event(Category::CpuOp, ops, "addmm", start + 2, start + 48);
        let work = (stream, "gemm", start + 60, start + 70);
        trace.launch_kernel((api, start + 5, start + 6), work);
    }
    let params = LaunchPatternsParams {
        min_length: 1,
        ..LaunchPatternsParams::default()
    };
    let timeline = trace.build();
    let found = LaunchPatterns::of(&timeline, &params);
    assert_eq!(actual(&found), [("addmm", 3, 1), ("linear", 2, 1)]);
}

proptest! {
    /// Against the plain definition: for each range the names of the GPU operations whose call is
    /// inside it, in the order in which they began.
    #[test]
    fn sequences_are_those_of_each_range_by_itself(
        ranges in vec((0_u64..12, 1_u64..8, 0_usize..2), 0..12), calls in vec((0_u64..24, 0_usize..2), 0..16),
    ) {
        // Ranges nest: of a binary tree of 16 leaves each is a whole node.
        let ranges = ranges.into_iter().map(|(at, width, name)| {
            let width = width.next_power_of_two() * 2;
            let start = at * 2 / width * width;
            (start, start + width, ["a", "b"][name])
        });
        let ranges: std::collections::BTreeSet<(u64, u64, &str)> = ranges.collect();
        let calls: BTreeMap<u64, usize> = calls.into_iter().collect();
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        let (row, api) = (trace.thread(1, 1, Track::Nvtx), trace.thread(1, 1, Track::CudaApi));
        for (start, end, name) in &ranges {
            trace.event(Category::NvtxRange, row, name, *start, *end);
        }
        for (at, name) in &calls {
            // GPU operations begin in another order than their calls.
            let begin = 100 + at * 7 % 24;
            trace.launch_kernel((api, *at, at + 1), (stream, ["k", "l"][*name], begin, begin + 1));
        }
        let mut expected: BTreeMap<(&str, Vec<&str>), u64> = BTreeMap::new();
        for (start, end, name) in &ranges {
            let mut gpu_ops: Vec<(u64, &str)> = calls.range(start..end).map(|(at, name)| (at * 7 % 24, ["k", "l"][*name])).collect();
            gpu_ops.sort_unstable();
            let gpu_ops = gpu_ops.into_iter().map(|(_, name)| name).collect();
            *expected.entry((name, gpu_ops)).or_default() += 1;
        }
        let params = LaunchPatternsParams { min_length: 1, min_count: 1, limit: 1000, ..LaunchPatternsParams::default() };
        let found = LaunchPatterns::of(&trace.build(), &params);
        let outside = calls.keys().filter(|at| !ranges.iter().any(|(start, end, _)| Interval::new(*start, *end).intersect(Interval::new(**at, **at + 1)).len() == 1));
        prop_assert_eq!(found.outside, u64::try_from(outside.count()).unwrap());
        for pattern in &found.patterns {
            let gpu_ops: Vec<&str> = pattern.gpu_ops.iter().map(String::as_str).collect();
            let all = expected[&(pattern.name.as_str(), gpu_ops)];
            // An occurrence that is all of another one of the same pattern is not counted twice.
            prop_assert!(pattern.count <= all, "{pattern:?}");
            if pattern.count < all {
                let same = ranges.iter().filter(|(_, _, name)| *name == pattern.name);
                let nested = same.clone().any(|outer| same.clone().any(|inner| outer != inner && outer.0 <= inner.0 && inner.1 <= outer.1));
                prop_assert!(nested, "{pattern:?}");
            }
        }
        // What is not listed is the whole of something that is.
        for (name, gpu_ops) in expected.keys().filter(|(_, gpu_ops)| !gpu_ops.is_empty()) {
            let listed = found.patterns.iter().any(|pattern| pattern.gpu_ops == *gpu_ops);
            prop_assert!(listed, "{name} {gpu_ops:?}");
        }
    }
}
