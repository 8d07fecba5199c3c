use flopwatch_analysis_testing::Trace;
use flopwatch_measures::counterpart::{MatchedBy, Presence};
use flopwatch_model::{Allocation, Device, Track};

use super::*;

/// A capture whose iterations have these lengths. In each the kernels `(name, length)` are launched
/// one after the other from its start.
fn program(lengths: &[u64], kernels: &[(&str, u64)]) -> Timeline {
    let mut trace = Trace::new();
    let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::Annotation));
    trace.device(gpu("H100"));
    let mut start = 0;
    for (number, length) in lengths.iter().enumerate() {
        let name = format!("ProfilerStep#{number}");
        trace.event(Category::Step, thread, &name, start, start + length);
        let mut at = start;
        for (name, length) in kernels {
            trace.kernel(stream, name, at, at + length);
            at += length;
        }
        start += length;
    }
    trace.build()
}

/// The same without iterations.
fn unmarked(lengths: &[u64], kernels: &[(&str, u64)]) -> Timeline {
    let mut timeline = program(lengths, kernels);
    timeline.capture.events.remove(&Category::Step);
    timeline
}

fn gpu(name: &str) -> Device {
    Device {
        name: name.to_owned(),
        ..Device::default()
    }
}

fn compared(before: &Timeline, after: &Timeline) -> Comparison {
    of(before, after, &CompareParams::default())
}

#[test]
fn a_difference_is_told_per_iteration_by_calls_and_by_length() {
    // Four iterations before and two after, so that totals alone would say that everything is
    // faster.
    let before = program(&[1000; 4], &[("gemm", 300), ("add", 100), ("gone", 50)]);
    let after = program(&[1200; 2], &[("gemm", 400), ("gemm", 400), ("add", 100), ("new", 20)]);
    let found = compared(&before, &after);
    assert_eq!(found.unit, ComparedUnit::Iteration);
    assert_eq!(found.iteration_unit.as_deref(), Some("step"));
    assert_eq!((found.before.iterations, found.after.iterations), (4, 2));
    let actual: Vec<_> = found
        .kernels
        .iter()
        .map(|one| {
            (
                one.name.as_str(),
                one.presence,
                one.difference_ns,
                one.count_part_ns,
                one.duration_part_ns,
            )
        })
        .collect();
    assert_eq!(
        actual,
        [
            // One call more of 300 ns, and two that are 100 ns longer.
            ("gemm", Presence::Both, 500, 300, 200),
            ("gone", Presence::Before, -50, -50, 0),
            ("new", Presence::After, 20, 20, 0),
            ("add", Presence::Both, 0, 0, 0),
        ]
    );
    let gemm = &found.kernels[0];
    assert_eq!(
        (gemm.before_ns, gemm.after_ns, gemm.before_calls, gemm.after_calls),
        (300, 800, 4, 4)
    );
    assert_eq!(
        gemm.after_place
            .map(|place| (place.input, place.start_ns, place.end_ns)),
        Some((1, 0, 400))
    );
    assert_eq!(gemm.before_place.map(|place| place.input), Some(0));
    assert_eq!(found.time.change_percent, Some(20.0));
    assert_eq!(found.speedup, Some(1000.0 / 1200.0));
}

#[test]
fn parts_of_the_gpus_time_add_up_to_their_window() {
    let before = program(&[1000; 3], &[("gemm", 300), ("ncclDevKernel_AllReduce", 200)]);
    let after = program(&[900; 3], &[("gemm", 400)]);
    let found = compared(&before, &after);
    let actual: Vec<_> = found
        .gpu_time
        .iter()
        .map(|part| (part.part.as_str(), part.before_ns, part.after_ns))
        .collect();
    assert_eq!(
        actual,
        [
            ("compute", 300, 400),
            ("exposed_communication", 200, 0),
            ("exposed_memory", 0, 0),
            ("idle", 500, 500),
            ("window", 1000, 900),
        ]
    );
}

#[test]
fn iterations_tell_a_change_from_noise() {
    let kernels = [("gemm", 300)];
    let steady = program(&[1000, 1004, 998, 1001, 1003], &kernels);
    let slower = program(&[1100, 1102, 1097, 1101, 1106], &kernels);
    let regression = compared(&steady, &slower);
    assert_eq!(
        regression.verdict,
        ComparisonVerdict::RegressionLikely,
        "{}",
        regression.verdict_reason
    );
    assert!(
        regression
            .verdict_reason
            .starts_with("The median step changed by +10.0 %"),
        "{}",
        regression.verdict_reason
    );
    assert_eq!(regression.iteration_unit.as_deref(), Some("step"));
    // All five after are longer than all five before: p = 2/252.
    assert!((regression.time.p_value.unwrap() - 2.0 / 252.0).abs() < 1e-12);
    let low = regression.time.change_low_percent.unwrap();
    let high = regression.time.change_high_percent.unwrap();
    assert!(low <= 10.0 && 10.0 <= high && low > 9.0 && high < 11.0, "{low} {high}");
    assert_eq!(compared(&slower, &steady).verdict, ComparisonVerdict::ImprovementLikely);
    assert_eq!(compared(&steady, &steady).verdict, ComparisonVerdict::Neutral);
    // 10 % in the median, but within what the iterations scatter.
    let scattered = [
        program(&[700, 900, 1000, 1200, 1500], &kernels),
        program(&[600, 800, 1100, 1300, 1400], &kernels),
    ];
    let noise = compared(&scattered[0], &scattered[1]);
    assert_eq!(
        noise.verdict,
        ComparisonVerdict::Inconclusive,
        "{}",
        noise.verdict_reason
    );
    assert!(noise.time.noise_floor_percent > 10.0);
    // A real change that nobody asked to be told of.
    let little = program(&[1030, 1034, 1028, 1031, 1033], &kernels);
    assert_eq!(compared(&steady, &little).verdict, ComparisonVerdict::Neutral);
    let strict = CompareParams {
        threshold_percent: 2.5,
        ..CompareParams::default()
    };
    assert_eq!(
        of(&steady, &little, &strict).verdict,
        ComparisonVerdict::RegressionLikely
    );
}

#[test]
fn one_run_a_side_has_its_noise_floor_whatever_the_threshold() {
    let kernels = [("gemm", 500)];
    let (before, after) = (program(&[1000], &kernels), program(&[1015], &kernels));
    let strict = CompareParams {
        threshold_percent: 1.0,
        ..CompareParams::default()
    };
    assert_eq!(of(&before, &after, &strict).verdict, ComparisonVerdict::Neutral);
    assert_eq!(
        compared(&before, &program(&[1100], &kernels)).verdict,
        ComparisonVerdict::RegressionLikely
    );
}

#[test]
fn captures_of_other_amounts_of_work_without_iterations_have_no_verdict() {
    // A window of the same length in which a slower program got less done: the span says nothing.
    let before = unmarked(&[1000; 20], &[("gemm", 900)]);
    let after = unmarked(&[1250; 16], &[("gemm", 1150)]);
    let whole = CompareParams {
        per: ComparedPer::Capture,
        ..CompareParams::default()
    };
    let found = of(&before, &after, &whole);
    assert_eq!(found.time.kind, ComparedTimeKind::GpuSpan);
    assert_eq!(
        found.verdict,
        ComparisonVerdict::Inconclusive,
        "{}",
        found.verdict_reason
    );
    // With the same work it does.
    let same = unmarked(&[1250; 20], &[("gemm", 1150)]);
    assert_eq!(of(&before, &same, &whole).verdict, ComparisonVerdict::RegressionLikely);
}

#[test]
fn iterations_of_different_kinds_are_not_compared() {
    let marked = program(&[1000; 8], &[("gemm", 300), ("add", 100)]);
    let other = unmarked(&[1000; 8], &[("gemm", 300), ("add", 100)]);
    let found = compared(&marked, &other);
    assert_eq!(
        (found.unit, found.verdict),
        (ComparedUnit::Capture, ComparisonVerdict::Neutral)
    );
}

#[test]
fn captures_that_cannot_be_compared_have_no_verdict_and_say_why() {
    let kernels = [("gemm", 500)];
    let before = program(&[1000; 5], &kernels);
    let mut other = program(&[2000; 5], &kernels);
    other.capture.devices = vec![gpu("A100")];
    let found = compared(&before, &other);
    assert_eq!(
        (found.verdict, found.comparability.score_ratio),
        (ComparisonVerdict::Inconclusive, 0.0)
    );
    assert!(found.verdict_reason.contains("A100"), "{}", found.verdict_reason);
    // The figures are there all the same.
    assert_eq!(found.speedup, Some(0.5));
    let empty = compared(&before, &Timeline::default());
    assert_eq!((empty.verdict, empty.speedup), (ComparisonVerdict::Inconclusive, None));
    assert!(empty.not_captured.iter().any(|missing| missing.what == "kernels after"));
    let mut tool = before.clone();
    tool.capture.source.tool = "another".to_owned();
    assert!((compared(&before, &tool).comparability.score_ratio - 0.5).abs() < f64::EPSILON);
}

#[test]
fn variants_of_a_kernel_are_one_and_numbers_of_ranges_do_not_part_them() {
    let mut sides = [
        ("void gemm<64>(float*)", "batch 1"),
        ("void gemm<128>(float*)", "batch 2"),
    ]
    .map(|(kernel, range)| {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::Nvtx));
        trace.kernel(stream, kernel, 10, 30);
        trace.event(Category::NvtxRange, thread, range, 0, 40);
        trace.build()
    });
    for (side, peak) in sides.iter_mut().zip([3_000_000, 5_000_000]) {
        side.capture.allocations = vec![Allocation {
            device: Some(0),
            bytes: 1,
            allocated: Some(peak),
            ..Allocation::default()
        }];
    }
    let found = compared(&sides[0], &sides[1]);
    let kernel = &found.kernels[0];
    assert_eq!(
        (kernel.matched_by, kernel.presence, kernel.name.as_str()),
        (MatchedBy::ShortName, Presence::Both, "void gemm<128>(float*)")
    );
    assert_eq!((found.ranges.len(), found.ranges[0].presence), (1, Presence::Both));
    assert_eq!(found.memory_diff.peak_mb, Some(2.0));
}

#[test]
fn work_of_no_known_process_counts_by_its_time() {
    let side = || {
        let mut trace = Trace::new();
        let (stream, steps) = (trace.stream(0, 0, 7), trace.thread(1, 1, Track::Annotation));
        trace.event(Category::Step, steps, "ProfilerStep#1", 100, 200);
        trace.kernel(stream, "gemm", 150, 160);
        trace.kernel(stream, "gemm", 250, 260);
        trace.build()
    };
    let found = compared(&side(), &side());
    assert_eq!((found.before.kernels, found.before.kernels_without_launch), (1, 1));
}

#[test]
fn work_counts_for_the_iteration_that_launched_it() {
    let side = |starts: [u64; 2]| {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        let steps = trace.thread(1, 1, Track::Annotation);
        trace.event(Category::Step, steps, "ProfilerStep#1", 100, 200);
        for start in starts {
            // It runs long after the iteration has ended.
            trace.launch_kernel((thread, start, start + 5), (stream, "gemm", start + 500, start + 510));
        }
        trace.build()
    };
    let found = compared(&side([50, 120]), &side([120, 150]));
    assert_eq!((found.kernels[0].before_calls, found.kernels[0].after_calls), (1, 2));
    assert_eq!(found.before.kernels_without_launch, 0);
}
