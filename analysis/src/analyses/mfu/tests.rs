use flopwatch_analysis_testing::{Trace, metrics};
use flopwatch_model::{Device, KernelProfile, Track};

use super::*;

/// A device that does one operation per ns.
fn slow_device() -> Device {
    Device {
        id: 0,
        name: "GPU".to_owned(),
        peak_flops: BTreeMap::from([("fp32".to_owned(), 1_000_000_000)]),
        ..Device::default()
    }
}

/// A process with one thread and one stream.
struct Program {
    trace: Trace,
    operators: RowId,
    calls: RowId,
    steps: RowId,
    stream: RowId,
}

impl Program {
    fn new() -> Self {
        let mut trace = Trace::new();
        Self {
            operators: trace.thread(1, 1, Track::CpuOp),
            calls: trace.thread(1, 1, Track::CudaApi),
            steps: trace.thread(1, 1, Track::Annotation),
            stream: trace.stream(1, 0, 7),
            trace,
        }
    }

    fn operator(&mut self, name: &str, shapes: &str, element_type: &str, time: (u64, u64)) {
        let operator = self.trace.event(Category::CpuOp, self.operators, name, time.0, time.1);
        let types = format!(r#"["{element_type}","{element_type}","{element_type}"]"#);
        self.trace.text(operator, ColumnId::InputShapes, shapes);
        self.trace.text(operator, ColumnId::InputTypes, &types);
    }

    /// A call at `at` that launches a kernel.
    fn kernel(&mut self, at: u64, time: (u64, u64)) {
        let kernel = (self.stream, "gemm", time.0, time.1);
        self.trace
            .launch((self.calls, at, at + 1), Category::CudaKernel, kernel);
    }

    fn step(&mut self, number: u64, time: (u64, u64)) {
        let step = self
            .trace
            .event(Category::Step, self.steps, "ProfilerStep", time.0, time.1);
        self.trace.number(step, ColumnId::StepNumber, number);
    }
}

/// A linear layer of 48 operations in a kernel of 100 ns, and another kernel of 100 ns that nothing
/// is known of.
fn linear_layer(element_type: &str) -> Program {
    let mut program = Program::new();
    program.operator("aten::linear", "[[2,3],[4,3],[4]]", element_type, (0, 90));
    program.operator("aten::addmm", "[[4],[2,3],[3,4]]", element_type, (10, 80));
    program.kernel(20, (100, 200));
    program.operator("aten::relu", "[[2,4]]", element_type, (91, 99));
    program.kernel(92, (200, 300));
    program
}

fn near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-9 * expected.abs().max(1.0))
}

#[test]
fn a_layer_and_the_matrix_product_in_it_count_once() {
    let mut program = linear_layer("float");
    program.trace.device(slow_device());
    let params = MfuParams {
        whole: true,
        ..MfuParams::default()
    };
    let result = MfuResult::of(&program.trace.build(), &params);
    assert_eq!(result.flops_source, Some(FlopsSource::Operators));
    assert_eq!(result.peak_source, Some(PeakSource::Device));
    // The kernels run from 100 to 300: 48 operations in 200 ns of a device that could have
    // done 200.
    assert_eq!((result.flops, result.device_time_ns), (Some(48), 200));
    assert!(near(result.mfu_ratio, 0.24) && near(result.flops_per_second, 0.24e9));
    assert!(near(result.coverage_ratio, 0.5));
    let [row] = result.rows.as_slice() else {
        panic!("{:?}", result.rows)
    };
    assert_eq!((row.name.as_str(), row.calls, row.flops), ("aten::addmm", 1, 48));
    assert_eq!(row.element_type.as_deref(), Some("fp32"));
    assert_eq!((row.start_ns, row.end_ns, row.gpu_time_ns), (Some(10), Some(80), 100));
    assert!(near(row.peak_ratio, 0.48));
}

#[test]
fn without_a_peak_rate_of_the_type_there_is_no_share_of_it() {
    let mut program = linear_layer("c10::BFloat16");
    program.trace.device(slow_device());
    let timeline = program.trace.build();
    let result = MfuResult::of(&timeline, &MfuParams::default());
    assert_eq!(
        (result.flops, result.mfu_ratio, result.peak_source),
        (Some(48), None, None)
    );
    let missing = result
        .not_captured
        .iter()
        .find(|missing| missing.what.contains("utilisation"));
    let reason = &missing.unwrap().reason;
    assert!(reason.contains("bf16") && reason.contains("peak_tflops"), "{reason}");
    let params = MfuParams {
        // 2 operations per ns.
        peak_tflops: Some(0.002),
        whole: true,
        ..MfuParams::default()
    };
    let result = MfuResult::of(&timeline, &params);
    assert!(near(result.mfu_ratio, 0.12), "{:?}", result.mfu_ratio);
    assert_eq!(result.peak_source, Some(PeakSource::Given));
}

#[test]
fn a_device_that_states_no_peak_has_that_of_its_data_sheet_and_says_so() {
    let mut program = linear_layer("c10::BFloat16");
    program.trace.device(Device {
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        ..Device::default()
    });
    let timeline = program.trace.build();
    let params = MfuParams {
        whole: true,
        ..MfuParams::default()
    };
    let result = MfuResult::of(&timeline, &params);
    assert_eq!(result.peak_source, Some(PeakSource::DataSheet));
    // 48 operations in 200 ns of 989.4 per ps.
    assert!(
        near(result.mfu_ratio, 48.0 / 200.0 / 989_400.0),
        "{:?}",
        result.mfu_ratio
    );
    let told = "the data sheet of NVIDIA H100 SXM, without sparsity (989.40 TFLOP/s for bf16)";
    assert!(
        result.cautions.iter().any(|caution| caution.contains(told)),
        "{:?}",
        result.cautions
    );
    let given = MfuParams {
        peak_tflops: Some(0.002),
        ..params
    };
    let result = MfuResult::of(&timeline, &given);
    assert_eq!(result.peak_source, Some(PeakSource::Given));
    assert!(near(result.mfu_ratio, 0.12), "{:?}", result.mfu_ratio);
}

#[test]
fn one_iteration_is_told_in_the_singular_and_by_its_name() {
    let result = MfuResult {
        iterations: 1,
        ..MfuResult::of(&two_steps(), &MfuParams::default())
    };
    let text = serde_json::to_string(&page::of(&result)).unwrap();
    assert!(text.contains("The region is 1 step"), "{text}");
}

/// Two steps of 1000 ns, with one layer and with three.
fn two_steps() -> Timeline {
    let mut program = Program::new();
    for (number, layers) in [(0, 1), (1, 3)] {
        let start = number * 1000;
        program.step(number, (start, start + 1000));
        for layer in 0..layers {
            let at = start + 10 + layer * 100;
            program.operator("aten::mm", "[[2,3],[3,4]]", "float", (at, at + 90));
            program.kernel(at + 20, (at + 50, at + 80));
        }
    }
    program.trace.device(slow_device());
    program.trace.build()
}

#[test]
fn each_iteration_has_the_operations_of_what_it_launched() {
    let result = MfuResult::of(&two_steps(), &MfuParams::default());
    assert_eq!(result.iteration_source, Some(IterationSource::Step));
    let flops: Vec<_> = result.by_iteration.iter().map(|iteration| iteration.flops).collect();
    assert_eq!(flops, [Some(48), Some(144)]);
    assert!(near(result.by_iteration[1].mfu_ratio, 0.144));
    assert_eq!((result.flops, result.device_time_ns), (Some(192), 2000));
    assert!(near(result.mfu_ratio, 0.096) && near(result.median_mfu_ratio, 0.096));
}

#[test]
fn operations_that_are_given_go_before_those_of_shapes() {
    let params = MfuParams {
        flops_per_iteration: Some(500.0),
        peak_tflops: Some(0.001),
        ..MfuParams::default()
    };
    let result = MfuResult::of(&two_steps(), &params);
    assert_eq!(
        (result.flops_source, result.flops),
        (Some(FlopsSource::Given), Some(1000))
    );
    assert!(near(result.mfu_ratio, 0.5));
    // What is known one by one is still listed.
    assert_eq!((result.rows.len(), result.rows[0].calls), (1, 4));
}

#[test]
fn calls_without_kernels_or_shapes_are_counted_and_not_guessed() {
    let mut program = Program::new();
    program.operator("aten::mm", "[[2,3],[3,4]]", "float", (0, 50));
    program.operator("aten::mm", "", "float", (60, 90));
    program.kernel(70, (100, 200));
    let result = MfuResult::of(&program.trace.build(), &MfuParams::default());
    assert_eq!((result.calls_without_kernels, result.calls_without_shapes), (1, 1));
    assert_eq!(
        (result.flops_source, result.flops, result.mfu_ratio),
        (None, None, None)
    );
    assert!(
        result
            .not_captured
            .iter()
            .any(|missing| missing.reason.contains("record_shapes"))
    );
}

#[test]
fn counters_of_a_launch_count_a_multiply_add_twice() {
    let mut timeline = Timeline::default();
    timeline.capture.profiles = vec![KernelProfile {
        name: "saxpy".to_owned(),
        metrics: metrics(&[
            ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 10.0, "inst"),
            ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 20.0, "inst"),
            ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 35.0, "inst"),
            ("gpu__time_duration.sum", 1.0, "us"),
        ]),
        ..KernelProfile::default()
    }];
    timeline.capture.devices = vec![slow_device()];
    let result = MfuResult::of(&timeline, &MfuParams::default());
    assert_eq!(
        (result.flops_source, result.flops),
        (Some(FlopsSource::Counters), Some(100))
    );
    assert_eq!(result.device_time_ns, 1000);
    assert!(near(result.mfu_ratio, 0.1) && near(result.coverage_ratio, 1.0));
}

#[test]
fn the_compilers_count_is_taken_of_the_innermost_operations() {
    let mut trace = Trace::new();
    let row = trace.stream(1, 0, 1);
    for (name, start, end, flops) in [
        ("while", 0, 100, 300),
        ("dot.1", 10, 40, 100),
        ("dot.2", 50, 90, 100),
        ("copy", 120, 160, 0),
    ] {
        let operation = trace.event(Category::DeviceOp, row, name, start, end);
        trace.number(operation, ColumnId::Flops, flops);
    }
    let mut device = slow_device();
    device.peak_flops = BTreeMap::from([("any".to_owned(), 10_000_000_000)]);
    trace.device(device);
    let result = MfuResult::of(&trace.build(), &MfuParams::default());
    assert_eq!((result.flops_source, result.flops), (Some(FlopsSource::Hlo), Some(200)));
    assert!(near(result.mfu_ratio, 200.0 / 1600.0) && near(result.coverage_ratio, 70.0 / 140.0));
}
