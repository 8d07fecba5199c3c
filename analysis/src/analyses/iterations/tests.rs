//! Iterations whose figures can be counted.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::Track;

use super::*;

/// Steps 5 to 8 on one thread, the first of 400 ns, then of 100 ns. Each launches to device 0 a
/// kernel of 30 ns and a collective of 30 ns that starts 10 ns before the kernel's end, and 10 ns
/// later a copy of 10 ns: 20 ns of exposed communication, 10 of copies, 10 idle in 70. Device 1
/// works in the last 20 ns of these.
fn steps() -> Timeline {
    let mut trace = Trace::new();
    let (near, far) = (trace.stream(1, 0, 7), trace.stream(1, 1, 7));
    let marks = trace.thread(1, 10, Track::Annotation);
    let api = trace.thread(1, 10, Track::CudaApi);
    for (number, start, length) in [(5, 0, 400), (6, 400, 100), (7, 500, 100), (8, 600, 100)] {
        trace.step(marks, number, start, start + length);
        let call = trace.call(api, "cudaGraphLaunch", start + 5, start + 10);
        for (category, name, stream, from, to) in [
            (Category::CudaKernel, "gemm", near, 20, 50),
            (Category::CudaKernel, "ncclDevKernel_AllReduce", near, 40, 70),
            (Category::CudaMemcpyH2d, "Memcpy HtoD", near, 80, 90),
            (Category::CudaKernel, "gemm", far, 70, 90),
        ] {
            let work = trace.event(category, stream, name, start + from, start + to);
            trace.launched_by(work, call);
        }
    }
    trace.build()
}

#[test]
fn parts_of_an_iteration_add_up_and_the_first_one_is_warm_up() {
    let result = IterationsResult::of(
        &steps(),
        &IterationsParams {
            number: Some(6),
            ..IterationsParams::default()
        },
    );
    assert_eq!((result.iterations, result.warm_up_iterations, result.loops), (4, 1, 1));
    assert_eq!(result.assigned.by_thread, 16);
    let time = result.time.unwrap();
    assert_eq!(
        (time.min_ns, time.median_ns, time.p95_ns, time.max_ns),
        (100, 100.0, 100, 100)
    );
    let row = &result.rows[1];
    assert_eq!((row.number, row.time_ns, row.period_ns), (6, 100, Some(100)));
    assert_eq!(
        (row.gpu_start_ns, row.gpu_end_ns, row.devices),
        (Some(420), Some(490), 2)
    );
    let parts = row.parts;
    assert_eq!(parts.window_ns, 70 + 20);
    assert_eq!(parts.compute_ns, 30 + 20);
    assert_eq!(
        (parts.exposed_communication_ns, parts.exposed_memory_ns, parts.idle_ns),
        (20, 10, 10)
    );
    assert_eq!(row.gpu_gap_before_ns, Some(330));
    assert_eq!((row.kernels, row.copies), (3, 1));
    assert!(result.rows[0].warm_up && !row.warm_up && !row.outlier);
    assert_eq!(result.parts.window_ns, 3 * 90);
    let kernels = &result.details[0].kernels;
    let first = (kernels[0].name.as_str(), kernels[0].instances, kernels[0].total_ns);
    assert_eq!(first, ("gemm", 2, 50));
}

#[test]
fn a_device_that_waits_while_another_works_has_a_bubble() {
    let result = IterationsResult::of(&steps(), &IterationsParams::default());
    // Three windows of 70 ns. Device 0 is busy for 60 and idle for 10 of them, in which device 1
    // works; device 1 is busy for 20.
    let near = result.bubbles[0];
    assert_eq!(
        (near.window_ns, near.busy_ns, near.bubble_ns, near.all_idle_ns),
        (210, 180, 30, 0)
    );
    let far = result.bubbles[1];
    assert_eq!((far.busy_ns, far.bubble_ns), (60, 150));
}

#[test]
fn an_iteration_that_takes_longer_than_its_like_is_an_outlier() {
    let mut trace = Trace::new();
    let marks = trace.thread(1, 10, Track::Annotation);
    let mut start = 0;
    for (number, length) in [100, 101, 99, 100, 160, 100].into_iter().enumerate() {
        let name = format!("ProfilerStep#{number}");
        trace.event(Category::Step, marks, &name, start, start + length);
        start += length;
    }
    let result = IterationsResult::of(&trace.build(), &IterationsParams::default());
    let outliers: Vec<bool> = result.rows.iter().map(|row| row.outlier).collect();
    assert_eq!(outliers, [false, false, false, false, true, false]);
    // No GPU work was recorded: said, and no figures made up.
    assert_eq!(result.gpu_span, None);
    assert!(!result.not_captured.is_empty());
}
