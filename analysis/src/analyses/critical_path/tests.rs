//! What bounds programs of which every part can be counted.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::Track;

use super::*;

fn whole(timeline: &Timeline) -> CriticalPathResult {
    let params = CriticalPathParams {
        whole: true,
        ..CriticalPathParams::default()
    };
    CriticalPathResult::of(timeline, &params)
}

/// Kernels of 20 ns every 100 ns, launched all together before.
#[test]
fn gaps_between_kernels_are_not_compute() {
    let mut trace = Trace::new();
    let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
    let graph = trace.call(thread, "cudaGraphLaunch", 0, 10);
    for at in 0..10_u64 {
        let kernel = trace.kernel(stream, "gemm", 10 + at * 100, 30 + at * 100);
        trace.launched_by(kernel, graph);
    }
    let result = whole(&trace.build());
    assert_eq!(result.verdict, Some(PathVerdict::GapBound));
    assert_eq!(result.path_ns, 930);
    // 9 gaps of 80 ns; 10 kernels are 200 ns.
    assert!((result.verdict_ratio - 720.0 / 930.0).abs() < 1e-12, "{result:?}");
    let page = page::of(&result);
    let text = serde_json::to_string(&page).unwrap();
    assert!(text.contains("is bound by gaps between kernels by 77 %"), "{text}");
}

#[test]
fn a_stream_that_goes_on_behind_another_one_is_in_a_gap_and_no_work_of_the_processor() {
    let mut trace = Trace::new();
    let (near, far) = (trace.stream(1, 0, 7), trace.stream(1, 0, 9));
    let thread = trace.thread(1, 1, Track::CudaApi);
    trace.launch_kernel((thread, 0, 1), (near, "gemm", 2, 20));
    trace.call(thread, "cudaStreamWaitEvent", 3, 4);
    trace.launch_kernel((thread, 5, 6), (far, "softmax", 100, 110));
    let result = whole(&trace.build());
    assert_eq!(result.verdict, Some(PathVerdict::GapBound));
    let guesses = result.cautions.iter().filter(|caution| caution.contains("guessed"));
    assert_eq!(guesses.count(), 1, "{result:?}");
}
