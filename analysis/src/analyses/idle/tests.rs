use flopwatch_analysis_testing::Trace;
use flopwatch_model::Track;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// ```text
/// CPU    launch a 0-10   malloc 110-150, launch b 150-160   launch c 165-170, launch d 171-175
/// GPU    a 20-100        b 180-200                          c 210-220                           d 300-310
/// ```
fn trace() -> Timeline {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (api, ops) = (trace.thread(1, 1, Track::CudaApi), trace.thread(1, 1, Track::CpuOp));
    trace.event(Category::CpuOp, ops, "aten::empty", 105, 155);
    trace.call(api, "cudaMalloc", 110, 150);
    for (name, call, start, end) in [
        ("a", (0, 10), 20, 100),
        ("b", (150, 160), 180, 200),
        ("c", (165, 170), 210, 220),
        ("d", (171, 175), 300, 310),
    ] {
        trace.launch_kernel((api, call.0, call.1), (stream, name, start, end));
    }
    trace.build()
}

fn params() -> IdleParams {
    IdleParams {
        kernel_wait_ns: 30,
        ..IdleParams::default()
    }
}

fn by_class(classes: &[IdleOfClass]) -> Vec<(u64, u64)> {
    classes.iter().map(|class| (class.gaps, class.idle_ns)).collect()
}

#[test]
fn gaps_are_classed_by_the_launch_of_the_work_behind_them() {
    let idle = Idle::of(&trace(), &params());
    let gpu = &idle.gpus[0];
    assert_eq!((gpu.start_ns, gpu.end_ns, gpu.idle_ns), (20, 310, 170));
    // Before b the host was late, c began soon, d did not.
    assert_eq!(by_class(&gpu.classes), [(1, 80), (1, 10), (1, 80), (0, 0)]);
    assert_eq!(by_class(&idle.streams[0].classes), by_class(&gpu.classes));
    let buckets: Vec<(u64, u64)> = idle
        .histogram
        .iter()
        .map(|bucket| (bucket.gaps, bucket.idle_ns))
        .collect();
    assert_eq!(buckets[0], (3, 170));
}

#[test]
fn a_gap_of_host_wait_says_what_the_launching_thread_did() {
    let idle = Idle::of(&trace(), &params());
    let gap = &idle.gaps[0];
    assert_eq!((gap.start_ns, gap.end_ns, gap.class), (100, 180, IdleClass::HostWait));
    assert_eq!(
        (gap.before.as_str(), gap.after.as_str(), gap.call_start_ns),
        ("a", "b", Some(150))
    );
    let parts: Vec<(HostActivity, Option<&str>, u64)> = gap
        .thread
        .iter()
        .map(|part| (part.activity, part.name.as_deref(), part.time_ns))
        .collect();
    assert_eq!(
        parts,
        [
            (HostActivity::Allocate, Some("cudaMalloc"), 40),
            (HostActivity::LaunchLatency, None, 20),
            (HostActivity::Launch, Some("cudaLaunchKernel"), 10),
            (HostActivity::NothingRecorded, None, 10),
        ]
    );
    assert_eq!(gap.during[0].name, "aten::empty");
    // The call ends behind the operator.
    assert!(gap.launched_in.is_empty());
    let causes: Vec<(HostActivity, u64)> = idle.gpus[0]
        .host_wait_causes
        .iter()
        .map(|cause| (cause.activity, cause.idle_ns))
        .collect();
    assert_eq!(causes[0], (HostActivity::Allocate, 40));
    assert_eq!(causes.iter().map(|(_, idle_ns)| idle_ns).sum::<u64>(), 80);
}

/// HolisticTraceAnalysis takes the end of the work that began last for the end of all: it sees a
/// gap of −50 and one of 100 here.
#[test]
fn work_inside_other_work_of_its_stream_makes_no_gap() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    trace.kernel(stream, "long", 0, 100);
    trace.kernel(stream, "inside", 50, 60);
    trace.kernel(stream, "next", 160, 170);
    let idle = Idle::of(&trace.build(), &params());
    assert_eq!(by_class(&idle.gpus[0].classes), [(0, 0), (0, 0), (0, 0), (1, 60)]);
    assert_eq!(idle.gaps[0].before, "long");
}

#[test]
fn a_gpu_is_idle_while_none_of_its_streams_runs() {
    let mut trace = Trace::new();
    let streams = [trace.stream(1, 0, 7), trace.stream(1, 0, 8)];
    trace.kernel(streams[0], "a", 0, 10);
    trace.kernel(streams[1], "b", 5, 30);
    trace.kernel(streams[0], "c", 40, 50);
    let idle = Idle::of(&trace.build(), &params());
    assert_eq!(idle.gpus[0].idle_ns, 10);
    let of_streams: Vec<u64> = idle.streams.iter().map(|stream| stream.idle_ns).collect();
    assert_eq!(of_streams, [30, 0]);
}

proptest! {
    #[test]
    fn classes_partition_the_idle_time_and_causes_the_wait_for_the_host(
        gpu_ops in vec((0_u64..200, 0_u64..30, 0_u32..2, prop::option::of((0_u64..200, 0_u64..20))), 1..25),
    ) {
        let mut trace = Trace::new();
        let streams = [trace.stream(1, 0, 7), trace.stream(1, 0, 8)];
        let api = trace.thread(1, 1, Track::CudaApi);
        for (start, length, stream, call) in &gpu_ops {
            let stream = streams[usize::try_from(*stream).unwrap()];
            match call {
                Some((call, took)) => {
                    trace.launch_kernel((api, *call, call + took), (stream, "k", *start, start + length));
                }
                None => {
                    trace.kernel(stream, "k", *start, start + length);
                }
            }
        }
        let timeline = trace.build();
        let idle = Idle::of(&timeline, &params());
        let all = GpuWork::of(&timeline);
        let gpu = &idle.gpus[0];
        prop_assert_eq!(gpu.idle_ns, all.busy().gaps(all.span().unwrap()).len_ns());
        prop_assert_eq!(gpu.classes.iter().map(|class| class.idle_ns).sum::<u64>(), gpu.idle_ns);
        prop_assert_eq!(gpu.host_wait_causes.iter().map(|cause| cause.idle_ns).sum::<u64>(), gpu.classes[0].idle_ns);
        prop_assert_eq!(idle.histogram.iter().map(|bucket| bucket.idle_ns).sum::<u64>(), gpu.idle_ns);
        for (row, work) in all.by_row() {
            let stream = idle.streams.iter().find(|stream| stream.stream.row == row).unwrap();
            prop_assert_eq!(stream.idle_ns, work.busy().gaps(work.span().unwrap()).len_ns());
        }
        for gap in idle.gaps.iter().filter(|gap| gap.class != IdleClass::LaunchNotRecorded) {
            prop_assert_eq!(gap.thread.iter().map(|part| part.time_ns).sum::<u64>(), gap.idle_ns);
        }
    }
}
