use flopwatch_analysis_testing::Trace;
use flopwatch_model::{ColumnId, Track};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn compiled(timeline: &Timeline) -> (CompileActivity, Threads) {
    let threads = Threads::of(timeline);
    (CompileActivity::of(timeline, &threads), threads)
}

/// Names of PyTorch 2.15 on a thread: a function in three graphs. `print` and `.item()` are between
/// them; only the latter calls an operator.
fn broken() -> Timeline {
    let mut trace = Trace::new();
    let (ops, python) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Python));
    let mut op = |name: &str, start, end| trace.event(Category::CpuOp, ops, name, start, end);
    op("TorchDynamo Cache Lookup", 90, 100);
    op("Torch-Compiled Region: 0/0", 100, 400);
    op("CompiledFunction", 110, 150);
    op("TorchDynamo Cache Lookup", 180, 190);
    op("Torch-Compiled Region: 1/0", 200, 390);
    op("CompiledFunction", 210, 250);
    op("aten::item", 255, 260);
    op("aten::_local_scalar_dense", 256, 259);
    op("TorchDynamo Cache Lookup", 270, 280);
    op("_compile.compile_inner (dynamo_timed)", 280, 299);
    op("Torch-Compiled Region: 2/1", 300, 380);
    op("CompiledFunction", 310, 320);
    for (name, start, end, id, parent) in [
        ("net.py(7): forward", 101, 399, 1, 0),
        ("torch/_dynamo/eval_frame.py(1527): _fn", 105, 160, 2, 1),
        ("<built-in function set_eval_frame>", 155, 156, 3, 2),
        ("<built-in function print>", 165, 170, 4, 1),
        ("net.py(10): torch_dynamo_resume_in_forward_at_10", 201, 389, 5, 1),
    ] {
        let function = trace.event(Category::PythonFunction, python, name, start, end);
        trace.number(function, ColumnId::PythonId, id);
        trace.number(function, ColumnId::PythonParent, parent);
    }
    trace.build()
}

#[test]
fn runs_inside_runs_are_breaks_with_what_ran_between() {
    let timeline = broken();
    let (compiled, threads) = compiled(&timeline);
    let breaks = compiled.graph_breaks(&timeline, &threads, 0);
    let actual: Vec<_> = breaks
        .iter()
        .map(|one| {
            (
                one.reason,
                one.seen.as_str(),
                one.location.as_deref(),
                one.runs,
                one.between_ns,
            )
        })
        .collect();
    let expected = [
        (
            BreakReason::Output,
            "<built-in function print>",
            Some("net.py(10): forward"),
            1,
            50,
        ),
        (BreakReason::ScalarRead, "aten::item", None, 1, 50 - 19),
    ];
    assert_eq!(actual, expected);
    assert_eq!(compiled.outermost().count(), 1);
    assert_eq!(compiled.cache_lookups(), (3, 30));
    assert_eq!(compiled.mean_run_ns(), None);
}

/// Two graphs side by side, in one entry to compiled code or in one each.
fn graphs_side_by_side(is_given_up: bool) -> Timeline {
    let mut trace = Trace::new();
    let (ops, python) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Python));
    for (start, end) in [(30, 40), (60, 70)] {
        trace.event(Category::CpuOp, ops, "TorchDynamo Cache Lookup", start - 2, start);
        trace.event(Category::CpuOp, ops, "Torch-Compiled Region: 5/0", start, end);
    }
    let entry = "torch/_dynamo/eval_frame.py(1150): compile_wrapper";
    let entries = if is_given_up {
        vec![(entry, 10, 90, 1, 0), ("net.py(24): loop", 20, 80, 2, 1)]
    } else {
        vec![
            ("net.py(18): apart", 20, 80, 2, 0),
            (entry, 25, 42, 6, 2),
            (entry, 50, 75, 7, 2),
        ]
    };
    let functions = [
        ("net.py(30): inner", 31, 39, 3, 2),
        ("<built-in function print>", 45, 48, 4, 2),
        ("net.py(30): inner", 61, 69, 5, 2),
    ];
    for (name, start, end, id, parent) in entries.into_iter().chain(functions) {
        let function = trace.event(Category::PythonFunction, python, name, start, end);
        trace.number(function, ColumnId::PythonId, id);
        trace.number(function, ColumnId::PythonParent, parent);
    }
    trace.build()
}

#[test]
fn graphs_side_by_side_are_a_break_in_a_function_that_was_given_up_and_none_where_they_are_compiled_apart() {
    let timeline = graphs_side_by_side(true);
    let (compiled, threads) = compiled(&timeline);
    let breaks = compiled.graph_breaks(&timeline, &threads, 0);
    assert_eq!(breaks.len(), 1);
    let one = &breaks[0];
    assert_eq!(
        (one.reason, one.seen.as_str()),
        (BreakReason::Output, "<built-in function print>")
    );
    assert_eq!(
        (one.is_given_up, one.location.as_deref()),
        (true, Some("net.py(24): loop"))
    );
    assert_eq!((one.runs, one.between_ns), (1, 20));
    let timeline = graphs_side_by_side(false);
    let (compiled, threads) = self::compiled(&timeline);
    assert_eq!(compiled.graph_breaks(&timeline, &threads, 0), []);
}

#[test]
fn what_began_to_compile_and_has_no_guards_was_given_up() {
    let mut trace = Trace::new();
    let (ops, annotations) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Annotation));
    for (code, start, parts) in [
        ("6/0", 0, ["entire_frame_compile", "gc"]),
        ("7/0", 100, ["entire_frame_compile", "build_guards"]),
    ] {
        for (part, at) in parts.into_iter().zip([start + 1, start + 5]) {
            trace.event(
                Category::Annotation,
                annotations,
                &format!("{part}_data: compile_id={code}"),
                at,
                at + 1,
            );
        }
        trace.event(
            Category::CpuOp,
            ops,
            "_compile.compile_inner (dynamo_timed)",
            start + 2,
            start + 40,
        );
    }
    let timeline = trace.build();
    let (compiled, _) = compiled(&timeline);
    let actual: Vec<_> = compiled
        .given_up(&timeline, 0)
        .into_iter()
        .map(|one| (one.code.to_string(), one.compile_ns))
        .collect();
    assert_eq!(actual, [("6/0".to_owned(), 38)]);
}

#[test]
fn the_compiler_time_is_of_the_code_that_it_says_or_of_the_next_run() {
    let timeline = broken();
    let (compiled, _) = compiled(&timeline);
    let recompiles = compiled.recompiles(&timeline, 0);
    assert_eq!(recompiles.len(), 1);
    assert_eq!(
        (recompiles[0].code.to_string(), recompiles[0].compile_ns),
        ("2/1".to_owned(), Some(19))
    );
    let mut trace = Trace::new();
    let (ops, annotations) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Annotation));
    trace.event(Category::CpuOp, ops, "dynamo", 0, 100);
    trace.event(Category::Annotation, annotations, "dynamo_data: compile_id=4/2", 1, 2);
    trace.event(Category::CpuOp, ops, "_compile.compile_inner (dynamo_timed)", 3, 90);
    let timeline = trace.build();
    let threads = Threads::of(&timeline);
    let time = CompileActivity::of(&timeline, &threads).compile_time_by_code();
    assert_eq!(time.get(&CompileId::parse("4/2")).map(|(ns, _)| *ns), Some(87));
}

#[test]
fn what_changed_is_inferred_from_the_shapes_of_inputs() {
    let run = |now: &str| {
        let mut trace = Trace::new();
        let ops = trace.thread(1, 1, Track::CpuOp);
        for (at, shapes) in [(0, "[[8,64],[64]]"), (1, now)] {
            let start = at * 100;
            let region = format!("Torch-Compiled Region: 0/{at}");
            trace.event(Category::CpuOp, ops, &region, start, start + 50);
            let function = trace.event(Category::CpuOp, ops, "CompiledFunction", start + 10, start + 20);
            trace.text(function, ColumnId::InputShapes, shapes);
        }
        let timeline = trace.build();
        let (compiled, _) = compiled(&timeline);
        compiled.recompiles(&timeline, 0).remove(0).changed.unwrap()
    };
    assert_eq!(run("[[11,64],[64]]"), "input 0: [8,64] became [11,64]");
    assert!(run("[[8,64],[64]]").starts_with("the shapes of inputs are the same"));
    assert_eq!(run("[[8,64]]"), "2 inputs became 1");
}

#[test]
fn names_are_those_of_versions_2_2_to_2_15() {
    let id = |text| CompileId::parse(text);
    for (name, marked) in [
        ("Torch-Compiled Region", Some(MarkKind::Region(None))),
        ("Torch-Compiled Region: 3/1", Some(MarkKind::Region(id("3/1")))),
        ("Torch-Compiled Region: !0/3/1", Some(MarkKind::Region(id("!0/3/1")))),
        ("Torch-Compiled Region: Unknown", Some(MarkKind::Region(None))),
        (
            "inductor_compile_data: fn_name=compile_fx_inner, compile_id=2/5",
            id("2/5").map(MarkKind::Data),
        ),
        ("bytecode_tracing_data: compile_id=0/0", id("0/0").map(MarkKind::Data)),
        ("## Call CompiledFxGraph fdlq ##", Some(MarkKind::Graph)),
        ("entire_frame_compile (dynamo_timed)", Some(MarkKind::Phase)),
        ("aten::mm", None),
        ("data: compile_id=x", None),
    ] {
        assert_eq!(MarkKind::of(name), marked, "{name}");
    }
}

proptest! {
    #[test]
    fn own_times_of_nested_phases_add_up_to_the_compile_time(cuts in vec((0_u64..100, 1_u64..100, 0_usize..4), 0..20)) {
        // Pieces one after another, each a stack of phases that nest.
        let mut trace = Trace::new();
        let ops = trace.thread(1, 1, Track::CpuOp);
        let (mut now, mut expected) = (0, 0);
        for (pause, length, depth) in cuts {
            now += pause;
            for level in 0..=u64::try_from(depth).unwrap() {
                let inset = level * length / 20;
                let name = format!("phase{level} (dynamo_timed)");
                trace.event(Category::CpuOp, ops, &name, now + inset, now + length - inset);
            }
            expected += length;
            now += length;
        }
        let timeline = trace.build();
        let (compiled, _) = compiled(&timeline);
        let phases = compiled.phases(&timeline, 0);
        prop_assert_eq!(phases.iter().map(|phase| phase.own_ns).sum::<u64>(), expected);
        prop_assert_eq!(compiled.compile_ns(), expected);
    }
}
