//! Iterations, critical path and utilisation of real captures.

use flopwatch_analysis::iteration::{self, IterateBy, IterationOptions, IterationSource, Iterations};
use flopwatch_analysis::work::GpuWork;
use flopwatch_trace::model::Timeline;

use crate::captures::timeline;

fn found(timeline: &Timeline, by: IterateBy) -> Iterations {
    let options = IterationOptions {
        by,
        ..IterationOptions::default()
    };
    iteration::of(timeline, &options)
}

/// Iterations of each loop.
fn counts(iterations: &Iterations) -> Vec<usize> {
    iterations.loops().map(<[_]>::len).collect()
}

/// Two H100s run blocks 7 to 23 of a transformer under FSDP; no step is marked. nsys-ai 0.3.0 (`iteration_timing`) finds two "iterations" of
/// 241.8 and 36.5 ms here, by the gaps between kernels.
#[test]
fn blocks_of_a_transformer_are_found_from_ranges_and_from_kernels_alone() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let by_range = found(&timeline, IterateBy::Auto);
    assert_eq!(by_range.source, Some(IterationSource::RangeToNext));
    assert_eq!(by_range.name, "FSDP::pre_forward (blocks.#._checkpoint_wrapped_module)");
    assert_eq!(counts(&by_range), [16, 16]);
    assert!(by_range.cautions.iter().any(|caution| caution.contains("layers")));
    let by_kernels = found(&timeline, IterateBy::Kernels);
    assert_eq!(counts(&by_kernels), [16, 16]);
    assert!(by_kernels.confidence_ratio > 0.99);
    for iterations in [&by_range, &by_kernels] {
        let lengths = iterations.list.iter().map(|iteration| iteration.time.len());
        assert!(lengths.into_iter().all(|ns| (16_000_000..26_000_000).contains(&ns)));
    }
}

/// Thirty mini-batches of ResNet; Kineto marked no step.
#[test]
fn mini_batches_are_found_without_marked_steps() {
    let Some(timeline) = timeline("param-resnet/resnet_kineto.json.gz") else {
        return;
    };
    let by_range = found(&timeline, IterateBy::Auto);
    assert_eq!(counts(&by_range), [29]);
    assert_eq!(counts(&found(&timeline, IterateBy::Kernels)), [30]);
}

#[test]
fn marked_steps_hold_all_work_of_a_traced_loop() {
    for (name, steps) in [
        ("hta/nccl_parser_config-nccl_data.json.gz", 3),
        ("hta/trace_diff-control-control.json.gz", 6),
        ("kineto-samples/resnet50_w0_span1.pt.trace.json.gz", 6),
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let iterations = found(&timeline, IterateBy::Auto);
        assert_eq!(iterations.source, Some(IterationSource::Step));
        assert_eq!(counts(&iterations), [steps], "{name}");
        let assignment = iterations.assign(&timeline, &GpuWork::of(&timeline));
        assert_eq!((assignment.by_time, assignment.outside), (0, 0), "{name}");
    }
}

/// The solver runs 500 times; nothing marks its iterations.
#[test]
fn a_solver_without_marks_iterates_as_often_as_it_says() {
    let Some(timeline) = timeline("gpubootcamp-jacobi/jacobi_report.qdrep") else {
        return;
    };
    assert_eq!(counts(&found(&timeline, IterateBy::Auto)), [500]);
}

#[test]
fn calls_of_a_compiled_function_are_the_iterations_of_jax() {
    let Some(timeline) = timeline("tracelens-jax/jax_conv_minimal_08.xplane.pb") else {
        return;
    };
    let iterations = found(&timeline, IterateBy::Auto);
    assert_eq!(
        (iterations.source, iterations.list.len()),
        (Some(IterationSource::Range), 5)
    );
    assert!(iterations.name.starts_with("PjitFunction"), "{}", iterations.name);
}

#[test]
fn nothing_that_repeats_is_made_up() {
    let Some(timeline) = timeline("hta/alexnet-benchmark_result_2869224_1695835535_trace.json.gz") else {
        return;
    };
    let iterations = found(&timeline, IterateBy::Auto);
    assert!(iterations.list.is_empty() && iterations.not_found.is_some());
}
