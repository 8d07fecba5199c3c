//! Operations whose figures can be added up by hand.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Category, ColumnId, Device, Program, RowId};
use flopwatch_report::page::{Block, Unit};

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

/// A product of `f32[2,3]` and `f32[3,4]`, a loop of seven turns over ten elements, a fusion, two
/// copies, and a function of a library that nobody knows.
const PROGRAM: &str = r#"HloModule jit_f, is_scheduled=true

fused {
  p = f32[4,2] parameter(0)
  ROOT inner = f32[4,2] negate(p)
}

turn {
  t = f32[10] parameter(0)
  ROOT next = f32[10] add(t, t)
}

turns {
  u = f32[10] parameter(0)
  ROOT goes_on = pred[] constant(true)
}

ENTRY main {
  a = f32[2,3] parameter(0)
  b = f32[3,4] parameter(1)
  c = f32[10] parameter(2)
  dot.1 = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general" source_file="f.py" source_line=7}
  transpose.2 = f32[4,2] transpose(dot.1), dimensions={1,0}
  copy.3 = f32[4,2] copy(transpose.2)
  fusion.4 = f32[4,2] fusion(copy.3), kind=kLoop, calls=fused
  call.5 = f32[4,2] custom-call(fusion.4), custom_call_target="g"
  while.6 = f32[10] while(c), condition=turns, body=turn, backend_config={"known_trip_count":{"n":"7"}}
  ROOT all.7 = (f32[2,4], f32[10], f32[4,2]) tuple(dot.1, while.6, call.5)
}
"#;

fn program(name: &str) -> Program {
    Program {
        name: name.to_owned(),
        id: 0,
        proto: PROGRAM.as_bytes().to_vec(),
    }
}

/// A dump of programs, of which no time was measured.
fn dump(names: &[&str]) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.capture.programs = names.iter().map(|name| program(name)).collect();
    timeline
}

#[test]
fn operations_of_a_dump_are_listed_by_the_work_that_is_counted() {
    let found = of(&dump(&["jit_f"]), &HloOperationsParams::default());
    let work: Vec<(&str, Option<u64>, u64)> = found
        .unmeasured
        .iter()
        .map(|row| (row.operation.as_str(), row.flops, row.bytes))
        .collect();
    assert_eq!(
        work,
        [
            ("while.6", Some(7 * 10), 7 * 120),
            ("dot.1", Some(2 * 2 * 3 * 4), 24 + 48 + 32),
            ("fusion.4", Some(8), 32 + 32),
            ("copy.3", Some(0), 32 + 32),
            ("transpose.2", Some(0), 32 + 32),
            // What a function does that is not known is not nothing.
            ("call.5", None, 32 + 32),
        ]
    );
    let dot = &found.unmeasured[1];
    assert_eq!((dot.opcode.as_str(), dot.shape.as_str()), ("dot", "f32[2,4]"));
    assert_eq!(
        (dot.framework_op.as_str(), dot.source.as_deref()),
        ("jit(f)/dot_general", Some("f.py:7"))
    );
    assert_eq!(dot.intensity, Some(48.0 / 104.0));
    assert_eq!(found.unmeasured[2].category, "loop fusion");
    assert_eq!((found.unmeasured[5].intensity, found.unmeasured_left_out), (None, 0));
    assert!(found.rows.is_empty());
    let missing: Vec<&str> = found.not_captured.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(missing, ["time of operations"]);
}

#[test]
fn operations_of_a_dump_are_a_table_of_their_own_that_has_no_times() {
    let found = of(&dump(&["jit_f"]), &HloOperationsParams::default());
    let page = HloOperationsAnalysis::page(&found).unwrap();
    let [Block::Table(table)] = &page.blocks[..] else {
        panic!("one table: {:?}", page.blocks)
    };
    assert_eq!(table.title, "Operations, by counted work; no time was measured");
    assert_eq!(table.rows.len(), 6);
    assert!(table.columns.iter().all(|column| column.unit != Unit::Ns), "{table:?}");
}

#[test]
fn operations_of_a_dump_are_those_of_the_chosen_program_and_no_more_than_the_limit() {
    let params = HloOperationsParams {
        program: "step".to_owned(),
        limit: 2,
    };
    let found = of(&dump(&["jit_f", "jit_step"]), &params);
    let names: Vec<(&str, &str)> = found
        .unmeasured
        .iter()
        .map(|row| (row.program.as_str(), row.operation.as_str()))
        .collect();
    assert_eq!(names, [("jit_step", "while.6"), ("jit_step", "dot.1")]);
    assert_eq!(found.unmeasured_left_out, 4);
}

#[test]
fn where_time_was_measured_no_operation_is_listed_without_it() {
    let (mut trace, row) = on_an_accelerator();
    trace.event(Category::DeviceOp, row, "dot.1", 0, 10);
    let mut timeline = trace.build();
    timeline.capture.programs.push(program("jit_f"));
    for program in ["", "jit_f"] {
        let params = HloOperationsParams {
            program: program.to_owned(),
            ..HloOperationsParams::default()
        };
        let found = of(&timeline, &params);
        assert_eq!(found.rows.len(), usize::from(program.is_empty()));
        assert!(found.unmeasured.is_empty(), "{found:?}");
    }
}
