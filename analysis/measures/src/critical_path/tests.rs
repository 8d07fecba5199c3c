//! Paths that can be counted.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::Track;

use super::*;

struct Rows {
    ops: u32,
    api: u32,
    other: u32,
    near: u32,
    far: u32,
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

fn launch(trace: &mut Trace, rows: &Rows, call: (u64, u64), stream: u32, name: &str, ran: (u64, u64)) {
    let call = trace.call(rows.api, "cudaLaunchKernel", call.0, call.1);
    let kernel = trace.kernel(stream, name, ran.0, ran.1);
    trace.launched_by(kernel, call);
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
    assert_eq!(
        parts(&found),
        [
            (PathPart::Cpu, 30),
            (PathPart::LaunchOverhead, 20),
            (PathPart::Compute, 100),
            (PathPart::Sync, 10)
        ]
    );
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
    assert_eq!(parts(&found), [(PathPart::Cpu, 110)]);
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
    assert_eq!(
        parts(&found),
        [
            (PathPart::LaunchOverhead, 10),
            (PathPart::Compute, 40),
            (PathPart::Communication, 45),
            (PathPart::KernelGap, 5)
        ]
    );
}

#[test]
fn a_stream_that_waits_for_an_event_follows_the_other_stream() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "gemm", (10, 60));
    trace.call(rows.api, "cudaStreamWaitEvent", 3, 4);
    launch(&mut trace, &rows, (5, 6), rows.far, "softmax", (64, 90));
    let (found, _) = path(trace, 100);
    assert_eq!(
        parts(&found),
        [
            (PathPart::LaunchOverhead, 10),
            (PathPart::Compute, 76),
            (PathPart::Sync, 4)
        ]
    );
}

#[test]
fn a_call_that_waits_for_nothing_is_processor_time() {
    let (mut trace, rows) = trace();
    launch(&mut trace, &rows, (0, 2), rows.near, "gemm", (4, 8));
    trace.call(rows.api, "cudaDeviceSynchronize", 10, 40);
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(PathPart::Cpu, 40)]);
}

#[test]
fn ranges_that_load_data_are_told_from_other_processor_time() {
    let (mut trace, rows) = trace();
    let marks = trace.thread(1, 10, Track::Annotation);
    trace.event(Category::Annotation, marks, "enumerate(DataLoader)#__next__", 10, 70);
    trace.event(Category::CpuOp, rows.ops, "aten::stack", 0, 80);
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(PathPart::Cpu, 20), (PathPart::DataLoading, 60)]);
}

#[test]
fn clocks_that_differ_make_no_path_backwards() {
    let (mut trace, rows) = trace();
    // The GPU's clock says that the kernel began before its launch.
    launch(&mut trace, &rows, (20, 25), rows.near, "gemm", (10, 90));
    let (found, _) = path(trace, 100);
    assert_eq!(parts(&found), [(PathPart::Compute, 80)]);
}
