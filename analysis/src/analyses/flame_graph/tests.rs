use flopwatch_analysis_testing::Trace;
use flopwatch_model::{CallFrame, CallStack, CallStacks, Track};

use super::*;
use crate::{Input, Request};

/// Two launches in an operator of a function.
fn timeline() -> Timeline {
    let mut trace = Trace::new();
    let (stream, api) = (trace.stream(1, 0, 7), trace.thread(1, 10, Track::CudaApi));
    let (python, op) = (trace.thread(1, 10, Track::Python), trace.thread(1, 10, Track::CpuOp));
    trace.event(Category::PythonFunction, python, "a.py(3): f;g", 0, 90_000);
    trace.event(Category::CpuOp, op, "aten::mm", 20_000, 60_000);
    trace.launch_kernel((api, 30_000, 40_000), (stream, "gemm", 100_000, 150_000));
    trace.launch_kernel((api, 70_000, 80_000), (stream, "add", 150_000, 155_000));
    trace.build()
}

fn written(name: &str, parameters: &serde_json::Value) -> Vec<u8> {
    let mut out = Vec::new();
    let timeline = timeline();
    let request = Request::parse(name, parameters).unwrap();
    request.run(&[Input::whole(&timeline)], &mut out).unwrap();
    out
}

#[test]
fn the_result_is_what_d3_flame_graph_draws() {
    let found: serde_json::Value = serde_json::from_slice(&written("flame-graph", &serde_json::json!({}))).unwrap();
    assert_eq!((&found["name"], &found["value"]), (&"all".into(), &55_000.into()));
    let function = &found["children"][0];
    let expected = serde_json::json!([
        {"name": "aten::mm", "kind": "operator", "value": 50_000, "self_ns": 0, "count": 1, "children": [
            {"name": "gemm", "kind": "kernel", "value": 50_000, "self_ns": 50_000, "count": 1},
        ]},
        {"name": "(small kernels)", "kind": "rest", "value": 5_000, "self_ns": 5_000, "count": 1},
    ]);
    assert_eq!(function["children"], expected);
    assert_eq!((&found["frames"], &found["frames_summed"]), (&4.into(), &1.into()));
}

#[test]
fn folded_stacks_are_lines_whose_frames_nothing_parts() {
    let folded = String::from_utf8(written("flame-folded", &serde_json::json!({"min_duration_us": 0}))).unwrap();
    assert_eq!(folded, "a.py(3): f:g;aten::mm;gemm 50000\na.py(3): f:g;add 5000\n");
}

#[test]
fn speedscope_has_a_sample_per_stack() {
    let file: serde_json::Value =
        serde_json::from_slice(&written("flame-speedscope", &serde_json::json!({"min_duration_us": 0}))).unwrap();
    let profile = &file["profiles"][0];
    assert_eq!(profile["weights"], serde_json::json!([50_000, 5_000]));
    assert_eq!(
        (&profile["startValue"], &profile["endValue"]),
        (&0.into(), &55_000.into())
    );
    let frames = file["shared"]["frames"].as_array().unwrap();
    let names: Vec<&str> = profile["samples"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| {
            frames[usize::try_from(frame.as_u64().unwrap()).unwrap()]["name"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(names, ["a.py(3): f;g", "aten::mm", "gemm"]);
    let function = frames.iter().find(|frame| frame["name"] == "a.py(3): f;g").unwrap();
    assert_eq!((&function["file"], &function["line"]), (&"a.py".into(), &3.into()));
}

/// Two samples in `work`, which `main` calls, and one in `main`.
fn sampled() -> Timeline {
    let mut trace = Trace::new();
    let thread = trace.thread(1, 10, Track::CpuSample);
    for (at, name, stack) in [(5, "work", 2), (10, "main", 1), (15, "work", 2)] {
        let sample = trace.event(Category::CpuSample, thread, name, at, at);
        trace.number(sample, ColumnId::CallStack, stack);
    }
    let mut timeline = trace.build();
    let frame = |function| CallFrame { function, module: 0 };
    timeline.capture.call_stacks = CallStacks {
        texts: ["", "main", "work"].map(str::to_owned).to_vec(),
        frames: vec![frame(1), frame(2)],
        stacks: vec![CallStack { caller: 0, frame: 0 }, CallStack { caller: 1, frame: 1 }],
    };
    timeline
}

#[test]
fn samples_are_counted_by_the_stack_of_their_calls() {
    let params = FlameParams {
        weight: FlameWeight::Samples,
        ..FlameParams::default()
    };
    let timeline = sampled();
    let found = FlameGraphAnalysis::of(&timeline, &params);
    assert_eq!((found.value, found.frames, found.not_captured.len()), (3, 2, 0));
    let main = &found.children[0];
    let figures = |frame: &FlameFrame| (frame.kind, frame.value, frame.self_ns, frame.count);
    assert_eq!(figures(main), (FrameKind::Function, 3, 1, 3));
    assert_eq!(figures(&main.children[0]), (FrameKind::Function, 2, 2, 2));
    let request = Request::parse("flame-speedscope", &serde_json::json!({"weight": "samples"})).unwrap();
    let mut out = Vec::new();
    request.run(&[Input::whole(&timeline)], &mut out).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let profile = &file["profiles"][0];
    assert_eq!((&profile["unit"], &profile["endValue"]), (&"none".into(), &3.into()));
    let nothing = FlameGraphAnalysis::of(&Timeline::default(), &params);
    let missing: Vec<&str> = nothing
        .not_captured
        .iter()
        .map(|missing| missing.what.as_str())
        .collect();
    assert_eq!((nothing.value, missing), (0, vec!["samples of the CPU"]));
}

#[test]
fn a_capture_without_gpus_says_so() {
    let nothing = Timeline::default();
    let found = FlameGraphAnalysis::of(&nothing, &FlameParams::default());
    assert_eq!((found.value, found.not_captured.len()), (0, 1));
    let cpu = FlameParams {
        weight: FlameWeight::Cpu,
        ..FlameParams::default()
    };
    assert_eq!(FlameGraphAnalysis::of(&nothing, &cpu).not_captured.len(), 1);
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    trace.kernel(stream, "k", 0, 20_000);
    let found = FlameGraphAnalysis::of(&trace.build(), &FlameParams::default());
    let missing: Vec<&str> = found.not_captured.iter().map(|missing| missing.what.as_str()).collect();
    assert_eq!(
        missing,
        ["stacks of GPU operations", "the calls that launched GPU operations"]
    );
    assert_eq!((found.value, found.gpu_ops_without_launch), (20_000, 1));
}

#[test]
fn the_largest_frames_are_a_tree_in_a_terminal() {
    let request = Request::parse("flame-graph", &serde_json::json!({})).unwrap();
    let request = request.written_as(flopwatch_report::Format::Text).unwrap();
    let (mut out, timeline) = (Vec::new(), timeline());
    request.run(&[Input::whole(&timeline)], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("  50.00 µs  90.9 %      aten::mm\n  50.00 µs  90.9 %        gemm\n"),
        "{text}"
    );
}

#[test]
fn a_name_of_the_capture_is_no_markup_in_the_data_of_the_page() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    trace.kernel(stream, "</script><script>alert(1)</script>", 0, 20_000);
    let timeline = trace.build();
    let request = Request::parse("flame-graph", &serde_json::json!({})).unwrap();
    let (mut out, request) = (Vec::new(), request.written_as(flopwatch_report::Format::Html).unwrap());
    request.run(&[Input::whole(&timeline)], &mut out).unwrap();
    let html = String::from_utf8(out).unwrap();
    assert!(!html.contains("<script>alert"), "{html}");
    assert!(html.contains("\\u003c/script\\u003e"), "{html}");
}
