use flopwatch_analysis_testing::{Trace, metrics};
use flopwatch_model::{Device, Track};

use super::*;

fn trace(capability: (u32, u32)) -> Timeline {
    let mut trace = Trace::new();
    trace.device(Device {
        compute_capability: Some(capability),
        ..Device::default()
    });
    let (ops, api) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::CudaApi));
    let stream = trace.stream(1, 0, 7);
    for (at, shapes, types, kernel) in [
        (
            0,
            "[[64,128],[128,256]]",
            r#"["c10::Half","c10::Half"]"#,
            "ampere_h16816gemm_128x128",
        ),
        (
            1,
            "[[64,128],[128,250]]",
            r#"["float","float"]"#,
            "ampere_sgemm_128x64_nn",
        ),
        (
            2,
            "[[1,128],[128,256]]",
            r#"["float","float"]"#,
            "void gemv2T_kernel_val<float>",
        ),
    ] {
        let start = at * 100;
        let outer = trace.event(Category::CpuOp, ops, "aten::matmul", start, start + 50);
        trace.text(outer, ColumnId::InputShapes, shapes);
        let operator = trace.event(Category::CpuOp, ops, "aten::mm", start + 5, start + 45);
        trace.text(operator, ColumnId::InputShapes, shapes);
        trace.text(operator, ColumnId::InputTypes, types);
        let call = (api, start + 10, start + 12);
        trace.launch_kernel(call, (stream, kernel, start + 20, start + 20 + 10 * (at + 1)));
    }
    trace.build()
}

#[test]
fn products_are_joined_to_the_kernels_that_they_launched() {
    let found = PrecisionResult::of(&trace((8, 0)), PrecisionParams::default());
    assert_eq!(
        (
            found.kernel_ns,
            found.matrix_ns,
            found.tensor_core_ns,
            found.cuda_core_ns
        ),
        (60, 30, 10, 20)
    );
    assert_eq!(found.tensor_core_ratio, Some(1.0 / 3.0));
    let actual: Vec<_> = found
        .products
        .iter()
        .map(|row| (row.m, row.n, row.alignment, row.eligible, row.gpu_ns, row.calls))
        .collect();
    // The product with a vector took longest; matmul and the mm in it count once.
    let expected = [
        (1, 256, 128, Some(false), 30, 1),
        (64, 250, 2, Some(true), 20, 1),
        (64, 256, 64, Some(true), 10, 1),
    ];
    assert_eq!(actual, expected);
    assert_eq!((found.misaligned_ns, found.eligible_unused_ns), (20, 20));
}

#[test]
fn a_gpu_before_volta_has_no_tensor_cores_and_before_ampere_no_tf32() {
    let found = PrecisionResult::of(&trace((6, 1)), PrecisionParams::default());
    assert_eq!((found.has_tensor_cores, found.eligible_unused_ns), (Some(false), 0));
    assert!(found.products.iter().all(|row| row.eligible == Some(false)));
    let turing = PrecisionResult::of(&trace((7, 5)), PrecisionParams::default());
    assert_eq!(turing.eligible_unused_ns, 0);
}

#[test]
fn counters_go_before_names() {
    let profile = |name: &str, percent: Option<f64>| {
        let mut list = vec![("gpu__time_duration.sum", 100.0, "ns")];
        list.extend(percent.map(|percent| (TENSOR_PIPE_PERCENT[0], percent, "%")));
        KernelProfile {
            name: name.to_owned(),
            metrics: metrics(&list),
            ..KernelProfile::default()
        }
    };
    let mut timeline = Timeline::default();
    timeline.capture.profiles = vec![
        profile("mystery", Some(40.0)),
        profile("mystery", Some(60.0)),
        profile("copy", Some(0.0)),
    ];
    let found = PrecisionResult::of(&timeline, PrecisionParams::default());
    assert_eq!(found.source, Some(TensorCoreSource::Counters));
    assert_eq!((found.kernel_ns, found.matrix_ns, found.kernels.len()), (300, 200, 1));
    assert_eq!(found.kernels[0].tensor_pipe_percent, Some(50.0));
}

#[test]
fn nothing_is_not_captured() {
    let found = PrecisionResult::of(&Timeline::default(), PrecisionParams::default());
    assert_eq!((found.tensor_core_ratio, found.not_captured.len()), (None, 1));
}
