//! Operations whose figures can be added up by hand.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Category, ColumnId, Device, RowId};

use super::*;

/// A trace with the line of the operations of an accelerator, whose ridge is at 10 FLOP per byte.
fn on_an_accelerator() -> (Trace, RowId) {
    let mut trace = Trace::new();
    trace.device(Device {
        peak_bandwidth: Some(100_000_000_000),
        peak_flops: [("any".to_owned(), 1_000_000_000_000)].into(),
        ..Device::default()
    });
    let row = trace.device_line("/device:TPU:0 XLA Ops");
    (trace, row)
}

#[test]
fn what_the_profiler_states_gives_rates_and_the_side_of_the_ridge() {
    let (mut trace, row) = on_an_accelerator();
    // Per run 2,000 FLOP of 100 bytes in 10 ns, and 100 FLOP of 100 bytes in 5 ns.
    for (name, flops, start, end) in [
        ("dot.1", 2_000, 0, 10),
        ("dot.1", 2_000, 20, 30),
        ("add.2", 100, 40, 45),
    ] {
        let event = trace.event(Category::DeviceOp, row, name, start, end);
        trace.number(event, ColumnId::Flops, flops);
        trace.number(event, ColumnId::Bytes, 100);
    }
    let found = of(&trace.build(), &HloOperationsParams::default());
    let [dot, add] = &found.rows[..] else {
        panic!("two operations: {:?}", found.rows)
    };
    assert_eq!((dot.occurrences, dot.flops, dot.bytes), (2, Some(2_000), Some(100)));
    assert_eq!(dot.flops_per_second, Some(4_000.0 / 20.0 * 1e9));
    assert_eq!((dot.intensity, dot.bound), (Some(20.0), Some(HloBound::Compute)));
    assert_eq!((add.intensity, add.bound), (Some(1.0), Some(HloBound::Memory)));
    assert_eq!((dot.self_ratio, add.self_ratio), (Some(0.8), Some(0.2)));
    assert_eq!(dot.flops_source, Some(HloFigureSource::Profiler));
    assert_eq!(found.self_ns, 25);
}

#[test]
fn what_begins_or_awaits_a_copy_has_no_rate_and_no_bound() {
    let (mut trace, row) = on_an_accelerator();
    for (name, start, end) in [("copy-start.1", 0, 2), ("copy-done.1", 10, 90), ("copy.2", 90, 100)] {
        let event = trace.event(Category::DeviceOp, row, name, start, end);
        trace.number(event, ColumnId::Flops, 1);
        trace.number(event, ColumnId::Bytes, 5_000_000_000);
    }
    let found = of(&trace.build(), &HloOperationsParams::default());
    for row in &found.rows {
        let is_own = row.operation == "copy.2";
        assert_eq!(row.bytes, Some(5_000_000_000), "{row:?}");
        assert_eq!(row.bytes_per_second.is_some(), is_own, "{row:?}");
        assert_eq!(row.flops_per_second.is_some(), is_own, "{row:?}");
        assert_eq!(row.bound.is_some(), is_own, "{row:?}");
    }
}

#[test]
fn a_capture_without_programs_says_so() {
    let found = of(&Timeline::default(), &HloOperationsParams::default());
    assert!(found.rows.is_empty());
    assert_eq!(found.not_captured.len(), 2);
}
