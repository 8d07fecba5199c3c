//! Captures that PyTorch has just made on this machine, beside what PyTorch itself says of them:
//! `trace/tests/data/torch/program.py`. `FLOPWATCH_TORCH` names a Python that has it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use flopwatch_analysis::analyses::torch_compile::{TorchCompileParams, TorchCompileResult};
use flopwatch_measures::compiled::BreakReason;
use flopwatch_model::{Category, Timeline};
use serde_json::{Value, json};

use crate::captures::{analyze, timeline_at};
use crate::hlo::number;
use crate::program::stdout_of;
use crate::result::{list, numbers, said};

/// What one run of the program left.
struct Fresh {
    folder: tempfile::TempDir,
    said: Value,
}

/// One run for all tests.
static FRESH: OnceLock<Option<Fresh>> = OnceLock::new();

impl Fresh {
    fn get() -> Option<&'static Self> {
        let made = FRESH.get_or_init(Self::make).as_ref();
        if made.is_none() {
            println!("skipped: FLOPWATCH_TORCH names no Python with PyTorch (cargo xtask setup makes one)");
        }
        made
    }

    fn make() -> Option<Self> {
        let python = std::env::var_os("FLOPWATCH_TORCH")?;
        let folder = tempfile::tempdir().unwrap();
        let mut program = Command::new(python);
        program
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/torch/program.py"))
            .arg(folder.path())
            .env("TORCHINDUCTOR_CACHE_DIR", folder.path().join("inductor"))
            .env("TORCHINDUCTOR_COMPILE_THREADS", "1");
        stdout_of(&mut program);
        let said = std::fs::read(folder.path().join("said.json")).unwrap();
        let said = serde_json::from_slice(&said).unwrap();
        Some(Self { folder, said })
    }

    fn timeline(&self, name: &str) -> Timeline {
        timeline_at(&self.folder.path().join(format!("{name}.json")))
    }
}

const CAPTURES: [&str; 3] = ["eager", "compiling", "compiled"];

/// `key_averages` adds up nanoseconds as microseconds of 64-bit floats.
#[test]
fn operators_have_the_calls_and_times_of_key_averages() {
    let Some(fresh) = Fresh::get() else { return };
    for name in CAPTURES {
        let parameters = json!({"kind": "cpu_op", "normalise": false, "top": 100_000});
        let found = analyze("operations", &parameters, &[&fresh.timeline(name)]);
        let told = fresh.said[name]["operators"].as_object().unwrap();
        let mut annotated_ns = 0;
        for operation in list(&found["operations"]) {
            let key = operation["operation"].as_str().unwrap();
            let [calls, recursive, own, total] =
                ["calls", "recursive_calls", "self_ns", "total_ns"].map(|field| number(&operation[field]));
            let theirs = [0, 2].map(|at| number(&told[key][at]));
            let their_own = told[key][1].as_i64().unwrap();
            // Torch takes annotations and, with stacks, Python functions inside of an operator out
            // of its own time: compiled code and its compiler hold such, which are no operators
            // here. Where an annotation begins in a range and ends after it, torch takes both whole
            // out of what holds them: less than nothing may be left.
            if key.starts_with("aten::") || name == "eager" {
                assert_eq!(i64::try_from(own), Ok(their_own), "{key} of {name}: own time");
            } else {
                annotated_ns += u64::try_from(own.cast_signed() - their_own).unwrap();
            }
            // Torch takes an operator and the only one in it, where that has the same name, for
            // one.
            if recursive == 0 {
                assert_eq!([calls, total], theirs, "{key} of {name}: calls and all time");
            } else {
                assert!((calls - recursive..=calls).contains(&theirs[0]), "{key} of {name}");
            }
        }
        let timeline = fresh.timeline(name);
        let annotations = &timeline.capture.events[&Category::Annotation];
        let without_stacks = !timeline.capture.events.contains_key(&Category::PythonFunction);
        assert!(
            !without_stacks || annotated_ns <= annotations.duration_ns.iter().sum(),
            "{name}: {annotated_ns}"
        );
        // What torch counts beside operators.
        let mut others: Vec<&str> = told.keys().map(String::as_str).collect();
        others.retain(|key| list(&found["operations"]).all(|one| one["operation"] != *key));
        others.retain(|key| {
            *key != "[memory]" && *key != "ProfilerStep*" && !annotations.names.iter().any(|name| name == key)
        });
        assert!(others.is_empty(), "{name}: {others:?}");
    }
}

/// Own time of operators by the Python functions around them. `export_stacks` has the same, each
/// event rounded down to microseconds. In compiled code ranges outlive the functions that began
/// them (`Pregraph bytecode`), and torch gives their whole time to these.
#[test]
fn operators_stand_under_the_python_stacks_that_torch_gives_them() {
    let Some(fresh) = Fresh::get() else { return };
    let parameters = json!({
        "weight": "cpu",
        "min_duration_us": 0,
        "max_depth": 500,
        "limit": 1_000_000,
        "merge_numbered": false,
    });
    let graph = analyze("flame-graph", &parameters, &[&fresh.timeline("eager")]);
    let mut ours = BTreeMap::new();
    by_stack(&graph, &mut Vec::new(), &mut ours);
    let told = fresh.said["eager"]["stacks"].as_object().unwrap();
    assert!(told.len() > 5, "{told:?}");
    let told: BTreeMap<String, u64> = told.iter().map(|(stack, of)| (stack.clone(), number(&of[1]))).collect();
    let differ: Vec<String> = ours
        .keys()
        .chain(told.keys())
        .filter(|stack| ours.get(*stack) != told.get(*stack))
        .map(|stack| format!("{stack}: {:?}, torch {:?}", ours.get(stack), told.get(stack)))
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The same of our frames, without the backward pass: torch gives it the stacks of the operators
/// forward.
fn by_stack(frame: &Value, around: &mut Vec<String>, into: &mut BTreeMap<String, u64>) {
    for child in frame["children"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = child["name"].as_str().unwrap();
        // Torch leaves these out of its stacks (`_filter_stack_entry`).
        let is_left_out =
            name.contains("autograd/__init__") && (name.contains("_make_grads") || name.contains("backward"));
        let is_python = child["kind"] == "python" && !is_left_out;
        if is_python {
            around.push(name.to_owned());
        } else if name.starts_with("autograd::engine::evaluate_function") {
            continue;
        } else if child["kind"] == "operator" && number(&child["self_ns"]) > 0 {
            *into.entry(around.join(";")).or_default() += number(&child["self_ns"]);
        }
        by_stack(child, around, into);
        if is_python {
            around.pop();
        }
    }
}

/// Torch's figures are of its own tree of events, not of the JSON that we read.
#[test]
fn memory_is_that_of_torchs_own_tree_of_events() {
    let Some(fresh) = Fresh::get() else { return };
    for name in CAPTURES {
        let timeline = fresh.timeline(name);
        let memory = analyze("memory", &json!({"limit": 1000}), &[&timeline]);
        let pool = &memory["pools"][0];
        let told = &fresh.said[name]["memory"];
        for (ours, theirs) in [
            ("peak_bytes", "peak"),
            ("before_bytes", "before"),
            ("end_bytes", "end"),
            ("allocations", "allocations"),
            ("releases", "releases"),
        ] {
            assert_eq!(pool[ours], told[theirs], "{ours} of {name}");
        }
        assert_eq!(said(pool, &["memory", "gaps"]), json!(["host", 0]), "{name}");
        let alive: u64 = numbers(&pool["alive"], "bytes").iter().sum();
        assert_eq!(told["peak"], alive + number(&pool["from_before_bytes"]), "{name}");
        let buffers = analyze("buffers", &Value::Null, &[&timeline]);
        let pool = &buffers["pools"][0];
        assert_eq!(pool["allocated_bytes"], told["allocated"], "{name}");
        // What was released is what was given out, less what is kept, and what was there before.
        let released = number(&pool["allocations"]) - number(&pool["kept"]) + number(&pool["unmatched_releases"]);
        assert_eq!(released, number(&told["releases"]), "{name}");
    }
}

fn compile(timelines: &[&Timeline]) -> TorchCompileResult {
    let params = TorchCompileParams {
        limit: 10_000,
        ..TorchCompileParams::default()
    };
    TorchCompileResult::of(timelines, &params)
}

/// Dynamo times these itself, without a range in the trace.
const NOT_IN_THE_TRACE: [&str; 4] = [
    "create_proxy",
    "get_fake_value",
    "variable_builder_call",
    "wrap_to_fake_tensor_and_record",
];

/// `compilation_time_metrics` are Dynamo's own clock around the same code: each of its times is
/// longer by what the range itself takes.
#[test]
fn phases_of_the_compiler_are_those_that_dynamo_counts() {
    let Some(fresh) = Fresh::get() else { return };
    let found = compile(&[&fresh.timeline("compiling")]);
    let told = &fresh.said["compiling"]["dynamo"];
    let seconds = |name: &str| told["seconds"][name].as_f64().unwrap();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in told["calls"].as_object().unwrap() {
        calls.insert(name.as_str(), number(count));
    }
    calls.retain(|name, _| !NOT_IN_THE_TRACE.contains(name));
    let ours: BTreeMap<&str, u64> = found
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.calls))
        .collect();
    assert_eq!(ours, calls);
    for phase in &found.phases {
        let ours = Duration::from_nanos(phase.total_ns).as_secs_f64();
        let theirs = seconds(&phase.name);
        // A thread that waits for its turn between the two clocks makes the difference, 10 ms at a
        // time.
        assert!(
            ours <= theirs + 1e-4 && theirs - ours < 0.1,
            "{}: {ours} s, Dynamo {theirs} s",
            phase.name
        );
    }
    // All is inside of these two: the passes forward and backward.
    let whole = seconds("_compile.compile_inner") + seconds("backward._backward_impl");
    let ours = Duration::from_nanos(found.compile_ns).as_secs_f64();
    assert!((ours - whole).abs() < 0.1, "{ours} s, Dynamo {whole} s");
    assert_eq!(found.graphs_generated, calls["fx_codegen_and_compile"]);
    assert_eq!(found.restarts, calls["compile_attempt_1"]);
    let frames = &told["frames"];
    assert_eq!(
        found.given_up.len().to_string(),
        (number(&frames["total"]) - number(&frames["ok"])).to_string()
    );
    let told = told["compiled"][found.given_up[0].code.to_string()][1].as_str();
    assert_eq!(told, Some("prints_in_a_loop"));
}

#[test]
fn code_compiled_again_is_what_dynamo_says_with_what_changed() {
    let Some(fresh) = Fresh::get() else { return };
    let found = compile(&[&fresh.timeline("compiling")]);
    let told = fresh.said["compiling"]["dynamo"]["compiled"].as_object().unwrap();
    let told = told.iter().filter_map(|(id, of)| Some((id.as_str(), of[0].as_str()?)));
    let told: BTreeMap<&str, &str> = told.collect();
    let ours: Vec<String> = found.recompiles.iter().map(|one| one.code.to_string()).collect();
    assert_eq!(ours, told.keys().copied().collect::<Vec<_>>());
    let expected = [
        ("expected 4, actual 5", "first operator's input 0: [4] became [5]"),
        ("expected 5, actual 6", "first operator's input 0: [5] became [6]"),
        (
            "expected Float, actual Double",
            "first operator's input 0: float became double",
        ),
    ];
    assert_eq!(found.recompiles.len(), expected.len());
    for ((one, guard), (reason, changed)) in found.recompiles.iter().zip(told.values()).zip(expected) {
        assert!(guard.contains(reason), "{guard}");
        assert_eq!(one.changed.as_deref(), Some(changed), "{guard}");
        assert!(one.compile_ns.is_some_and(|ns| ns > 0) && one.runs == 1, "{one:?}");
    }
}

/// Where Dynamo's functions break: its counter has each break once, and not that of a function that
/// it gave up.
#[test]
fn graph_breaks_are_those_that_dynamo_counts() {
    let Some(fresh) = Fresh::get() else { return };
    let count = number(&fresh.said["compiling"]["dynamo"]["graph_breaks"]);
    for name in ["compiling", "compiled"] {
        let found = compile(&[&fresh.timeline(name)]);
        let breaks = found.graph_breaks.iter().filter(|one| !one.is_given_up).count();
        assert_eq!(breaks.to_string(), count.to_string(), "{name}");
        let without_stacks = found.graph_breaks.iter().filter(|_| name == "compiling");
        // Operators of a graph that nothing compiled look like those behind it.
        without_stacks.for_each(|one| assert_eq!((one.reason, one.is_given_up), (BreakReason::Unknown, false)));
    }
    let found = compile(&[&fresh.timeline("compiled")]);
    let mut told: Vec<_> = found
        .graph_breaks
        .iter()
        .map(|one| {
            let function = one.location.as_deref().and_then(|location| location.split_once(": "));
            (
                function.unwrap().1,
                one.reason,
                one.seen.as_str(),
                one.runs,
                one.is_given_up,
            )
        })
        .collect();
    told.sort_unstable();
    let print = "<built-in function print>";
    // Functions that are compiled apart and called one after the other are no break.
    let expected = [
        ("calls_what_is_disabled", BreakReason::Operator, "aten::mul", 1, false),
        ("prints", BreakReason::Output, print, 1, false),
        ("prints_in_a_loop", BreakReason::Output, print, 2, true),
    ];
    assert_eq!(told, expected);
    let report = analyze("profiler-compile", &Value::Null, &[&fresh.timeline("compiled")]);
    assert_eq!(report["total_graph_breaks"], json!(3));
}

/// A capture that begins with the program's first call has its compile time; one of a warm program
/// is at pace.
#[test]
fn start_up_is_the_time_in_which_code_was_compiled() {
    let Some(fresh) = Fresh::get() else { return };
    let cold = analyze("start-up", &Value::Null, &[&fresh.timeline("compiling")]);
    let found = compile(&[&fresh.timeline("compiling")]);
    // It counts the compiler's own ranges around the phases, too.
    let (all, phases) = (number(&cold["compile_ns"]), found.compile_ns);
    assert!(
        phases <= all && all - phases < phases / 50,
        "{all} ns, in phases {phases} ns"
    );
    let warm = analyze("start-up", &Value::Null, &[&fresh.timeline("compiled")]);
    assert!(
        warm["compile_ns"].is_null() || warm["compile_ns"] == 0,
        "{}",
        warm["compile_ns"]
    );
    // Without GPU work nothing is said of tensor cores.
    let precision = analyze("precision", &Value::Null, &[&fresh.timeline("eager")]);
    assert!(!precision["not_captured"].as_array().unwrap().is_empty(), "{precision}");
}

/// What the trace says beside its name, category, place and time, and what becomes of it. Whatever
/// a newer PyTorch adds fails the test below.
const KEPT: [&str; 14] = [
    "Addr",
    "Bytes",
    "Device Id",
    "Device Type",
    "External id",
    "Fwd thread id",
    "Input Dims",
    "Input type",
    "Python id",
    "Python parent id",
    "Sequence number",
    "Total Allocated",
    "Total Reserved",
    "name",
];
/// Numbers of the profiler's own tree, stacks that the Python functions say too, values and strides
/// of inputs, the viewer's order of rows.
const LEFT_OUT: [&str; 13] = [
    "Call stack",
    "CallFrom",
    "Concrete Inputs",
    "Ev Idx",
    "Input Strides",
    "Op count",
    "Python module id",
    "Python thread",
    "Record function id",
    "finished",
    "labels",
    "scope",
    "sort_index",
];

#[test]
fn nothing_of_a_fresh_trace_is_lost_silently() {
    let Some(fresh) = Fresh::get() else { return };
    for name in CAPTURES {
        let path = fresh.folder.path().join(format!("{name}.json"));
        let trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let timeline = fresh.timeline(name);
        let mut told: BTreeMap<Category, usize> = BTreeMap::new();
        let (mut memory, mut instants) = (0, 0);
        for event in list(&trace["traceEvents"]) {
            for argument in event["args"].as_object().into_iter().flat_map(|args| args.keys()) {
                let is_known = KEPT.contains(&argument.as_str()) || LEFT_OUT.contains(&argument.as_str());
                assert!(is_known, "{argument} of {event}");
            }
            let is_step = event["name"].as_str().unwrap().starts_with("ProfilerStep#");
            match (event["ph"].as_str().unwrap(), event["cat"].as_str().unwrap_or("")) {
                ("X", "user_annotation") if is_step => *told.entry(Category::Step).or_default() += 1,
                ("X", "user_annotation") => *told.entry(Category::Annotation).or_default() += 1,
                ("X", "cpu_op") => *told.entry(Category::CpuOp).or_default() += 1,
                ("X", "python_function") => *told.entry(Category::PythonFunction).or_default() += 1,
                ("X", "Trace") => *told.entry(Category::Other).or_default() += 1,
                ("i", "cpu_instant_event") => memory += 1,
                ("i", "") => instants += 1,
                // Flows from forward to backward operators, which sequence numbers say, and names
                // of rows.
                ("s" | "f", "fwdbwd") | ("M", "") => {}
                _ => panic!("{event}"),
            }
        }
        let held = timeline
            .capture
            .events
            .iter()
            .map(|(category, events)| (*category, events.len()));
        let held: BTreeMap<Category, usize> = held
            .filter(|(category, count)| *count > 0 && *category != Category::Derived)
            .collect();
        assert_eq!(held, told, "{name}");
        assert_eq!(timeline.capture.allocations.len(), memory, "{name}");
        let lost: u64 = timeline.capture.losses.list().iter().map(|loss| loss.count).sum();
        assert_eq!(lost, instants, "{name}: {:?}", timeline.capture.losses.list());
    }
}
