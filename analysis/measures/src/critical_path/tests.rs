//! Paths that can be counted.

use flopwatch_analysis_testing::{EventHandle, Trace};
use flopwatch_model::{ColumnId, Row, Track};
use proptest::collection::vec;
use proptest::prelude::*;

use super::PathPart::{Communication, Compute, Cpu, DataLoading, KernelGap, LaunchOverhead, Sync};
use super::*;

struct Rows {
    ops: RowId,
    api: RowId,
    other: RowId,
    near: RowId,
    far: RowId,
}

fn trace() -> (Trace, Rows) {
    let mut trace = Trace::new();
    let rows = Rows {
        ops: trace.thread(1, 10, Track::CpuOp),
        api: trace.thread(1, 10, Track::CudaApi),
        other: trace.thread(1, 11, Track::CpuOp),
        near: trace.stream(1, 0, 7),
        far: trace.stream(1, 0, 9),
    };
    (trace, rows)
}

fn launch(trace: &mut Trace, rows: &Rows, call: (u64, u64), stream: RowId, name: &str, ran: (u64, u64)) {
    trace.launch_kernel((rows.api, call.0, call.1), (stream, name, ran.0, ran.1));
}

fn path(trace: Trace, until: u64) -> (CriticalPath, Timeline) {
    let timeline = trace.build();
    let window = PathWindow {
        time: Interval::new(0, until),
        process: (0, 0, 1),
        thread: Some(10),
    };
    (of(&timeline, &GpuWork::of(&timeline), window), timeline)
}

fn parts(path: &CriticalPath) -> Vec<(PathPart, u64)> {
    path.parts().into_iter().collect()
}

#[test]
fn the_path_goes_through_a_launch_the_kernel_and_the_wait_for_it() {
    let (mut trace, rows) = trace();
    trace.event(Category::CpuOp, rows.ops, "aten::mm", 0, 25);
    launch(&mut trace, &rows, (10, 20), rows.near, "gemm", (30, 130));
    trace.call(rows.api, "cudaStreamSynchronize", 25, 140);
    trace.event(Category::CpuOp, rows.ops, "aten::add", 140, 160);
    let (found, _) = path(trace, 160);
    let expected = [(Cpu, 30), (LaunchOverhead, 20), (Compute, 100), (Sync, 10)];
    assert_eq!(parts(&found), expected);
    assert_eq!((found.len_ns(), found.gpu_chain_ns), (160, 100));
    assert_eq!(found.span(), Some(Interval::new(0, 160)));
}

#[test]
fn code_between_operators_is_processor_time() {
    let (mut trace, rows) = trace();
    trace.event(Category::CpuOp, rows.ops, "aten::mm", 0, 10);
    trace.event(Category::CpuOp, rows.ops, "aten::mm", 100, 110);
    launch(&mut trace, &rows, (2, 4), rows.near, "gemm", (6, 9));
    launch(&mut trace, &rows, (102, 104), rows.near, "gemm", (106, 109));
    let (found, _) = path(trace, 200);
    assert_eq!(parts(&found), [(Cpu, 110)]);
    let own: u64 = found
        .segments
        .iter()
        .filter(|segment| segment.event.is_none())
        .map(|segment| segment.time.len())
        .sum();
    assert_eq!(own, 90);
}

#[test]
fn control_passes_to_the_thread_that_works_meanwhile() {
    let (mut trace, rows) = trace();
    trace.event(Category::CpuOp, rows.ops, "forward", 0, 10);
    trace.event(Category::CpuOp, rows.other, "backward1", 20, 40);
    trace.event(Category::CpuOp, rows.other, "backward2", 50, 80);
    trace.event(Category::CpuOp, rows.ops, "step", 90, 100);
    let (found, _) = path(trace, 100);
    assert_eq!(found.len_ns(), 100);
    let of_other: u64 = found
        .segments
        .iter()
        .filter(|segment| segment.row == rows.other && segment.event.is_some())
        .map(|segment| segment.time.len())
        .sum();
    assert_eq!(of_other, 50);
}

#[test]
fn work_that_waits_in_its_stream_follows_the_work_before_it() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "gemm", (10, 50));
    launch(
        &mut trace,
        &rows,
        (2, 4),
        rows.near,
        "ncclDevKernel_AllReduce",
        (55, 100),
    );
    let (found, _) = path(trace, 100);
    let expected = [(LaunchOverhead, 10), (Compute, 40), (Communication, 45), (KernelGap, 5)];
    assert_eq!(parts(&found), expected);
}

#[test]
fn a_stream_that_waits_for_an_event_follows_the_other_stream() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "gemm", (10, 60));
    trace.call(rows.api, "cudaStreamWaitEvent", 3, 4);
    launch(&mut trace, &rows, (5, 6), rows.far, "softmax", (64, 90));
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(LaunchOverhead, 10), (Compute, 76), (Sync, 4)]);
}

#[test]
fn a_call_that_waits_for_nothing_is_processor_time() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "gemm", (4, 8));
    trace.call(rows.api, "cudaDeviceSynchronize", 10, 40);
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(Cpu, 40)]);
}

#[test]
fn ranges_that_load_data_are_told_from_other_processor_time() {
    let (mut trace, rows) = trace();
    let marks = trace.thread(1, 10, Track::Annotation);
    trace.event(Category::Annotation, marks, "enumerate(DataLoader)#__next__", 10, 70);
    trace.event(Category::CpuOp, rows.ops, "aten::stack", 0, 80);
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(Cpu, 20), (DataLoading, 60)]);
}

#[test]
fn clocks_that_differ_make_no_path_backwards() {
    let (mut trace, rows) = trace();
    // The GPU's clock says that the kernel began before its launch.
    launch(&mut trace, &rows, (20, 25), rows.near, "gemm", (10, 90));
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(Compute, 80)]);
}

/// The row of synchronisations of a stream of device 0.
fn synchronizes(trace: &mut Trace, stream: u64) -> RowId {
    trace.row(Row {
        device: Some(0),
        context: Some(1),
        stream: Some(stream),
        ..Row::of(1, Track::CudaSync)
    })
}

/// A synchronisation of `kind` by `call` that waits for an event: its stream, and the place in time
/// of the call that recorded it.
fn waits_for(trace: &mut Trace, row: RowId, kind: &str, call: (EventHandle, u64, u64), recorded: (u64, u64)) {
    let (call, start, end) = call;
    let sync = trace.event(Category::CudaSync, row, kind, start, end);
    trace.launched_by(sync, call);
    let (stream, record) = recorded;
    trace.number(sync, ColumnId::WaitOnStream, stream);
    // Correlations of calls count from 1.
    trace.number(sync, ColumnId::WaitOnRecord, record + 1);
}

/// A stream waits for an event of `near`, which was recorded in time; work of a third stream ends
/// later and has nothing to do with it.
fn event_of_another_stream(is_said: bool) -> (CriticalPath, Timeline) {
    let (mut trace, rows) = trace();
    let third = trace.stream(1, 0, 11);
    launch(&mut trace, &rows, (0, 5), rows.near, "matmul", (10, 30));
    trace.call(rows.api, "cudaEventRecord", 6, 8);
    launch(&mut trace, &rows, (10, 15), third, "other", (20, 620));
    let wait = trace.call(rows.api, "cudaStreamWaitEvent", 20, 22);
    if is_said {
        let row = synchronizes(&mut trace, 9);
        waits_for(&mut trace, row, "Stream Wait Event", (wait, 21, 22), (7, 1));
    }
    trace.event(Category::CpuOp, rows.ops, "slow_host_work", 30, 600);
    launch(&mut trace, &rows, (605, 610), rows.far, "behind", (625, 900));
    trace.call(rows.api, "cudaDeviceSynchronize", 700, 910);
    path(trace, 1000)
}

#[test]
fn a_stream_waits_for_the_event_that_the_capture_names_and_for_no_other_stream() {
    let (found, timeline) = event_of_another_stream(true);
    let names = |path: &CriticalPath| -> Vec<String> {
        let events = path.segments.iter().filter_map(|segment| segment.event);
        let names = events.map(|(category, at)| timeline.capture.events[&category].name_of(index(at)).to_owned());
        names.collect()
    };
    assert!(!names(&found).contains(&"other".to_owned()), "{found:?}");
    let expected = [(Cpu, 605), (LaunchOverhead, 20), (Compute, 275), (Sync, 10)];
    assert_eq!(parts(&found), expected);
    assert_eq!(found.guessed_waits, 0);
}

#[test]
fn where_the_capture_names_no_event_the_wait_is_told_to_be_a_guess() {
    let (found, _) = event_of_another_stream(false);
    assert_eq!(found.guessed_waits, 1);
}

#[test]
fn work_that_a_said_event_holds_up_follows_what_was_launched_before_its_record() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "before", (10, 60));
    trace.call(rows.api, "cudaEventRecord", 3, 4);
    launch(&mut trace, &rows, (5, 6), rows.near, "behind the record", (60, 62));
    let wait = trace.call(rows.api, "cudaStreamWaitEvent", 7, 8);
    let row = synchronizes(&mut trace, 9);
    waits_for(&mut trace, row, "Stream wait sync", (wait, 7, 8), (7, 1));
    launch(&mut trace, &rows, (9, 10), rows.far, "softmax", (64, 90));
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(LaunchOverhead, 10), (Compute, 76), (Sync, 4)]);
    assert_eq!((found.len_ns(), found.guessed_waits), (90, 0));
}

#[test]
fn a_call_that_waits_for_an_event_ends_with_the_stream_of_its_record() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "short", (4, 40));
    trace.call(rows.api, "cudaEventRecord", 3, 4);
    launch(&mut trace, &rows, (5, 6), rows.far, "long", (8, 44));
    let wait = trace.call(rows.api, "cudaEventSynchronize", 10, 45);
    let row = synchronizes(&mut trace, 7);
    waits_for(&mut trace, row, "Event Sync", (wait, 10, 45), (7, 1));
    let (found, _) = path(trace, 45);
    assert_eq!(parts(&found), [(LaunchOverhead, 4), (Compute, 36), (Sync, 5)]);
}

#[test]
fn a_stream_whose_work_overlaps_by_a_microsecond_keeps_its_order() {
    let (mut trace, rows) = trace();
    let graph = trace.call(rows.api, "cudaGraphLaunch", 0, 500);
    for at in 0..10_u64 {
        // Each begins before the one before has ended.
        let kernel = trace.kernel(rows.near, "node", 1000 + at * 1000, 3000 + at * 1000);
        trace.launched_by(kernel, graph);
    }
    let (found, _) = path(trace, 20_000);
    assert_eq!(parts(&found), [(LaunchOverhead, 1000), (Compute, 11_000)]);
    assert_eq!(found.gpu_chain_ns, 11_000);
}

#[test]
fn work_inside_other_work_of_its_stream_is_not_counted_twice() {
    let (mut trace, rows) = trace();
    trace.kernel(rows.near, "outer", 0, 100);
    trace.kernel(rows.near, "inner", 10, 20);
    trace.kernel(rows.near, "next", 100, 130);
    let (found, _) = path(trace, 200);
    assert_eq!(parts(&found), [(Compute, 130)]);
}

#[test]
fn works_of_a_stream_that_two_threads_launch_are_one_chain() {
    let (mut trace, rows) = trace();
    let second = trace.thread(1, 12, Track::CudaApi);
    trace.launch_kernel((rows.api, 0, 2), (rows.near, "one", 5, 105));
    trace.launch_kernel((second, 150, 152), (rows.near, "two", 160, 260));
    let (found, _) = path(trace, 300);
    assert_eq!(parts(&found), [(LaunchOverhead, 5), (Compute, 200)]);
}

#[test]
fn a_call_without_length_launches_its_work() {
    let (mut trace, rows) = trace();
    trace.event(Category::CpuOp, rows.ops, "aten::mm", 0, 20);
    launch(&mut trace, &rows, (20, 20), rows.near, "gemm", (26, 90));
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(Cpu, 20), (LaunchOverhead, 6), (Compute, 64)]);
}

/// Begin of the call, thread, stream, delay behind the begin of the call, length, and whether the
/// stream waits before, for what the other one was given.
type Piece = (u64, bool, bool, i64, u64, bool);

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    vec(
        (
            0_u64..400,
            any::<bool>(),
            any::<bool>(),
            -3_i64..80,
            1_u64..90,
            any::<bool>(),
        ),
        1..25,
    )
}

/// The timeline, and when each stream was busy.
fn program(pieces: &[Piece], says_events: bool) -> (Timeline, [Intervals; 2]) {
    let mut trace = Trace::new();
    let threads = [10, 11].map(|thread| trace.thread(1, thread, Track::CudaApi));
    let streams = [7, 9].map(|stream| trace.stream(1, 0, stream));
    let syncs = [7, 9].map(|stream| synchronizes(&mut trace, stream));
    let mut sorted = pieces.to_vec();
    sorted.sort_unstable();
    let mut calls = 0;
    let mut busy = [Vec::new(), Vec::new()];
    for (start, second_thread, second_stream, delay, length, waits) in sorted {
        let (thread, stream) = (usize::from(second_thread), usize::from(second_stream));
        let other = 1 - stream;
        let start = 10 + start * 10;
        if waits {
            trace.call(threads[thread], "cudaEventRecord", start, start + 1);
            let wait = trace.call(threads[thread], "cudaStreamWaitEvent", start + 2, start + 3);
            if says_events {
                let number = if other == 0 { 7 } else { 9 };
                let call = (wait, start + 2, start + 3);
                waits_for(&mut trace, syncs[stream], "Stream Wait Event", call, (number, calls));
            }
            calls += 2;
        }
        let begin = (start + 4).saturating_add_signed(delay);
        let call = (threads[thread], start + 4, start + 6);
        let work = (streams[stream], "kernel", begin, begin + length);
        trace.launch_kernel(call, work);
        busy[stream].push(Interval::new(begin, begin + length));
        calls += 1;
    }
    (trace.build(), busy.map(Intervals::union_of))
}

proptest! {
    /// Works of a stream overlap, nest, begin before their calls and are launched by two threads;
    /// events are said or not.
    #[test]
    fn a_path_is_no_longer_than_the_wall_and_no_shorter_than_any_stream_is_busy(
        pieces in pieces(), says_events in any::<bool>(),
    ) {
        let (timeline, busy) = program(&pieces, says_events);
        let work = GpuWork::of(&timeline);
        let window = PathWindow::whole(&timeline, &work).unwrap();
        let found = of(&timeline, &work, window);
        let wall = Interval::of_events(&timeline);
        prop_assert!(found.len_ns() <= wall.len(), "{found:?}");
        for stream in &busy {
            prop_assert!(stream.len_ns() <= found.len_ns(), "{stream:?} {found:?}");
            prop_assert!(stream.len_ns() <= found.gpu_chain_ns, "{stream:?} {found:?}");
        }
        prop_assert!(found.gpu_chain_ns <= wall.len());
        prop_assert!(found.segments.windows(2).all(|two| two[0].time.end <= two[1].time.start), "{found:?}");
        if says_events {
            prop_assert_eq!(found.guessed_waits, 0);
        }
    }
}
