//! Operations of real captures.

use flopwatch_analysis::analyses::operations::{Operation, OperationKind, Operations, OperationsParams, of};
use flopwatch_model::Timeline;

use crate::captures::timeline;
use crate::nsys;

fn operations(timeline: &Timeline) -> Operations {
    let params = OperationsParams {
        top: 100_000,
        ..OperationsParams::default()
    };
    of(timeline, &params)
}

fn find<'a>(list: &'a Operations, name: &str) -> &'a Operation {
    let mut list = list.operations.iter();
    list.find(|operation| operation.operation == name).unwrap()
}

/// The figures were counted apart from this program: names without `seq` and `op_id` grouped in
/// SQL, kernels joined by process and correlation id to the call, and the call by thread and start
/// to the range.
#[test]
fn operators_in_nvtx_ranges_are_those_of_the_database() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let found = operations(&timeline);
    assert_eq!(
        (found.kind, found.calls, found.distinct),
        (OperationKind::Nvtx, 19_118, 61)
    );
    assert_eq!(found.total_ns, 1_403_779_266);
    let expected = [
        ("aten::copy_", 2_840, 360_891_119, 69_843_176),
        ("aten::addmm", 336, 27_744_838, 57_807_320),
        ("aten::_to_copy", 1_691, 360_599_470, 44_925_081),
    ];
    for (name, calls, total_ns, gpu_ns) in expected {
        let operation = find(&found, name);
        assert_eq!((operation.calls, operation.total_ns), (calls, total_ns), "{name}");
        assert_eq!(operation.gpu_ns, Some(gpu_ns), "{name}");
    }
    // 24 kernels and 7 other pieces have no launch record.
    let coverage = found.gpu_work.unwrap();
    assert_eq!(
        (coverage.pieces, coverage.inside, coverage.without_launch),
        (5_299, 5_268, 31)
    );
    for operation in &found.operations {
        let parts = [operation.cpu_ns, operation.overhead_ns, operation.wait_ns];
        let sum: u64 = parts.iter().flatten().sum();
        assert_eq!(sum, operation.total_ns, "{}", operation.operation);
    }
}

/// `ops_summary.csv` of TraceLens lists the operators that launched kernels themselves.
#[test]
fn own_gpu_time_of_operators_is_the_direct_kernel_time_of_tracelens() {
    let Some(timeline) = timeline("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz") else {
        return;
    };
    let Some(table) = nsys::corpus("tracelens-h100/gaunernst_bert-small-uncased__1016001.ops_summary.csv") else {
        return;
    };
    let found = operations(&timeline);
    let table = std::fs::read_to_string(table).unwrap();
    let mut compared = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let operation = find(&found, fields[0]);
        let (direct_us, calls): (f64, u64) = (fields[1].parse().unwrap(), fields[5].parse().unwrap());
        // A copy to the host is a kernel's time there and a transfer here.
        let own = u32::try_from(operation.self_gpu_ns.unwrap() + operation.transfer_ns.unwrap()).unwrap();
        // Of each call they read microseconds as floating-point numbers since 1970.
        assert!((f64::from(own) / 1e3 - direct_us).abs() < 0.01, "{}: {own}", fields[0]);
        assert_eq!(operation.calls, calls, "{}", fields[0]);
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
    assert_eq!(found.not_captured, []);
    assert!(find(&found, "aten::addmm").peak_bytes.unwrap() > 0);
}

#[test]
fn operations_of_compiled_programs_are_found_in_jax_captures() {
    for (name, calls, distinct) in [
        ("tracelens-jax/jax_conv_minimal_08.xplane.pb", 198, 4),
        ("xprof/tpu_inference_2.xplane.pb", 6_613, 17),
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let found = operations(&timeline);
        assert_eq!(
            (found.kind, found.calls, found.distinct),
            (OperationKind::Hlo, calls, distinct),
            "{name}"
        );
        let listed = found.kinds.iter().find(|of_kind| of_kind.kind == OperationKind::Hlo);
        assert_eq!(listed.map(|of_kind| of_kind.calls), Some(calls), "{name}");
    }
}
