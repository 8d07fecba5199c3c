//! Tables of traces made by hand, of which every figure can be counted.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Category, ColumnId, Device, Timeline, Track};
use flopwatch_report::page::{Block, Cell, Page};

use super::*;
use crate::catalogue::CATALOGUE;
use crate::definition::Analysis;
use crate::input::{Input, Inputs};
use crate::request::Request;

fn run<A: Analysis>(timeline: &Timeline, params: &A::Params) -> A::Output {
    let inputs = [Input::whole(timeline)];
    A::run(&Inputs::new(&inputs).unwrap(), params).unwrap()
}

fn usual<A: Analysis>(timeline: &Timeline) -> A::Output {
    run::<A>(timeline, &A::Params::default())
}

fn rows(page: &Page) -> Vec<Vec<Cell>> {
    let tables = page.blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    let rows = tables.flat_map(|table| &table.rows);
    rows.map(|row| row.cells.clone()).collect()
}

/// A thread with two nested ranges of one name around a call that launches a graph of two kernels,
/// and another call inside the outer one alone. A third kernel has no launch. Kernels take 10, 20,
/// 30 and 40 ns.
fn nested() -> Timeline {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (calls, ranges) = (trace.thread(1, 11, Track::CudaApi), trace.thread(1, 11, Track::Nvtx));
    trace.event(Category::NvtxRange, ranges, "step", 0, 100);
    trace.event(Category::NvtxRange, ranges, "step", 10, 50);
    let graph = trace.call(calls, "cudaGraphLaunch", 20, 30);
    let single = trace.call(calls, "cudaLaunchKernel", 60, 70);
    for (name, start, end, call) in [
        ("a", 25, 35, Some(graph)),
        ("b", 40, 60, Some(graph)),
        ("a", 200, 230, Some(single)),
        ("a", 300, 340, None),
    ] {
        let kernel = trace.kernel(stream, name, start, end);
        if let Some(call) = call {
            trace.launched_by(kernel, call);
        }
    }
    trace.device(Device {
        id: 0,
        name: "H100".to_owned(),
        ..Device::default()
    });
    trace.build()
}

#[test]
fn times_are_summed_by_name_and_the_largest_total_is_first() {
    let times = usual::<CudaGpuKernSum>(&nested());
    let found = times
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row.instances, row.total_ns));
    assert_eq!(found.collect::<Vec<_>>(), [("a", 3, 80), ("b", 1, 20)]);
    assert_eq!(times.total_ns, 100);
    // 10, 30, 40: the deviation of a sample is the root of (n * 2,600 - 80^2) / (n (n - 1)) with
    // n = 3.
    let page = CudaGpuKernSum::page(&times).unwrap();
    let figures: Vec<Cell> = vec![
        80.0.into(),
        80_u64.into(),
        3_u64.into(),
        26.7.into(),
        30.0.into(),
        10_u64.into(),
        40_u64.into(),
        15.3.into(),
        "a".into(),
    ];
    assert_eq!(rows(&page).first(), Some(&figures));
}

#[test]
fn a_row_that_does_not_fit_is_counted_and_keeps_its_share() {
    let params = NsysKernelParams {
        limit: 1,
        ..NsysKernelParams::default()
    };
    let times = run::<CudaGpuKernSum>(&nested(), &params);
    assert_eq!((times.rows.len(), times.left_out), (1, 1));
    assert!((times.rows[0].share_ratio - 0.8).abs() < 1e-12);
    let trace = run::<CudaGpuTrace>(&nested(), &params);
    assert_eq!((trace.rows[0].start_ns, trace.left_out), (25, 3));
    assert_eq!(trace.rows[0].device.as_deref(), Some("H100 (0)"));
}

#[test]
fn the_innermost_range_of_the_launch_stands_before_a_kernels_name() {
    let params = NsysKernelParams {
        nvtx_name: true,
        ..NsysKernelParams::default()
    };
    let times = run::<CudaGpuKernSum>(&nested(), &params);
    let found = times.rows.iter().map(|row| (row.name.as_str(), row.total_ns));
    assert_eq!(found.collect::<Vec<_>>(), [("a", 40), ("step/a", 40), ("step/b", 20)]);
}

#[test]
fn a_kernel_that_begins_within_the_call_has_not_waited() {
    let timeline = nested();
    let trace = usual::<CudaKernExecTrace>(&timeline);
    let found = trace.rows.iter().map(|row| {
        let name = row.kernel_name.as_str();
        (name, row.queue_duration_ns, row.total_duration_ns, row.thread)
    });
    let expected = [
        ("a", None, 15, Some(11)),
        ("b", Some(10), 40, Some(11)),
        ("a", Some(130), 170, Some(11)),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!((trace.kernels, trace.without_launch), (4, 1));
    let sum = usual::<CudaKernExecSum>(&timeline);
    let found = sum
        .rows
        .iter()
        .map(|row| (row.api_name.as_str(), row.count, row.queued));
    let expected = [
        ("cudaLaunchKernel", 1, 1),
        ("cudaGraphLaunch", 1, 1),
        ("cudaGraphLaunch", 1, 0),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(sum.rows[2].queue, None);
}

#[test]
fn a_range_is_projected_from_the_first_start_to_the_last_end_of_its_work() {
    let trace = usual::<NvtxGpuProjTrace>(&nested());
    let found = trace.rows.iter().map(|row| {
        let times = (row.projected_start_ns, row.projected_duration_ns);
        (times, row.launches, row.operations, row.level, row.children)
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [((25, 205), 2, 3, Some(0), 1), ((25, 35), 1, 2, Some(1), 0)]
    );
    assert_eq!(trace.rows[1].stack, [1, 2]);
    let sum = usual::<NvtxGpuProjSum>(&nested());
    let row = &sum.rows[0];
    assert_eq!((row.projected_ns, row.range_ns, row.instances), (240, 140, 2));
    assert_eq!((row.launches, row.operations), (3, 5));
    assert!((row.avg_level - 0.5).abs() < 1e-12 && (row.avg_children - 0.5).abs() < 1e-12);
}

#[test]
fn work_outside_of_ranges_is_projected_too() {
    let mut trace = Trace::new();
    let (stream, ranges) = (trace.stream(1, 0, 7), trace.thread(1, 11, Track::Nvtx));
    trace.event(Category::NvtxRange, ranges, "before", 0, 5);
    for (thread, start) in [(11, 10), (12, 20)] {
        let calls = trace.thread(1, thread, Track::CudaApi);
        trace.launch_kernel((calls, start, start + 1), (stream, "a", start + 5, start + 6));
    }
    let trace = usual::<NvtxGpuProjTrace>(&trace.build());
    assert_eq!(trace.rows.len(), 1);
    let row = &trace.rows[0];
    assert_eq!(
        (row.projected_start_ns, row.projected_duration_ns, row.launches),
        (15, 11, 2)
    );
    // Two threads launched it: it is of neither.
    assert_eq!((row.name.as_deref(), row.thread), (None, None));
}

#[test]
fn a_kernel_counts_in_every_range_around_its_launch() {
    let kernels = usual::<NvtxKernSum>(&nested());
    let found = kernels.rows.iter().map(|row| {
        let range = (row.range.as_deref(), row.process, row.kernel_name.as_str());
        (range, row.ranges, row.kernels, row.total_ns)
    });
    let expected = [
        ((None, None, "a"), 0, 1, 40),
        // The first one is in both ranges of the name: 10 + 10 + 30.
        ((Some("step"), Some(1), "a"), 2, 2, 50),
        ((Some("step"), Some(1), "b"), 2, 1, 40),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_ranges_own_time_is_without_the_ranges_inside() {
    let trace = usual::<NvtxPushpopTrace>(&nested());
    let page = NvtxPushpopTrace::page(&trace).unwrap();
    let rows = rows(&page);
    let own = |row: usize| rows[row][4].clone();
    assert_eq!((own(0), own(1)), (60_u64.into(), 40_u64.into()));
    assert_eq!(
        (rows[1][12].clone(), rows[1][13].clone()),
        (":1:2".into(), "--step".into())
    );
}

#[test]
fn a_range_without_a_name_has_no_mark_of_its_level_either() {
    let mut trace = Trace::new();
    let ranges = trace.thread(1, 11, Track::Nvtx);
    trace.event(Category::NvtxRange, ranges, "step", 0, 100);
    trace.event(Category::NvtxRange, ranges, "", 10, 50);
    trace.event(Category::NvtxRange, ranges, "layer", 20, 30);
    let trace = usual::<NvtxPushpopTrace>(&trace.build());
    let rows = rows(&NvtxPushpopTrace::page(&trace).unwrap());
    let trees: Vec<Cell> = rows.iter().map(|row| row[13].clone()).collect();
    // nsys joins the mark to a name that is NULL, which is NULL.
    let expected: [Cell; 3] = ["step".into(), "".into(), "----layer".into()];
    assert_eq!(trees, expected);
}

#[test]
fn sizes_are_bytes_in_json_and_megabytes_in_the_table_and_throughput_is_the_quotient() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let copy = trace.event(
        Category::CudaMemcpyH2d,
        stream,
        "[CUDA memcpy Host-to-Device]",
        0,
        700_000_000,
    );
    trace.number(copy, ColumnId::Bytes, 2_100_000);
    let timeline = trace.build();
    let sizes = usual::<CudaGpuMemSizeSum>(&timeline);
    assert_eq!(sizes.rows[0].total_bytes, 2_100_000);
    let cells = rows(&CudaGpuMemSizeSum::page(&sizes).unwrap());
    assert_eq!(cells[0][0], 2.1.into());
    // nsys divides 10^9 by the length as integers and says 2.1 MB/s.
    let trace = usual::<CudaGpuTrace>(&timeline);
    let throughput = trace.rows[0].bytes_per_second.unwrap();
    assert!((throughput - 3_000_000.0).abs() < 1e-6, "{throughput}");
}

#[test]
fn what_was_not_recorded_is_said_in_every_table() {
    let nothing = Timeline::default();
    let tables = CATALOGUE.iter().filter(|definition| definition.name.contains('_'));
    let mut count = 0;
    for definition in tables {
        let mut out = Vec::new();
        let request = Request::of(definition).unwrap();
        request.run(&[Input::whole(&nothing)], &mut out).unwrap();
        let result: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_ne!(result["not_captured"], serde_json::json!([]), "{}", definition.name);
        assert_eq!(result["rows"], serde_json::json!([]), "{}", definition.name);
        count += 1;
    }
    assert_eq!(count, 18);
}
