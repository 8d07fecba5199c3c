//! Kernels that are told by their names: products of matrices and collectives of small captures of
//! `../shared/cases`, and of real ones.

use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::matrix_kernel::{MatrixKernel, MatrixUnit};
use flopwatch_model::Category;
use serde_json::{Value, json};

use crate::captures::{analyze, timeline, timeline_of_case};
use crate::host::collectives;
use crate::result::{find, list, said};

#[test]
fn products_in_full_precision_are_on_cuda_cores_whatever_library_they_are_of() {
    let Some(timeline) = timeline_of_case("fp32_gemm_of_xmma_by_ffma.json") else {
        return;
    };
    let found = analyze("precision", &Value::Null, &[&timeline]);
    assert_eq!(found["tensor_core_ratio"], 0.0);
    let unused = said(&found, &["cuda_core_ns", "eligible_unused_ns"]);
    assert_eq!(unused, json!([360_000, 360_000]));
    assert_eq!(found["kernels"][0]["element_type"], "fp32");
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    let finding = find(&advice["findings"], "rule", "tensor-cores");
    assert_eq!(finding["title"], "Tensor cores are not used");
}

#[test]
fn products_of_hipblaslt_multiply_and_operations_of_miopen_on_elements_do_not() {
    let Some(timeline) = timeline_of_case("rocm_gemm_names.json") else {
        return;
    };
    let found = analyze("precision", &Value::Null, &[&timeline]);
    let of_matrices = said(&found, &["matrix_ns", "kernel_ns"]);
    assert_eq!(of_matrices, json!([600_000, 610_000]));
    assert!(found["matrix_ratio"].as_f64().unwrap() > 0.98);
    let kernels = list(&found["kernels"]).map(|kernel| said(kernel, &["unit", "element_type", "launches"]));
    assert_eq!(kernels.collect::<Value>(), json!([["tensor_core", "bf16", 4]]));
}

#[test]
fn all_reduces_of_servers_communicate() {
    let Some(timeline) = timeline_of_case("custom_all_reduces_of_servers.json") else {
        return;
    };
    let time = analyze("gpu-time", &Value::Null, &[&timeline]);
    let all = said(&time["all"], &["compute_ns", "exposed_communication_ns"]);
    assert_eq!(all, json!([0, 480_000]));
    let found = analyze("collectives", &Value::Null, &[&timeline]);
    assert_eq!(found["collectives"], 6);
    let of = |operation| collectives(&found, operation);
    assert_eq!((of("all_reduce"), of("reduce_scatter")), (4, 2));
}

/// Names that hold a word of the tables and are something else: counted by hand among the kernels
/// of each capture.
#[test]
fn names_of_real_captures_are_told_apart() {
    for (name, tensor_cores, cuda_cores, not_said) in [
        ("tracelens-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 2, 1, 0),
        ("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz", 5, 0, 0),
        ("kineto-samples/resnet50_w0_span1.pt.trace.json.gz", 0, 31, 0),
        ("nsys-ai/mfu_2gpu_before.sqlite", 4, 0, 0),
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let kernels = timeline.capture.events.get(&Category::CudaKernel).unwrap();
        let units: Vec<MatrixUnit> = kernels
            .names
            .iter()
            .filter_map(|name| Some(MatrixKernel::of(name)?.unit))
            .collect();
        let of = |wanted: MatrixUnit| units.iter().filter(|unit| **unit == wanted).count();
        let found = [MatrixUnit::TensorCore, MatrixUnit::CudaCore, MatrixUnit::Unknown].map(of);
        assert_eq!(found, [tensor_cores, cuda_cores, not_said], "{name}");
        let communicates = |name: &&String| WorkClass::of(Category::CudaKernel, name) == Some(WorkClass::Communication);
        let communicating: Vec<&String> = kernels.names.iter().filter(communicates).collect();
        assert!(
            communicating.iter().all(|name| name.starts_with("nccl")),
            "{communicating:?}"
        );
    }
}
