use flopwatch_analysis_testing::Trace;
use flopwatch_model::{RowId, Track};

use super::*;

/// Adds the iteration of that number, of 1000 ns; gives its start.
fn step(trace: &mut Trace, thread: RowId, number: u64) -> u64 {
    let start = number * 1000;
    trace.step(thread, number, start, start + 1000);
    start
}

/// A rank that computes for so long in each of two iterations of 1000 ns and then waits in a
/// collective until their end.
fn rank(compute: u64, began: Option<u64>) -> Timeline {
    let mut trace = Trace::new();
    let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::Annotation));
    for number in 0..2_u64 {
        let start = step(&mut trace, thread, number);
        trace.kernel(stream, "gemm", start, start + compute);
        trace.kernel(stream, "ncclDevKernel_AllReduce", start + compute, start + 1000);
    }
    let mut timeline = trace.build();
    timeline.capture.session_start_utc_ns = began;
    timeline
}

#[test]
fn the_rank_that_others_wait_for_is_the_one_that_waits_least() {
    let ranks = [rank(500, Some(100)), rank(800, Some(130)), rank(600, Some(100))];
    let found = of(&ranks.each_ref(), &RanksParams::default());
    let actual: Vec<_> = found
        .ranks
        .iter()
        .map(|rank| {
            (
                rank.time.compute_ns,
                rank.time.exposed_communication_ns,
                rank.mean_own_ns,
            )
        })
        .collect();
    assert_eq!(
        actual,
        [
            (1000, 1000, Some(500.0)),
            (1600, 400, Some(800.0)),
            (1200, 800, Some(600.0))
        ]
    );
    // All iterations are equally long: their length shows nothing.
    assert!(found.slowest.unwrap().behind_ns.abs() < f64::EPSILON);
    // The second never waits, the first 300 ns in each iteration.
    let straggler = found.straggler.unwrap();
    assert_eq!(
        (straggler.rank, straggler.wait_ns, straggler.longest_wait_ns),
        (1, 0, 600)
    );
    let gemm = &found.kernels[0];
    assert_eq!(
        (gemm.name.as_str(), gemm.total_ns.as_slice(), gemm.slowest),
        ("gemm", &[1000, 1600, 1200][..], 1)
    );
    assert_eq!(gemm.imbalance_ratio, Some(1600.0 * 3.0 / 3800.0));
    // The second began 30 ns later, so that its iterations do.
    assert_eq!(found.pace.len(), 2);
    assert_eq!(
        (
            found.pace[1].number,
            found.pace[1].spread_ns,
            found.pace[1].start_spread_ns
        ),
        (1, 0, Some(30))
    );
    assert!(found.not_captured.is_empty(), "{:?}", found.not_captured);
}

/// A rank whose collective begins at `arrives` of each iteration of 1000 ns and ends with it,
/// beside a kernel that runs until `computes`.
fn overlapping(computes: u64, arrives: u64) -> Timeline {
    let mut trace = Trace::new();
    let thread = trace.thread(1, 1, Track::Annotation);
    let (stream, side) = (trace.stream(1, 0, 7), trace.stream(1, 0, 20));
    for number in 0..3_u64 {
        let start = step(&mut trace, thread, number);
        trace.kernel(stream, "gemm", start, start + computes);
        trace.kernel(side, "ncclDevKernel_AllReduce", start + arrives, start + 1000);
    }
    trace.build()
}

#[test]
fn the_rank_that_computes_longest_beside_a_collective_is_not_waited_for() {
    // The first computes longer, and meanwhile waits for the second, which comes late.
    let ranks = [overlapping(900, 100), overlapping(600, 700)];
    let found = of(&ranks.each_ref(), &RanksParams::default());
    let own: Vec<_> = found.ranks.iter().map(|rank| rank.mean_own_ns).collect();
    assert_eq!(own, [Some(900.0), Some(700.0)]);
    let straggler = found.straggler.unwrap();
    assert_eq!((straggler.rank, straggler.wait_ns), (1, 0));
    let inputs: Vec<crate::input::Input<'_>> = ranks.iter().map(crate::input::Input::whole).collect();
    let inputs = Inputs::new(&inputs).unwrap();
    let params = crate::analyses::stragglers::StragglersParams::default();
    let actual = crate::analyses::stragglers::Stragglers::run(&inputs, &params).unwrap();
    assert_eq!(actual.straggler, Some(straggler.rank));
}

#[test]
fn ranks_that_wait_equally_long_have_no_straggler() {
    let ranks = [rank(500, Some(100)), rank(500, Some(100))];
    assert_eq!(of(&ranks.each_ref(), &RanksParams::default()).straggler, None);
}

#[test]
fn captures_that_do_not_say_when_they_began_are_not_aligned() {
    let ranks = [rank(500, Some(100)), rank(500, None)];
    let found = of(&ranks.each_ref(), &RanksParams::default());
    assert_eq!(found.pace[0].start_spread_ns, None);
    assert!(found.ranks.iter().all(|rank| rank.started_after_ns.is_none()));
    assert!(
        found
            .not_captured
            .iter()
            .any(|missing| missing.what == "times across captures")
    );
}

#[test]
fn each_gpu_of_a_capture_is_a_rank() {
    let mut trace = Trace::new();
    for (device, length) in [(0, 100), (1, 300)] {
        let stream = trace.stream(1, device, 7);
        trace.kernel(stream, "gemm", 0, length);
    }
    let found = of(&[&trace.build()], &RanksParams::default());
    let actual: Vec<_> = found
        .ranks
        .iter()
        .map(|rank| (rank.gpu.as_str(), rank.time.compute_ns))
        .collect();
    assert_eq!(actual, [("GPU 0", 100), ("GPU 1", 300)]);
    assert_eq!((found.slowest, found.straggler), (None, None));
    assert!(
        found
            .not_captured
            .iter()
            .any(|missing| missing.what.starts_with("iterations"))
    );
    let nothing = of(&[&Timeline::default()], &RanksParams::default());
    assert!(nothing.ranks.is_empty() && nothing.not_captured[0].what == "the GPUs of capture 0");
}
