//! Iterations, critical path and utilisation of real captures.

use flopwatch_measures::critical_path::{self, PathWindow};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::{self, IterateBy, IterationOptions, IterationSource, Iterations};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::Timeline;
use serde_json::{Value, json};

use crate::captures::{analyze, timeline, timeline_of_case};
use crate::result::{find, list, texts};

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

/// Two H100s run blocks 7 to 23 of a transformer under FSDP; no step is marked. nsys-ai 0.3.0
/// (`iteration_timing`) finds two "iterations" of 241.8 and 36.5 ms here, by the gaps between
/// kernels.
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

fn critical_path(name: &str, parameters: &Value) -> Option<Value> {
    Some(analyze("critical-path", parameters, &[&timeline(name)?]))
}

fn part(path: &Value, part: &str) -> u64 {
    find(&path["parts"], "part", part)["time_ns"].as_u64().unwrap()
}

/// HTA 0.5.0: launch 28 us and GPU 38 us on the path of 2,401 us; it counts the copy's 2 us as
/// compute, and neither the 141 us of program code between operators nor the returns from waiting.
#[test]
fn the_path_of_an_event_wait_has_the_launches_and_kernels_that_hta_finds() {
    let Some(path) = critical_path("hta/cuda_event_sync-event_sync_trace.json.gz", &Value::Null) else {
        return;
    };
    assert_eq!(path["verdict"], "cpu_bound");
    assert_eq!(part(&path, "launch_overhead"), 28_000);
    assert_eq!(part(&path, "compute") + part(&path, "copy"), 38_000);
    assert_eq!(path["unexplained_ns"], 0);
    assert_eq!(path["path_ns"], 2_577_000);
}

/// HTA 0.5.0 gives 101,398 us for the same step: more than half of it is program code between
/// operators, which weighs nothing there.
#[test]
fn a_step_that_the_processor_bounds_is_explained_to_its_end() {
    let parameters = json!({"number": 5});
    let Some(path) = critical_path("hta/nccl_parser_config-nccl_data.json.gz", &parameters) else {
        return;
    };
    assert_eq!(path["verdict"], "cpu_bound");
    assert_eq!(part(&path, "cpu"), 218_734_762);
    assert_eq!(path["unexplained_ns"], 0);
}

/// HTA 0.5.0 counts 43,514 us of nine gaps between kernels here, in which its stream waited for
/// another one.
#[test]
fn a_step_with_collectives_has_them_on_its_path() {
    let parameters = json!({"number": 1011});
    let Some(path) = critical_path("hta/trace_diff-control-control.json.gz", &parameters) else {
        return;
    };
    assert!(part(&path, "communication") > 10_000_000 && part(&path, "compute") > 20_000_000);
    assert!(part(&path, "kernel_gap") < 2_000_000);
    assert!(path["path_ns"].as_u64().unwrap() > 76_000_000);
}

/// The step is marked in another process number than the one that its operators carry.
#[test]
fn a_step_of_another_process_takes_the_process_that_launches() {
    let Some(path) = critical_path("hta/triton_example-triton_example.json.gz", &Value::Null) else {
        return;
    };
    assert!(path["path_ns"].as_u64().unwrap() > 1_386_000);
    assert!(list(&path["cautions"]).len() > 0);
}

/// BERT-small on an H100, in BF16. A product of 141 x 512 by 512 x 512 is 2 * 141 * 512 * 512
/// operations, once although `aten::linear` is around it.
#[test]
fn matrix_products_of_a_transformer_count_once_with_their_shapes() {
    let Some(timeline) = timeline("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz") else {
        return;
    };
    let parameters = json!({"whole": true, "peak_tflops": 989});
    let mfu = analyze("mfu", &parameters, &[&timeline]);
    assert_eq!(mfu["flops_source"], "operators");
    assert!(!texts(&mfu["rows"], "name").contains(&"aten::linear"));
    let product = find(&mfu["rows"], "shapes", "[[512],[141,512],[512,512],[],[]]");
    assert_eq!(product["name"], "aten::addmm");
    assert_eq!(product["element_type"], "bf16");
    let calls = product["calls"].as_u64().unwrap();
    assert_eq!(product["flops"].as_u64(), Some(calls * 73_924_608));
    assert!((0.0..1.0).contains(&mfu["mfu_ratio"].as_f64().unwrap()));
}

/// Everything that PyTorch's `FlopCounterMode` counts of a forward pass: products of `m x k` by
/// `k x n` and flash attention, which is two products per batch and head. The shapes are those of
/// the trace's `Input Dims`, the calls the number of its events of that name and shape.
#[test]
fn utilisation_of_real_captures_is_that_of_their_shapes_by_hand() {
    let product = |calls: u64, m: u64, k: u64, n: u64| calls * 2 * m * k * n;
    // Queries and keys have one length; scores of `d` columns, and values of `d` columns.
    let attention = |calls: u64, heads: u64, length: u64, d: u64| calls * 2 * heads * length * length * (d + d);
    // BERT-small, one sequence of 141 tokens, 4 layers of width 512 with 8 heads, vocabulary of
    // 30,522. 17 products of 512 by 512 are queries, keys, values and output of each layer, and the
    // transform of the head.
    let bert = product(17, 141, 512, 512)
        + product(4, 141, 512, 2048)
        + product(4, 141, 2048, 512)
        + product(1, 141, 512, 30_522)
        + attention(4, 8, 141, 64);
    assert_eq!(bert, 8_192_059_392);
    // Qwen1.5-0.5B, 16 sequences of 559 tokens, 24 layers of width 1024 with 16 heads; the rotary
    // embedding is a product of 32 x 1 by 1 x 559.
    let tokens = 16 * 559;
    let qwen = product(72, tokens, 1024, 1024)
        + product(24, tokens, 1024, 1024)
        + product(48, tokens, 1024, 2816)
        + product(24, tokens, 2816, 1024)
        + attention(24, 16 * 16, 559, 64)
        + product(1, 32, 1, 559);
    for (name, flops) in [
        ("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz", bert),
        ("tracelens-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", qwen),
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let parameters = json!({"whole": true, "peak_tflops": 989});
        let mfu = analyze("mfu", &parameters, &[&timeline]);
        assert_eq!(mfu["calls_without_shapes"], 0, "{name}");
        assert_eq!(mfu["flops"].as_u64(), Some(flops), "{name}");
        // The region is from the first to the last work of the one GPU.
        let times = analyze("gpu-time", &Value::Null, &[&timeline]);
        let region = times["gpus"][0]["parts"]["window_ns"].as_u64().unwrap();
        assert_eq!(mfu["device_time_ns"], region, "{name}");
        let float = |value: u64| value.to_string().parse::<f64>().unwrap();
        let expected = float(flops) / (float(region) * 989e3);
        let found = mfu["mfu_ratio"].as_f64().unwrap();
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{name}: {found}, by hand {expected}"
        );
        println!("{name}: {found:.5}, coverage {}", mfu["coverage_ratio"]);
    }
}

/// The profiler derived no line `Steps` of these eight-core TPUs, because the program marked no
/// step.
#[test]
fn a_capture_of_tpus_without_steps_has_no_iterations_and_says_why() {
    let Some(timeline) = timeline("xprof/tpu_inference_2.xplane.pb") else {
        return;
    };
    let iterations = analyze("iterations", &json!({"by": "step"}), &[&timeline]);
    assert_eq!(iterations["iterations"], 0);
    for what in ["iterations", "GPU time of iterations"] {
        find(&iterations["not_captured"], "what", what);
    }
}

/// A stream waits for an event that had happened 650 us before; the host's work is what its kernel
/// waited for.
#[test]
fn a_stream_waits_for_the_event_that_the_trace_names() {
    let Some(timeline) = timeline_of_case("wait_for_an_event_of_another_stream.json") else {
        return;
    };
    let path = analyze("critical-path", &Value::Null, &[&timeline]);
    assert_eq!(path["verdict"], "cpu_bound", "{path}");
    assert_eq!(part(&path, "cpu"), 690_000);
    assert_eq!(path["path_ns"], 1_010_000);
    assert!(!texts(&path["names"], "name").contains(&"matmul_s3"), "{path}");
    assert!(!path["cautions"].to_string().contains("guess"), "{path}");
}

/// The wall time and each stream's busy time hold the path of every capture between them.
#[test]
fn no_path_is_longer_than_the_wall_or_shorter_than_a_stream_is_busy() {
    for name in [
        "nsys-ai/mfu_2gpu_before.sqlite",
        "hta/nccl_parser_config-nccl_data.json.gz",
        "hta/trace_diff-control-control.json.gz",
        "hta/alexnet-benchmark_result_2869224_1695835535_trace.json.gz",
        "param-resnet/resnet_kineto.json.gz",
        "tracelens-jax/jax_conv_minimal_08.xplane.pb",
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let work = GpuWork::of(&timeline);
        let window = PathWindow::whole(&timeline, &work).unwrap();
        let path = critical_path::of(&timeline, &work, window);
        let length = path.len_ns();
        assert!(length <= Interval::of_events(&timeline).len(), "{name}: {length}");
        for (row, of_row) in work.by_row() {
            let row = timeline.row(row).unwrap();
            if (row.capture, row.machine, row.process) == window.process {
                let busy = of_row.busy().len_ns();
                assert!(
                    busy <= length && busy <= path.gpu_chain_ns,
                    "{name} {row:?}: {busy} of {length}"
                );
            }
        }
    }
}
