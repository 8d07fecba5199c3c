//! The NVTX ranges around each call of the CUDA API, as `nsys stats` matches them; the join the
//! other way round is in [`enclosing`](crate::enclosing).
//!
//! A range encloses a call of its own thread that starts not before it and ends not after it.

use flopwatch_model::{Category, EventId, Events, RowId, Timeline, index};

use crate::enclosing::Threads;
use crate::range_tree::OpenRanges;

/// Calls `found` for each of `calls` with the ranges around it: events of
/// [`Category::NvtxRange`], the one that began first comes first, so that of nested ranges the
/// innermost is the last. A call outside of all ranges gets none.
///
/// `calls` are events of [`Category::CudaApi`], rising. Needs rows.
pub fn visit(timeline: &Timeline, calls: impl Iterator<Item = EventId>, mut found: impl FnMut(EventId, &[EventId])) {
    let events = &timeline.capture.events;
    let Some(api) = events.get(&Category::CudaApi) else {
        return;
    };
    let nothing = Events::new(Category::NvtxRange);
    let ranges = events.get(&Category::NvtxRange).unwrap_or(&nothing);
    let threads = Threads::of(timeline);
    let thread_of = |row: RowId| threads.of_row(row).map(index);
    let mut open: Vec<OpenRanges> = Vec::new();
    open.resize_with(index(threads.count()), OpenRanges::default);
    let mut coming = EventId::all().zip(ranges.start_ns.iter().zip(&ranges.row)).peekable();
    let mut around = Vec::new();
    for call in calls {
        let at = call.index();
        let (Some(start), Some(row)) = (api.start_ns.get(at), api.row.get(at)) else {
            continue;
        };
        while let Some((range, (began, row))) = coming.next_if(|(_, (began, _))| *began <= start) {
            if let Some(open) = thread_of(*row).and_then(|thread| open.get_mut(thread)) {
                open.begin(range, *began, ranges);
            }
        }
        around.clear();
        let end = api.end_ns(at);
        if let Some(open) = thread_of(*row).and_then(|thread| open.get_mut(thread)) {
            open.drop_ended(*start, ranges);
            around.extend(open.until(end, ranges));
        }
        found(call, &around);
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_is_in_the_ranges_of_its_own_thread_that_hold_all_of_it() {
        let mut trace = Trace::new();
        let (ranges, calls) = (trace.thread(1, 1, Track::Nvtx), trace.thread(1, 1, Track::CudaApi));
        let other = trace.thread(1, 2, Track::Nvtx);
        for (row, name, start, end) in [
            (ranges, "step", 0, 100),
            (ranges, "forward", 10, 50),
            (ranges, "before", 0, 5),
            (other, "elsewhere", 0, 100),
        ] {
            trace.event(Category::NvtxRange, row, name, start, end);
        }
        for (start, end) in [(10, 50), (40, 51), (60, 70), (100, 101)] {
            trace.call(calls, "cudaLaunchKernel", start, end);
        }
        let timeline = trace.build();
        let names = &timeline.capture.events[&Category::NvtxRange];
        let mut found = Vec::new();
        visit(&timeline, EventId::all().take(4), |_, around| {
            found.push(
                around
                    .iter()
                    .map(|range| names.name_of(range.index()))
                    .collect::<Vec<_>>(),
            );
        });
        assert_eq!(found, [vec!["step", "forward"], vec!["step"], vec!["step"], vec![]]);
    }

    proptest! {
        #[test]
        fn every_enclosing_range_is_found(
            spans in vec((0_u64..40, 0_u64..40, 1_u64..3), 0..30),
            launches in vec((0_u64..60, 0_u64..5, 1_u64..3), 0..30),
        ) {
            let mut trace = Trace::new();
            let rows: Vec<(RowId, RowId)> = [1, 2]
                .map(|thread| (trace.thread(1, thread, Track::Nvtx), trace.thread(1, thread, Track::CudaApi)))
                .to_vec();
            let row = |thread: u64| rows[usize::try_from(thread).unwrap() - 1];
            for (start, length, thread) in &spans {
                trace.event(Category::NvtxRange, row(*thread).0, "range", *start, start + length);
            }
            for (start, length, thread) in &launches {
                trace.call(row(*thread).1, "call", *start, start + length);
            }
            let timeline = trace.build();
            let (Some(ranges), Some(calls)) = (
                timeline.capture.events.get(&Category::NvtxRange),
                timeline.capture.events.get(&Category::CudaApi),
            ) else {
                return Ok(());
            };
            let thread = |row: RowId| timeline.capture.rows[row.index()].thread;
            visit(&timeline, EventId::all().take(calls.len()), |call, around| {
                let call = call.index();
                let expected = (0..ranges.len()).filter(|range| {
                    thread(ranges.row[*range]) == thread(calls.row[call])
                        && ranges.start_ns[*range] <= calls.start_ns[call]
                        && ranges.end_ns(*range) >= calls.end_ns(call)
                });
                let found: Vec<usize> = around.iter().map(|range| range.index()).collect();
                assert_eq!(found, expected.collect::<Vec<_>>());
            });
        }
    }
}
