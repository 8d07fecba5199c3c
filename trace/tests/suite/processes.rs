//! Chrome traces of several processes: whose GPU work it is, and which call launched it.

use std::collections::BTreeSet;

use flopwatch_model::{Category, ColumnId, Events, LossReason, RowId, Timeline, Track};
use flopwatch_summary::summarise;
use flopwatch_trace::{ReadLimits, read};

use crate::capture::{lost, spans, timeline_of};
use crate::cases::case;
use crate::kineto::read_text;

/// Of each piece of GPU work its name, its process, and how many ns it began behind the call that
/// launched it, sorted.
pub(crate) fn launches(timeline: &Timeline) -> Vec<(&str, u32, Option<u64>)> {
    let capture = &timeline.capture;
    let mut found = Vec::new();
    for (_, events) in capture.events.iter().filter(|(category, _)| category.is_gpu_work()) {
        for at in 0..events.len() {
            let process = timeline.row(events.row[at]).unwrap().process;
            let call = events.number(ColumnId::Launch, at);
            let delay = call.map(|call| {
                let calls = &capture.events[&Category::CudaApi];
                let call = usize::try_from(call).unwrap();
                assert_eq!(timeline.row(calls.row[call]).unwrap().process, process);
                events.start_ns[at] - calls.start_ns[call]
            });
            found.push((events.name_of(at), process, delay));
        }
    }
    found.sort();
    found
}

/// The timeline of a case, or nothing where it is not there.
fn timeline_of_case(name: &str) -> Option<Timeline> {
    Some(timeline_of(read(&case(name)?, &ReadLimits::default()).unwrap()))
}

/// Fails where anything but this was inferred, so often.
#[track_caller]
fn assert_inferred(timeline: &Timeline, what: &str, count: u64) {
    let mut inferred = lost(&timeline.capture);
    inferred.retain(|loss| loss.0 == LossReason::Inferred);
    assert_eq!(inferred, [(LossReason::Inferred, what.to_owned(), count)]);
}

/// Capture, device and stream of the rows that GPU work is on, and their labels.
fn gpu_rows(timeline: &Timeline) -> BTreeSet<(u32, Option<u32>, Option<u64>, &str)> {
    let events = timeline.capture.events.iter();
    let work = events.filter(|(category, _)| category.is_gpu_work());
    let rows = work.flat_map(|(_, events)| events.row.iter().map(move |row| timeline.row(*row).unwrap()));
    rows.map(|row| (row.capture, row.device, row.stream, row.label.as_str()))
        .collect()
}

/// Ordinals of GPUs, and how many ns each was busy.
fn busy(timeline: &Timeline) -> Vec<(u32, u64)> {
    let gpus = summarise(timeline).gpus.into_iter();
    gpus.map(|gpu| (gpu.device, gpu.busy_ns)).collect()
}

#[test]
fn the_gpu_work_of_ranks_that_were_merged_is_of_its_own_rank() {
    let Some(timeline) = timeline_of_case("merged_two_ranks_two_gpus.json") else {
        return;
    };
    let of_ranks = [("gemm_rank0", 4000, Some(20_000)), ("gemm_rank1", 4001, Some(50_000))];
    assert_eq!(launches(&timeline), of_ranks.map(|launch| [launch; 5]).concat());
    assert_eq!(
        gpu_rows(&timeline),
        BTreeSet::from([
            (0, Some(0), Some(7), "python ([TP00] 4000) GPU 0 stream 7"),
            (0, Some(1), Some(7), "python ([TP01] 4001) GPU 1 stream 7"),
        ])
    );
    let told = "GPU work given to one of several processes by their names";
    assert_inferred(&timeline, told, 10);
}

/// A call of 5 us at a time in us, and the kernel that it launched 10 us later, as JSON has ids of
/// processes.
fn launch(process: &str, gpu: &str, id: u32, at: u32, name: &str) -> [String; 2] {
    let later = at + 10;
    [
        format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {process}, "tid": 1, "ts": {at},
                "dur": 5, "args": {{"correlation": {id}}}}}"#
        ),
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": {gpu}, "tid": 7, "ts": {later}, "dur": 2,
                "args": {{"device": 0, "stream": 7, "correlation": {id}}}}}"#
        ),
    ]
}

fn read_events(events: &[String]) -> Timeline {
    let text = format!(r#"{{"schemaVersion": 1, "traceEvents": [{}]}}"#, events.join(",\n"));
    timeline_of(read_text(&text).unwrap())
}

#[test]
fn gpus_of_one_number_of_several_ranks_are_several() {
    let events = [
        launch(r#""[TP00] 7""#, r#""[TP00] 0""#, 1, 100, "a"),
        launch(r#""[TP01] 7""#, r#""[TP01] 0""#, 1, 103, "b"),
        launch(r#""[TP00] 7""#, r#""[TP00] 0""#, 2, 200, "a"),
    ];
    let timeline = read_events(&events.concat());
    // Two processes of one number get numbers of their own.
    let of_a = ("a", 7, Some(10_000));
    assert_eq!(launches(&timeline), [of_a, of_a, ("b", 1, Some(10_000))]);
    assert_eq!(
        gpu_rows(&timeline),
        BTreeSet::from([
            (0, Some(0), Some(7), "[TP00] 7 GPU 0 stream 7"),
            (1, Some(0), Some(7), "[TP01] 7 GPU 0 stream 7"),
        ])
    );
    assert_eq!(busy(&timeline), [(0, 4000), (0, 2000)]);
}

#[test]
fn ids_that_one_process_alone_has_tell_whose_gpu_work_it_is() {
    let [call, kernel] = launch("100", "0", 1, 100, "a");
    let [other, its] = launch("200", "0", 2, 103, "b");
    let [more, last] = launch("100", "0", 3, 120, "a");
    let timeline = read_events(&[call, other, kernel, its, more, last]);
    let of_a = ("a", 100, Some(10_000));
    assert_eq!(launches(&timeline), [of_a, of_a, ("b", 200, Some(10_000))]);
    let told = "GPU work given to one of several processes by correlation ids";
    assert_inferred(&timeline, told, 3);
}

#[test]
fn traces_that_were_put_one_behind_the_other_tell_by_the_order_of_the_file() {
    let events = [
        launch("100", "0", 1, 100, "a"),
        launch("100", "0", 2, 200, "a"),
        launch("200", "0", 1, 103, "b"),
        launch("200", "0", 2, 203, "b"),
    ];
    let timeline = read_events(&events.concat());
    let (of_a, of_b) = (("a", 100, Some(10_000)), ("b", 200, Some(10_000)));
    assert_eq!(launches(&timeline), [of_a, of_a, of_b, of_b]);
    let told = "GPU work given to one of several processes by the order of the file";
    assert_inferred(&timeline, told, 4);
}

#[test]
fn gpu_work_of_which_nothing_tells_whose_it_is_belongs_to_none() {
    let events = [
        launch("100", "0", 1, 100, "a"),
        launch("200", "0", 1, 103, "b"),
        launch("100", "0", 2, 200, "a"),
        launch("200", "0", 2, 203, "b"),
    ];
    let timeline = read_events(&events.concat());
    let (of_a, of_b) = (("a", 0, None), ("b", 0, None));
    assert_eq!(launches(&timeline), [of_a, of_a, of_b, of_b]);
    let what = "launches of GPU work that may be of any of several processes".to_owned();
    assert_eq!(lost(&timeline.capture), [(LossReason::Truncated, what, 4)]);
}

#[test]
fn work_that_began_before_a_call_is_not_of_it() {
    let events = [
        launch("100", "0", 1, 100, "a"),
        launch("200", "0", 1, 200, "b"),
        launch("100", "0", 9, 300, "a"),
    ];
    let timeline = read_events(&events.concat());
    let of_a = ("a", 100, Some(10_000));
    // The second kernel may be of either call of its id.
    assert_eq!(launches(&timeline), [of_a, of_a, ("b", 0, None)]);
}

#[test]
fn a_process_of_its_own_name_keeps_it_and_has_a_number() {
    let text = r#"{"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 100, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "Trace", "name": "b", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 1},
        {"ph": "X", "cat": "Trace", "name": "c", "pid": "Other spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 1}]}"#;
    let timeline = timeline_of(read_text(text).unwrap());
    let rows = timeline.capture.rows.iter();
    let rows: BTreeSet<(u32, &str)> = rows.map(|row| (row.process, row.label.as_str())).collect();
    let expected = [
        (1, "Other spans PyTorch Profiler"),
        (2, "Spans PyTorch Profiler"),
        (100, "process (100) thread 1"),
    ];
    assert_eq!(rows, expected.into());
}

#[test]
fn arrows_pair_calls_and_work_of_rocm_that_has_no_correlation_ids() {
    let Some(timeline) = timeline_of_case("rocm_old_no_correlation.json") else {
        return;
    };
    let work = [("CopyHostToDevice", 1979, Some(40_000)), ("gemm", 1979, Some(18_000))];
    assert_eq!(launches(&timeline), work.map(|launch| [launch; 3]).concat());
    assert_eq!(timeline.capture.events[&Category::CudaMemcpyH2d].len(), 3);
    let devices: BTreeSet<Option<u32>> = gpu_rows(&timeline).into_iter().map(|row| row.1).collect();
    assert_eq!(devices, BTreeSet::from([Some(2)]));
    assert_inferred(&timeline, "launches found by arrows, without correlation ids", 6);
}

#[test]
fn an_external_id_pairs_where_a_single_call_has_it() {
    let call = |id, at| {
        format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 9, "tid": 9, "ts": {at}, "dur": 3,
                "args": {{"External id": {id}}}}}"#
        )
    };
    let kernel = |id, at, name| {
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 0, "ts": {at}, "dur": 4,
                "args": {{"External id": {id}}}}}"#
        )
    };
    let timeline = read_events(&[
        call(81, 100),
        call(82, 110),
        call(82, 115),
        kernel(81, 120, "alone"),
        kernel(82, 130, "of two"),
    ]);
    let expected = [("alone", 9, Some(20_000)), ("of two", 9, None)];
    assert_eq!(launches(&timeline), expected);
    let told = "launches found by External id, without correlation ids";
    assert_inferred(&timeline, told, 1);
}

#[test]
fn streams_that_are_named_by_addresses_stay_apart() {
    let Some(timeline) = timeline_of_case("rocm_hip_stream_64bit.json") else {
        return;
    };
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    let stream = |row: &RowId| timeline.row(*row).unwrap().stream;
    let mut streams: Vec<Option<u64>> = kernels.row.iter().map(stream).collect();
    streams.sort_unstable();
    let (first, second) = (Some(94_277_120_384), Some(140_352_768_000));
    assert_eq!(streams, [first, first, second, second]);
    assert!(launches(&timeline).iter().all(|(.., delay)| *delay == Some(10_000)));
}

#[test]
fn a_wait_for_a_whole_context_is_of_no_stream() {
    let text = r#"{"traceEvents": [{"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": 4294967295, "ts": 1,
        "dur": 1, "args": {"device": 0, "context": 1, "stream": 4294967295}}]}"#;
    let capture = read_text(text).unwrap();
    assert_eq!(capture.rows[0].stream, None);
}

#[test]
fn calls_of_intels_runtime_are_calls() {
    let Some(timeline) = timeline_of_case("xpu_runtime_category.json") else {
        return;
    };
    let events = &timeline.capture.events;
    assert_eq!(events[&Category::CudaApi].len(), 5);
    assert_eq!(events[&Category::CudaMemcpyH2d].len(), 1);
    let copy = ("Memcpy M2D(Host -> Device)", 777, Some(10_000));
    let gemm = ("gemm_kernel", 777, Some(18_000));
    assert_eq!(launches(&timeline), [copy, gemm, gemm, gemm]);
    // Copies and kernels of one queue are on one stream.
    let label = "process (777) GPU 0 stream 64";
    assert_eq!(gpu_rows(&timeline), BTreeSet::from([(0, Some(0), Some(64), label)]));
}

#[test]
fn every_accelerators_runtime_is_read_as_calls_and_its_work_as_kernels() {
    for (calls, work) in [
        ("mtia_runtime", "mtia_ccp_events"),
        ("privateuse1_runtime", "kernel"),
        ("privateuse1_driver", "kernel"),
        ("xpu_driver", "kernel"),
    ] {
        let events = launch("5", "0", 1, 100, "a");
        let events = events.map(|event| {
            event
                .replace("\"cuda_runtime\"", &format!("\"{calls}\""))
                .replace("\"kernel\"", &format!("\"{work}\""))
        });
        let timeline = read_events(&events);
        let events = &timeline.capture.events;
        assert_eq!(launches(&timeline), [("a", 5, Some(10_000))], "{calls}");
        assert_eq!(busy(&timeline), [(0, 2000)], "{work}");
        assert_eq!(events.get(&Category::CudaKernel).map(Events::len), Some(1), "{work}");
    }
}

#[test]
fn a_counter_of_a_process_is_no_gpus() {
    let Some(timeline) = timeline_of_case("counter_of_a_process.json") else {
        return;
    };
    let [series] = timeline.capture.counters.as_slice() else {
        panic!("one series")
    };
    assert_eq!(series.device, "process41234");
    assert_eq!(series.metric, "queue_depth.batches");
    assert_eq!(series.value, [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_counter_of_a_gpu_is_the_gpus() {
    let counter = r#"{"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 100, "args": {"busy": 0.5}}"#;
    let events = [launch("5", "0", 1, 100, "a").to_vec(), vec![counter.to_owned()]].concat();
    let timeline = read_events(&events);
    assert_eq!(timeline.capture.counters[0].device, "gpu0");
}

#[test]
fn begins_and_ends_in_any_order_are_the_ranges_that_their_times_say() {
    let Some(timeline) = timeline_of_case("begin_end_not_in_time_order.json") else {
        return;
    };
    let expected = [("op0", 0), ("op1", 100_000), ("op2", 200_000), ("op3", 300_000)];
    let expected = expected.map(|(name, start)| (name, start, 60_000));
    assert_eq!(spans(&timeline.capture.events[&Category::CpuOp]), expected);
    assert_eq!(timeline.capture.losses.list(), []);
}

#[test]
fn an_end_that_says_a_name_is_of_the_range_of_that_name() {
    let capture = read_text(
        r#"[{"ph": "B", "cat": "nvtx", "name": "first", "pid": 1, "tid": 2, "ts": 0},
            {"ph": "B", "cat": "nvtx", "name": "second", "pid": 1, "tid": 2, "ts": 10},
            {"ph": "E", "name": "first", "pid": 1, "tid": 2, "ts": 10},
            {"ph": "E", "name": "second", "pid": 1, "tid": 2, "ts": 20},
            {"ph": "E", "name": "third", "pid": 1, "tid": 2, "ts": 30}]"#,
    )
    .unwrap();
    let ranges = spans(&capture.events[&Category::NvtxRange]);
    assert_eq!(ranges, [("first", 0, 10_000), ("second", 10_000, 10_000)]);
    assert!(capture.rows.iter().all(|row| row.track == Track::Nvtx));
}
