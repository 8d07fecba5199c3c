use flopwatch_analysis_testing::Trace;
use flopwatch_model::Track;

use super::*;

/// Two threads of one process and a stream.
///
/// Thread 10, from 0 to 100: `step 1` around `aten::mm, op_id = 1` (10..40), which launches a
/// kernel of 50 ns, and `aten::to, op_id = 2` (50..90), which copies 64 bytes in 20 ns and waits
/// for it. Thread 11: `aten::mm, op_id = 3` (0..30) without GPU work.
fn two_threads() -> Timeline {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (nvtx, api) = (trace.thread(1, 10, Track::Nvtx), trace.thread(1, 10, Track::CudaApi));
    let other = trace.thread(1, 11, Track::Nvtx);
    trace.event(Category::NvtxRange, nvtx, "step 1", 0, 100);
    trace.event(Category::NvtxRange, nvtx, "aten::mm, op_id = 1", 10, 40);
    trace.event(Category::NvtxRange, nvtx, "aten::to, op_id = 2", 50, 90);
    trace.event(Category::NvtxRange, other, "aten::mm, op_id = 3", 0, 30);
    trace.launch_kernel((api, 20, 30), (stream, "gemm", 25, 75));
    let call = trace.call(api, "cudaMemcpyAsync", 55, 60);
    let copy = trace.event(Category::CudaMemcpyD2h, stream, "copy", 75, 95);
    trace.launched_by(copy, call);
    trace.number(copy, ColumnId::Bytes, 64);
    // Of the 25 ns of the call the GPU works all of the time.
    trace.call(api, "cudaStreamSynchronize", 60, 85);
    trace.allocation(1, 0, 12, 256, Some(1256));
    trace.allocation(1, 0, 52, 512, Some(1768));
    trace.allocation(1, 0, 80, -256, Some(1512));
    trace.build()
}

fn find<'a>(operations: &'a Operations, name: &str) -> &'a Operation {
    operations
        .operations
        .iter()
        .find(|operation| operation.operation == name)
        .unwrap()
}

#[test]
fn the_time_of_a_call_is_that_of_the_host_the_api_and_waiting() {
    let operations = of(&two_threads(), &OperationsParams::default());
    assert_eq!(
        (operations.kind, operations.calls, operations.distinct),
        (OperationKind::Nvtx, 4, 3)
    );
    assert_eq!((operations.self_ns, operations.total_ns), (130, 200));
    let step = find(&operations, "step *");
    assert_eq!((step.total_ns, step.self_ns), (100, 30));
    let to = find(&operations, "aten::to");
    assert_eq!((to.calls, to.total_ns, to.self_ns), (1, 40, 40));
    assert_eq!(
        (to.gpu_ns, to.transfer_ns, to.transferred_bytes),
        (Some(0), Some(20), Some(64))
    );
    // In the copy's call (55..60) and the synchronisation (60..85) the GPU works throughout: all of
    // it is waiting.
    assert_eq!((to.cpu_ns, to.overhead_ns, to.wait_ns), (Some(10), Some(0), Some(30)));
    let mm = find(&operations, "aten::mm");
    assert_eq!((mm.calls, mm.total_ns, mm.min_ns, mm.max_ns), (2, 60, 30, 30));
    assert_eq!((mm.gpu_ns, mm.gpu_pieces, mm.transfer_ns), (Some(50), Some(1), Some(0)));
    // A launch is overhead even while the GPU works.
    assert_eq!((mm.cpu_ns, mm.overhead_ns, mm.wait_ns), (Some(50), Some(10), Some(0)));
    for operation in &operations.operations {
        let parts = [operation.cpu_ns, operation.overhead_ns, operation.wait_ns];
        assert_eq!(
            parts.iter().flatten().sum::<u64>(),
            operation.total_ns,
            "{}",
            operation.operation
        );
    }
}

#[test]
fn gpu_work_is_owned_by_the_innermost_operation_and_counted_in_those_around_it() {
    let operations = of(&two_threads(), &OperationsParams::default());
    let (step, mm) = (find(&operations, "step *"), find(&operations, "aten::mm"));
    assert_eq!(
        (step.gpu_ns, step.self_gpu_ns, step.transfers),
        (Some(50), Some(0), Some(1))
    );
    assert_eq!(mm.self_gpu_ns, Some(50));
    let coverage = OperationCoverage {
        pieces: 2,
        inside: 2,
        outside: 0,
        without_launch: 0,
    };
    assert_eq!(operations.gpu_work, Some(coverage));
}

#[test]
fn memory_is_that_of_the_process_while_a_call_ran() {
    let operations = of(&two_threads(), &OperationsParams::default());
    let (step, to) = (find(&operations, "step *"), find(&operations, "aten::to"));
    assert_eq!((step.allocated_bytes, step.peak_bytes), (Some(768), Some(1768)));
    assert_eq!((to.allocated_bytes, to.peak_bytes), (Some(512), Some(1768)));
    let levels: Vec<(u64, u64)> = operations
        .memory
        .iter()
        .map(|at| (at.allocated_bytes, at.peak_bytes))
        .collect();
    assert_eq!(levels, [(1256, 1256), (1768, 1768), (1512, 1768)]);
}

#[test]
fn names_as_captured_stay_with_the_operation_and_can_be_told_apart() {
    let timeline = two_threads();
    let operations = of(
        &timeline,
        &OperationsParams {
            names: 1,
            ..OperationsParams::default()
        },
    );
    let mm = find(&operations, "aten::mm");
    let first = OperationName {
        name: "aten::mm, op_id = 1".to_owned(),
        calls: 1,
    };
    assert_eq!((&mm.names, mm.names_left_out), (&vec![first], 1));
    let raw = of(
        &timeline,
        &OperationsParams {
            normalise: false,
            ..OperationsParams::default()
        },
    );
    assert_eq!(raw.distinct, 4);
    assert_eq!(find(&raw, "aten::mm, op_id = 3").total_ns, 30);
}

#[test]
fn calls_inside_a_call_of_the_same_operation_are_told() {
    let mut trace = Trace::new();
    let row = trace.thread(1, 10, Track::CpuOp);
    trace.event(Category::CpuOp, row, "aten::to", 0, 100);
    trace.event(Category::CpuOp, row, "aten::_to_copy", 10, 90);
    trace.event(Category::CpuOp, row, "aten::to", 20, 50);
    let operations = of(&trace.build(), &OperationsParams::default());
    let to = find(&operations, "aten::to");
    assert_eq!((to.calls, to.recursive_calls, to.total_ns, to.self_ns), (2, 1, 130, 50));
    assert_eq!(operations.self_ns, 100);
}

#[test]
fn what_a_capture_lacks_is_no_zero() {
    let mut trace = Trace::new();
    let row = trace.thread(1, 10, Track::Nvtx);
    trace.event(Category::NvtxRange, row, "work", 0, 100);
    let operations = of(&trace.build(), &OperationsParams::default());
    let work = find(&operations, "work");
    assert_eq!(
        (work.gpu_ns, work.cpu_ns, work.overhead_ns, work.peak_bytes),
        (None, None, None, None)
    );
    let missing: Vec<&str> = operations
        .not_captured
        .iter()
        .map(|missing| missing.what.as_str())
        .collect();
    assert_eq!(missing, ["CPU time, overhead and GPU time", "memory"]);
    assert_eq!(operations.gpu_work, None);
    let empty = of(&Timeline::default(), &OperationsParams::default());
    assert_eq!((empty.calls, empty.avg_ns), (0, None));
    assert_eq!(empty.not_captured.len(), 1);
}

#[test]
fn operations_of_a_compiled_program_are_found_on_the_device() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    for (operation, module, start, end) in [
        ("fusion.1", "f", 0, 10),
        ("fusion.2", "f", 10, 40),
        ("fusion.1", "g", 40, 45),
    ] {
        let kernel = trace.kernel(stream, "loop_fusion", start, end);
        trace.text(kernel, ColumnId::HloOp, operation);
        trace.text(kernel, ColumnId::HloModule, module);
    }
    trace.kernel(stream, "other", 50, 60);
    let operations = of(&trace.build(), &OperationsParams::default());
    assert_eq!(
        (operations.kind, operations.calls, operations.self_ns),
        (OperationKind::Hlo, 3, 45)
    );
    let names: Vec<&str> = operations
        .operations
        .iter()
        .map(|operation| operation.operation.as_str())
        .collect();
    assert_eq!(names, ["fusion.2 of f", "fusion.1 of f", "fusion.1 of g"]);
    assert_eq!(
        (
            find(&operations, "fusion.2 of f").gpu_ns,
            find(&operations, "fusion.2 of f").cpu_ns
        ),
        (Some(30), None)
    );
}

#[test]
fn transfers_and_overhead_longer_than_the_gpu_are_a_reason() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (nvtx, api) = (trace.thread(1, 10, Track::Nvtx), trace.thread(1, 10, Track::CudaApi));
    for (name, at, kernel) in [("small", 0, 10), ("large", 1000, 600)] {
        trace.event(Category::NvtxRange, nvtx, name, at, at + 500);
        trace.launch(
            (api, at + 10, at + 30),
            Category::CudaMemcpyH2d,
            (stream, "copy", at + 20, at + 60),
        );
        trace.launch_kernel((api, at + 40, at + 50), (stream, "k", at + 60, at + 60 + kernel));
    }
    let operations = of(&trace.build(), &OperationsParams::default());
    let rules = |name: &str| -> Vec<OperationRule> {
        let found = operations
            .bottlenecks
            .iter()
            .find(|bottleneck| bottleneck.operation == name)
            .unwrap();
        found.reasons.iter().map(|reason| reason.rule).collect()
    };
    assert_eq!(
        rules("small"),
        [OperationRule::CpuMayBeBetter, OperationRule::HostBound]
    );
    assert_eq!(rules("large"), [OperationRule::GpuBound]);
    assert_eq!(operations.bottlenecks[0].operation, "large");
}

#[test]
fn the_page_leads_into_the_timeline_and_shows_the_same_figures() {
    let operations = of(&two_threads(), &OperationsParams::default());
    let page = serde_json::to_value(dashboard::page(&operations)).unwrap();
    let blocks = page["blocks"].as_array().unwrap();
    let titled = |title: &str| blocks.iter().find(|block| block["title"] == title).unwrap();
    let all = titled("All operations")["rows"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["cells"][0], "aten::mm");
    assert_eq!(all[0]["place"]["end_ns"], 30);
    assert_eq!(titled("Operation timeline")["rows"].as_array().unwrap().len(), 4);
    assert_eq!(titled("Names as captured")["rows"].as_array().unwrap().len(), 4);
    assert_eq!(titled("Device memory")["times_ns"], serde_json::json!([12, 52, 80]));
    // What the GPU does comes first; the time of calls is the host's.
    let charts = blocks.iter().filter(|block| block["kind"] == "bars").take(2);
    let headings: Vec<&str> = charts.filter_map(|block| block["title"].as_str()).collect();
    let expected = [
        "GPU time of what each operation launched itself",
        "Share of host time per operation",
    ];
    assert_eq!(headings, expected);
    let first = &blocks[0]["tiles"];
    assert_eq!((&first[0]["value"], &first[2]["value"]), (&4.into(), &130.into()));
}
