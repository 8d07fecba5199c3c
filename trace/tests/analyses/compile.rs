//! torch.compile, start-up, precision and offload candidates of real captures.

use std::path::{Path, PathBuf};

use flopwatch_analysis::analyses::offload_candidates::{BoundBasis, OffloadCandidatesParams, OffloadCandidatesResult};
use flopwatch_analysis::analyses::precision::{PrecisionParams, PrecisionResult, TensorCoreSource};
use flopwatch_analysis::analyses::start_up::{RunSource, StartUpParams, StartUpResult};
use flopwatch_analysis::analyses::torch_compile::{TorchCompileParams, TorchCompileResult};
use flopwatch_measures::compiled::BreakReason;
use flopwatch_model::Timeline;
use serde_json::{Value, json};

use crate::captures::{analyze, timeline, timeline_at};
use crate::result::{list, said};

/// Excerpts of captures of PyTorch 2.15.0 on CPU. A whole one would take 5 GB of PyTorch with CUDA
/// to make.
fn excerpt(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/analyses/data")
        .join(name)
}

fn compiled(timelines: &[&Timeline]) -> TorchCompileResult {
    TorchCompileResult::of(timelines, &TorchCompileParams::default())
}

/// The sums are those of a script that reads the JSON itself.
#[test]
fn compile_time_is_the_union_of_phases_that_nest() {
    let path = excerpt("torch-compile.json");
    let timeline = timeline_at(&path);
    let found = compiled(&[&timeline]);
    let capture: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let is_phase = |event: &&Value| event["name"].as_str().unwrap().ends_with("(dynamo_timed)");
    let phases = list(&capture["traceEvents"]).filter(is_phase).map(|event| {
        let ns = |key: &str| decimal_us(&event[key].to_string());
        (ns("ts"), ns("ts") + ns("dur"))
    });
    let mut phases: Vec<(u64, u64)> = phases.collect();
    phases.sort_unstable();
    let (mut union, mut sum, mut until) = (0, 0, 0);
    for (start, end) in phases {
        sum += end - start;
        union += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    assert!(
        found.compile_ns.abs_diff(union) < 10_000,
        "{} {union}",
        found.compile_ns
    );
    assert_eq!(found.compile_ns, 1_519_352_167);
    assert!(sum > 4 * union, "phases nest: their sum is {sum}");
    let own: u64 = found.phases.iter().map(|phase| phase.own_ns).sum();
    assert_eq!(own, found.compile_ns);
    assert!(found.graph_breaks.is_empty() && found.recompiles.is_empty());
    assert_eq!((found.regions.len(), found.regions[0].runs), (1, 6));
    assert_eq!((found.cache_lookups, found.warm_runs), (5, 6));
}

/// Nanoseconds of µs with at most three decimals.
fn decimal_us(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<3}").parse().unwrap()
}

#[test]
fn the_steps_behind_the_first_one_are_at_pace() {
    let found = StartUpResult::of(
        &timeline_at(&excerpt("torch-compile.json")),
        None,
        StartUpParams::default(),
    );
    assert_eq!(
        (found.run_source, found.runs, found.cold_runs),
        (Some(RunSource::Iterations), 5, 1)
    );
    let break_even = found.break_even_runs.unwrap();
    assert!((1400.0..1600.0).contains(&break_even), "{break_even}");
}

#[test]
fn print_item_and_a_branch_break_the_graph() {
    let timeline = timeline_at(&excerpt("torch-compile-breaks.json"));
    let found = compiled(&[&timeline]);
    let mut breaks: Vec<_> = found
        .graph_breaks
        .iter()
        .map(|one| (one.location.as_deref().unwrap(), one.reason, one.seen.as_str()))
        .collect();
    breaks.sort_unstable();
    let expected = [
        ("cap.py(10): forward", BreakReason::Output, "<built-in function print>"),
        ("cap.py(12): forward", BreakReason::ScalarRead, "aten::item"),
        (
            "cap.py(14): forward",
            BreakReason::DataDependentBranch,
            "aten::is_nonzero",
        ),
    ];
    assert_eq!(breaks, expected);
    let report = analyze("profiler-compile", &Value::Null, &[&timeline]);
    let figures = said(&report, &["total_graph_breaks", "compile_time_ms"]);
    assert_eq!(figures, json!([3, null]));
}

/// A Triton kernel in one run of compiled code on an A100.
#[test]
fn a_kernel_of_triton_is_covered_by_the_region_that_launched_it() {
    let Some(timeline) = timeline("hta/triton_example-triton_example.json.gz") else {
        return;
    };
    let found = compiled(&[&timeline]);
    let side = &found.captures[0];
    assert_eq!((side.coverage_ratio, side.triton_ratio), (Some(1.0), Some(1.0)));
    assert_eq!((found.cache_lookups, found.cache_lookup_ns), (1, 35_591));
    assert_eq!((found.regions.len(), found.regions[0].gpu_operations), (1, Some(1)));
}

#[test]
fn a_program_that_is_not_compiled_has_no_figures() {
    for name in [
        "param-resnet/resnet_kineto.json.gz",
        "nsys-ai/mfu_2gpu_before.sqlite",
        "tracelens-jax/jax_conv_minimal_08.xplane.pb",
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let found = compiled(&[&timeline]);
        assert_eq!((found.input, found.not_captured.len()), (None, 1), "{name}");
    }
}

#[test]
fn tensor_cores_and_dimensions_of_a_training_step() {
    let Some(timeline) = timeline("kineto-samples/resnet50_w0_span1.pt.trace.json.gz") else {
        return;
    };
    let found = PrecisionResult::of(&timeline, PrecisionParams::default());
    assert_eq!(found.source, Some(TensorCoreSource::Names));
    let parts = found.tensor_core_ns + found.cuda_core_ns + found.unknown_ns;
    assert_eq!(parts, found.matrix_ns);
    println!(
        "{:?} {:?} of {}",
        found.tensor_core_ratio, found.matrix_ratio, found.kernel_ns
    );
}

#[test]
fn candidates_are_told_with_what_is_an_estimate() {
    for name in [
        "param-resnet/resnet_kineto.json.gz",
        "nsys-ai/mfu_2gpu_before.sqlite",
        "mojo-gtx1660ti/mojo_profile.ncu-rep",
        "xprof/tpu_inference_2.xplane.pb",
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let found = OffloadCandidatesResult::of(&[&timeline], OffloadCandidatesParams::default());
        assert!(found.memory_bound_ns + found.unknown_ns <= found.kernel_ns, "{name}");
        assert!(found.kernel_ns > 0, "{name}");
        let estimated = found.candidates.iter().filter(|one| one.is_estimate);
        let estimated: u64 = estimated.map(|one| one.total_ns).sum();
        assert!(
            found.candidates_left_out > 0 || estimated == found.estimated_ns,
            "{name}"
        );
        for one in &found.candidates {
            assert_ne!(one.basis, BoundBasis::None, "{name}: {}", one.kernel);
        }
        println!(
            "{name}: {} candidates, {:?} of kernel time, {} ns estimated",
            found.candidates.len(),
            found.memory_bound_ratio,
            found.estimated_ns
        );
    }
}
