use flopwatch_analysis_testing::metrics;

use super::*;

/// A launch with so many FFMA per cycle and so many bytes per second.
fn launch(id: u64, name: &str, fused: f64, bytes_per_second: f64, duration_ns: f64) -> KernelProfile {
    let list = [
        ("gpu__time_duration.sum", duration_ns, "ns"),
        (
            "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed",
            0.0,
            "inst/cycle",
        ),
        (
            "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed",
            0.0,
            "inst/cycle",
        ),
        (
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",
            fused,
            "inst/cycle",
        ),
        (
            "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
            1000.0,
            "inst/cycle",
        ),
        ("smsp__cycles_elapsed.avg.per_second", 1e9, "hz"),
        ("sm__cycles_elapsed.avg.per_second", 1e9, "hz"),
        ("dram__bytes.sum.per_second", bytes_per_second, "byte/s"),
        ("dram__bytes.sum.peak_sustained", 100.0, "byte/cycle"),
        ("dram__cycles_elapsed.avg.per_second", 1e9, "hz"),
    ];
    KernelProfile {
        id,
        name: name.to_owned(),
        grid: [8, 1, 1],
        block: [32, 1, 1],
        metrics: metrics(&list),
        ..KernelProfile::default()
    }
}

fn capture(profiles: Vec<KernelProfile>) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.capture.profiles = profiles;
    timeline
}

#[test]
fn launches_of_two_captures_are_joined_by_name_grid_block_and_order() {
    let before = capture(vec![
        launch(0, "gemm", 100.0, 50e9, 10.0),
        launch(1, "gemm", 50.0, 50e9, 20.0),
    ]);
    let after = capture(vec![
        launch(5, "axpy", 1.0, 50e9, 5.0),
        launch(6, "gemm", 300.0, 50e9, 10.0),
        launch(7, "gemm", 50.0, 25e9, 20.0),
    ]);
    let found = of(&[&before, &after], &RooflineParams::default());
    // The longest first: 1, 0; then 7, 6, 5.
    let order: Vec<(u32, u64)> = found.points.iter().map(|point| (point.input, point.launch)).collect();
    assert_eq!(order, [(0, 1), (0, 0), (1, 7), (1, 6), (1, 5)]);
    let moves: Vec<(u32, u32, f64, f64)> = found
        .moves
        .iter()
        .map(|moved| (moved.from, moved.to, moved.work_ratio, moved.intensity_ratio))
        .collect();
    // Both before were the first and second of their kind, and so after.
    assert_eq!(moves, [(0, 2, 1.0, 2.0), (1, 3, 3.0, 3.0)]);
    let first = &found.points[1];
    assert_eq!(
        (first.work_per_second, first.intensity, first.bound),
        (200e9, 4.0, Bound::Memory)
    );
    assert_eq!((first.attainable_per_second, first.reached_ratio), (400e9, 0.5));
    assert_eq!(
        (found.launches, found.launches_left_out, found.launches_without_roofline),
        (5, 0, 0)
    );
    assert!(found.not_captured.is_empty());
}

#[test]
fn a_launch_without_work_has_no_point_and_one_without_metrics_is_counted() {
    let mut bare = launch(1, "bare", 0.0, 1.0, 1.0);
    bare.metrics.clear();
    let found = of(
        &[&capture(vec![launch(0, "copy", 0.0, 50e9, 10.0), bare])],
        &RooflineParams::default(),
    );
    assert_eq!(found.unused, [WorkKind::Fp32]);
    assert!(found.points.is_empty());
    assert_eq!(found.launches_without_roofline, 1);
    assert!(
        found.not_captured[0].reason.contains("1 of 2 launches"),
        "{:?}",
        found.not_captured
    );
    let page = page::of(&found, "", "");
    assert_eq!(page.blocks.len(), 1, "{:?}", page.blocks);
}

#[test]
fn a_launch_whose_peak_is_not_known_has_no_roof_and_is_not_said_to_do_no_work() {
    let mut of_unknown_peak = launch(0, "gemm", 100.0, 50e9, 10.0);
    let peak = of_unknown_peak
        .metrics
        .get_mut("sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained");
    peak.unwrap().value = 0.0.into();
    let found = of(&[&capture(vec![of_unknown_peak])], &RooflineParams::default());
    assert!(found.points.is_empty() && found.unused.is_empty(), "{found:?}");
    assert_eq!(found.launches_without_roofline, 1);
    assert!(found.not_captured[0].reason.contains("1 of 1 launches"));
    assert!(page::of(&found, "", "").blocks.is_empty(), "no chart, no roof");
}

#[test]
fn a_launch_that_moves_no_bytes_is_not_said_to_do_no_work() {
    let found = of(
        &[&capture(vec![launch(0, "gemm", 100.0, 0.0, 10.0)])],
        &RooflineParams::default(),
    );
    assert!(found.points.is_empty() && found.unused.is_empty(), "{found:?}");
}

#[test]
fn no_report_says_so() {
    let found = of(&[&Timeline::default()], &RooflineParams::default());
    assert!(found.not_captured[0].reason.contains(".ncu-rep"));
}
