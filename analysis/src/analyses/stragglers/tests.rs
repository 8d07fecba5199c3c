//! Waits of ranks in traces made by hand.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{ColumnId, Timeline};

use super::*;
use crate::input::Input;

/// A rank whose all-reduces of 4,000 bytes run at these times.
fn rank(device: u32, times: &[(u64, u64)]) -> Timeline {
    let mut trace = Trace::new();
    add(&mut trace, device, times);
    trace.build()
}

fn add(trace: &mut Trace, device: u32, times: &[(u64, u64)]) {
    let stream = trace.stream(1, device, 20);
    for (start, end) in times {
        let kernel = trace.kernel(stream, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", *start, *end);
        trace.text(kernel, ColumnId::ElementType, "Float");
        trace.text(kernel, ColumnId::ProcessGroup, "0");
        trace.number(kernel, ColumnId::InElements, 1000);
        trace.number(kernel, ColumnId::GroupSize, 2);
    }
}

fn result(timelines: &[&Timeline]) -> StragglersResult {
    let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
    let inputs = Inputs::new(&inputs).unwrap();
    Stragglers::run(&inputs, &StragglersParams::default()).unwrap()
}

#[test]
fn the_rank_that_waits_least_is_the_straggler() {
    let mut trace = Trace::new();
    add(&mut trace, 0, &[(0, 100), (200, 300), (400, 500)]);
    add(&mut trace, 1, &[(60, 100), (250, 300), (410, 500)]);
    let result = result(&[&trace.build()]);
    assert_eq!((result.straggler, result.clocks), (Some(1), ClockAlignment::OneClock));
    // Rank 0 waits 60, 50 and 10 ns; rank 1 never.
    assert_eq!(result.wait_ns, 120);
    assert_eq!(result.end_skew_median_ns, Some(0.0));
    let [straggler, other] = &result.ranks[..] else {
        panic!("{result:?}");
    };
    assert_eq!((straggler.rank, straggler.wait_ns, straggler.last), (1, 0, 3));
    assert_eq!((other.wait_ns, other.collective_ns, other.first), (120, 300, 3));
    // Latencies are 40, 50 and 90 ns: 12,000 bytes in 180 ns, and the factor of two ranks is 1.
    let row = &result.rows[0];
    assert_eq!((row.latency_ns, row.max_start_skew_ns), (180, 60));
    assert!((row.bus_bytes_per_second.unwrap() - 12_000.0 / 180e-9).abs() < 1.0);
    assert_eq!(result.worst[0].place.end_ns, 100);
}

#[test]
fn clocks_of_captures_are_aligned_by_the_ends_of_collectives() {
    let first = rank(0, &[(0, 100), (200, 300), (400, 500), (950, 1000)]);
    // The same collectives, on a clock that is 7,000 ns ahead, 60 ns later to each.
    let late = rank(0, &[(7060, 7100), (7260, 7300), (7460, 7500), (7970, 8000)]);
    let result = result(&[&first, &late]);
    assert_eq!((result.matched, result.apart), (4, 0));
    assert_eq!((result.straggler, result.clocks), (Some(1), ClockAlignment::ByEnds));
    assert_eq!(result.end_skew_median_ns, Some(0.0));
    assert_eq!(result.wait_ns, 60 + 60 + 60 + 20);
    let offsets: Vec<i64> = result.ranks.iter().map(|rank| rank.clock_offset_ns).collect();
    assert_eq!(offsets, [3500, -3500]);
}

#[test]
fn captures_that_begin_at_different_collectives_are_matched() {
    let times = [(0, 100), (150, 200), (400, 500), (530, 600), (900, 1000), (1400, 1430)];
    let first = rank(0, &times);
    let second = rank(0, &times[2..]);
    let result = result(&[&first, &second]);
    assert_eq!((result.matched, result.unmatched, result.wait_ns), (4, 2, 0));
    assert_eq!(result.straggler, None, "no rank waits, and so none is waited for");
}

#[test]
fn captures_of_different_runs_are_told_from_stragglers() {
    let first = rank(0, &[(0, 10), (1000, 1010), (2000, 2010)]);
    let second = rank(0, &[(0, 10), (700, 710), (9000, 9010)]);
    let result = result(&[&first, &second]);
    assert!(result.apart > result.matched, "{result:?}");
    assert!(
        result
            .not_captured
            .iter()
            .any(|one| one.what.contains("most collectives"))
    );
}

#[test]
fn one_rank_alone_waits_for_nobody_that_was_captured() {
    let result = result(&[&rank(0, &[(0, 10)])]);
    assert_eq!((result.straggler, result.matched, result.unmatched), (None, 0, 1));
    assert!(result.not_captured[0].reason.contains("two ranks"));
}
