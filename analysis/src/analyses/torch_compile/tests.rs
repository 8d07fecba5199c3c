use flopwatch_analysis_testing::Trace;
use flopwatch_measures::compiled::BreakReason;
use flopwatch_model::Track;

use super::*;

/// Steps of 100 ns, the first one of 1,000 in which 800 are compiled. Each launches a kernel of
/// Triton in a graph, one behind it in the same run, and one outside: 30, 20 and 50 ns.
fn program(is_compiled: bool) -> Timeline {
    let mut trace = Trace::new();
    let (ops, steps) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Annotation));
    let (api, stream) = (trace.thread(1, 1, Track::CudaApi), trace.stream(1, 0, 7));
    let step_ns = if is_compiled { 100 } else { 150 };
    let mut start = 0;
    for number in 0..4 {
        let length = if number == 0 && is_compiled { 1000 } else { step_ns };
        trace.step(steps, number, start, start + length);
        let end = start + length;
        if is_compiled {
            if number == 0 {
                trace.event(Category::CpuOp, ops, "entire_frame_compile (dynamo_timed)", 10, 810);
                trace.event(Category::CpuOp, ops, "compile_fx_inner (dynamo_timed)", 110, 510);
            }
            trace.event(Category::CpuOp, ops, "TorchDynamo Cache Lookup", end - 95, end - 93);
            trace.event(Category::CpuOp, ops, "Torch-Compiled Region: 0/0", end - 90, end - 50);
            trace.event(Category::CpuOp, ops, "CompiledFunction", end - 89, end - 80);
        }
        for (call, name, length) in [(85, "triton_poi_fused_add_0", 30), (60, "gemm", 20), (40, "gemm", 50)] {
            let call = end - call;
            trace.launch_kernel((api, call, call + 2), (stream, name, call, call + length));
        }
        start = end;
    }
    trace.build()
}

#[test]
fn compile_time_coverage_and_break_even_can_be_counted() {
    let compiled = program(true);
    let found = TorchCompileResult::of(&[&compiled], &TorchCompileParams::default());
    assert_eq!((found.compile_ns, found.graphs, found.graphs_generated), (800, 1, 0));
    let phases: Vec<_> = found
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.own_ns, phase.total_ns))
        .collect();
    assert_eq!(
        phases,
        [("entire_frame_compile", 400, 800), ("compile_fx_inner", 400, 400)]
    );
    let side = &found.captures[0];
    assert_eq!(
        (side.gpu_ns, side.compiled_gpu_ns, side.graph_gpu_ns),
        (Some(400), Some(200), Some(120))
    );
    assert_eq!((side.coverage_ratio, side.triton_ratio), (Some(0.5), Some(0.3)));
    assert_eq!((found.warm_runs, found.mean_run_ns), (4, Some(40)));
    assert_eq!(found.break_even_runs, Some(20.0));
    assert_eq!((found.cache_lookups, found.mean_cache_lookup_ns), (4, Some(2)));
    let region = &found.regions[0];
    assert_eq!((region.gpu_operations_per_run, region.gpu_ns), (Some(2.0), Some(200)));
    assert!(found.graph_breaks.is_empty() && found.recompiles.is_empty());
    // Without an eager capture nothing is known of the speed-up.
    assert_eq!(side.speedup, None);
    assert!(found.not_captured.iter().any(|missing| missing.what == "the speed-up"));
}

#[test]
fn the_speed_up_is_against_the_eager_capture_wherever_it_stands() {
    let (compiled, eager) = (program(true), program(false));
    let params = TorchCompileParams {
        labels: "default, eager".to_owned(),
        ..TorchCompileParams::default()
    };
    let found = TorchCompileResult::of(&[&compiled, &eager], &params);
    let labels: Vec<&str> = found.captures.iter().map(|side| side.label.as_str()).collect();
    assert_eq!((labels, found.input), (vec!["default", "eager"], Some(0)));
    let [compiled, eager] = &found.captures[..] else {
        panic!("{found:?}");
    };
    assert_eq!((compiled.iterations, compiled.mean_iteration_ns), (3, Some(100)));
    assert_eq!((eager.is_compiled, eager.mean_iteration_ns), (false, Some(150)));
    assert_eq!((compiled.speedup, eager.speedup), (Some(1.5), None));
    // 800 ns of compilation, 50 saved by each iteration.
    assert_eq!(compiled.iterations_to_pay_back, Some(16.0));
    assert_eq!(compiled.kernels_per_iteration, Some(3.0));
}

#[test]
fn a_program_that_is_not_compiled_is_not_captured_and_never_zero() {
    for timeline in [program(false), Timeline::default()] {
        let found = TorchCompileResult::of(&[&timeline], &TorchCompileParams::default());
        assert_eq!((found.input, found.not_captured.len()), (None, 1));
        let page = TorchCompile::page(&found).unwrap();
        assert!(page.blocks.is_empty());
    }
}

#[test]
fn reasons_that_are_not_recorded_are_unknown_with_a_remedy() {
    let mut trace = Trace::new();
    let ops = trace.thread(1, 1, Track::CpuOp);
    trace.event(Category::CpuOp, ops, "Torch-Compiled Region: 0/0", 0, 100);
    trace.event(Category::CpuOp, ops, "Torch-Compiled Region: 1/0", 50, 100);
    let found = TorchCompileResult::of(&[&trace.build()], &TorchCompileParams::default());
    assert_eq!(found.graph_breaks[0].reason, BreakReason::Unknown);
    assert!(found.graph_breaks[0].suggestion.contains("TORCH_LOGS"));
    assert_eq!(found.compile_ns, 0);
    assert!(found.not_captured.iter().any(|missing| missing.what == "compile time"));
}
