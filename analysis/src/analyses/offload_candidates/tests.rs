use flopwatch_analysis_testing::{Trace, metrics};
use flopwatch_model::{Device, KernelProfile, Track};

use super::*;

/// Copy in, addition of two vectors, product, copy out: 100 B in, 4,000 B added in 40 ns, a 64 x 64
/// product in 20 ns, 50 B out.
fn trace() -> Timeline {
    let mut trace = Trace::new();
    trace.device(Device {
        peak_bandwidth: Some(200_000_000_000),
        peak_flops: [("fp32".to_owned(), 2_000_000_000_000)].into(),
        ..Device::default()
    });
    let ops = trace.thread(1, 1, Track::CpuOp);
    let api = trace.thread(1, 1, Track::CudaApi);
    let stream = trace.stream(1, 0, 7);
    let copy = trace.launch((api, 0, 2), Category::CudaMemcpyH2d, (stream, "Memcpy HtoD", 5, 15));
    trace.number(copy, ColumnId::Bytes, 100);
    for (name, shapes, types, call, kernel, start, end) in [
        (
            "aten::add",
            "[[500],[500],[]]",
            r#"["float","float","Scalar"]"#,
            20,
            "vectorized_elementwise_kernel",
            30,
            70,
        ),
        (
            "aten::mm",
            "[[64,64],[64,64]]",
            r#"["float","float"]"#,
            40,
            "sgemm",
            70,
            90,
        ),
    ] {
        let operator = trace.event(Category::CpuOp, ops, name, call - 2, call + 10);
        trace.text(operator, ColumnId::InputShapes, shapes);
        trace.text(operator, ColumnId::InputTypes, types);
        trace.launch_kernel((api, call, call + 5), (stream, kernel, start, end));
    }
    let copy = trace.launch((api, 60, 62), Category::CudaMemcpyD2h, (stream, "Memcpy DtoH", 95, 99));
    trace.number(copy, ColumnId::Bytes, 50);
    trace.build()
}

#[test]
fn bytes_intensity_and_needs_can_be_counted() {
    let found = OffloadCandidatesResult::of(&[&trace()], OffloadCandidatesParams::default());
    assert_eq!(found.ridge_flop_per_byte, Some(10.0));
    // The product does 2 * 64^3 operations on 3 * 64 * 64 * 4 bytes: 10.67 per byte, above the
    // balance.
    assert_eq!(
        (
            found.kernel_ns,
            found.memory_bound_ns,
            found.estimated_ns,
            found.unknown_ns
        ),
        (60, 40, 40, 0)
    );
    let [one] = &found.candidates[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (one.kernel.as_str(), one.basis),
        ("vectorized_elementwise_kernel", BoundBasis::Kind)
    );
    assert_eq!(
        (one.bytes_per_launch, one.working_set_bytes, found.on_chip_bytes),
        (Some(4000), Some(4000), Some(4000))
    );
    // 4,000 B in 40 ns are 100 GB/s of 200.
    assert_eq!(
        (one.bandwidth_bytes_per_second, one.bandwidth_ratio),
        (Some(1e11), Some(0.5))
    );
    assert_eq!(
        (one.copied_in_bytes, one.copied_out_bytes, one.copy_ns),
        (Some(100), Some(0), 10)
    );
    assert_eq!((found.transfer_bytes, found.transfer_ns), (Some(150), 14));
    // A device with another balance makes the product a candidate too.
    let params = OffloadCandidatesParams {
        ridge_flop_per_byte: Some(11.0),
        ..OffloadCandidatesParams::default()
    };
    let found = OffloadCandidatesResult::of(&[&trace()], params);
    let actual: Vec<_> = found
        .candidates
        .iter()
        .map(|one| (one.kernel.as_str(), one.basis, one.copied_out_bytes))
        .collect();
    assert_eq!(
        actual,
        [
            ("vectorized_elementwise_kernel", BoundBasis::Kind, Some(0)),
            ("sgemm", BoundBasis::Shapes, Some(50))
        ]
    );
}

#[test]
fn counters_go_before_estimates() {
    let mut report = Timeline::default();
    let profile = |memory: f64, compute: f64| KernelProfile {
        name: "void vectorized_elementwise_kernel<4>(int)".to_owned(),
        metrics: metrics(&[
            ("gpu__time_duration.sum", 50.0, "ns"),
            ("dram__bytes.sum.per_second", 1e11, "byte/second"),
            ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", memory, "%"),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", compute, "%"),
        ]),
        ..KernelProfile::default()
    };
    report.capture.profiles = vec![profile(80.0, 20.0)];
    let found = OffloadCandidatesResult::of(&[&trace(), &report], OffloadCandidatesParams::default());
    let one = &found.candidates[0];
    assert_eq!(
        (one.basis, one.bytes_per_launch, one.bandwidth_ratio),
        (BoundBasis::Counters, Some(5000), Some(0.8))
    );
    assert_eq!((found.memory_bound_ns, found.estimated_ns), (40, 0));
    // The report alone.
    let alone = OffloadCandidatesResult::of(&[&report], OffloadCandidatesParams::default());
    assert_eq!((alone.kernel_ns, alone.candidates.len()), (50, 1));
    // Neither memory nor compute is busy: no candidate, whatever the name says.
    report.capture.profiles = vec![profile(30.0, 20.0)];
    let found = OffloadCandidatesResult::of(&[&trace(), &report], OffloadCandidatesParams::default());
    assert!(found.candidates.is_empty());
}

#[test]
fn what_is_not_known_is_counted_and_said() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    trace.kernel(stream, "mystery", 0, 10);
    trace.kernel(stream, "ncclDevKernel_AllReduce_Sum_f32", 10, 90);
    let found = OffloadCandidatesResult::of(&[&trace.build()], OffloadCandidatesParams::default());
    assert_eq!((found.kernel_ns, found.unknown_ns, found.candidates.len()), (10, 10, 0));
    assert_eq!(found.not_captured.len(), 2);
    let nothing = OffloadCandidatesResult::of(&[&Timeline::default()], OffloadCandidatesParams::default());
    assert_eq!((nothing.memory_bound_ratio, nothing.not_captured.len()), (None, 1));
}

#[test]
fn operations_of_an_accelerator_are_held_against_its_balance_and_transfers_are_none() {
    let mut trace = Trace::new();
    trace.device(Device {
        peak_bandwidth: Some(100),
        peak_flops: [("any".to_owned(), 1000)].into(),
        ..Device::default()
    });
    let line = trace.thread(1, 1, Track::Device);
    for (name, start, end, bytes, flops) in [
        ("copy-done.2", 0, 1000, 500, 0),
        ("all-reduce.1", 1000, 1100, 500, 100),
        ("add_fusion", 1100, 1200, 100, 999),
        ("dot_general", 1200, 1250, 100, 1001),
    ] {
        let operation = trace.event(Category::DeviceOp, line, name, start, end);
        trace.number(operation, ColumnId::Bytes, bytes);
        trace.number(operation, ColumnId::Flops, flops);
    }
    let found = OffloadCandidatesResult::of(&[&trace.build()], OffloadCandidatesParams::default());
    assert_eq!(
        (found.kernel_ns, found.memory_bound_ns, found.estimated_ns),
        (150, 100, 0)
    );
    let one = &found.candidates[0];
    assert_eq!((one.kernel.as_str(), one.basis), ("add_fusion", BoundBasis::Compiler));
    assert_eq!(one.intensity_flop_per_byte, Some(9.99));
}
