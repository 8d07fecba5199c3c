//! Two captures: differences as HolisticTraceAnalysis 0.5.0 has them, and a capture against itself.

use flopwatch_model::{Category, Event, Events};
use serde_json::{Value, json};

use crate::captures::{analyze, timeline};
use crate::result::{list, numbers, said};

const BASE: &str = "hta/trace_compare-base-base.json.gz";
const TEST: &str = "hta/trace_compare-test-test.json.gz";

fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let is_it = |row: &&Value| row["name"].as_str().unwrap().starts_with(name);
    list(rows).find(is_it).unwrap()
}

#[test]
fn differences_are_those_of_hta() {
    let (Some(base), Some(test)) = (timeline(BASE), timeline(TEST)) else {
        return;
    };
    let found = analyze("compare", &Value::Null, &[&base, &test]);
    assert_eq!(found["unit"], "iteration");
    assert_eq!(found["before"]["iterations"], 2);
    // TraceDiff.compare_traces over both steps: counts, and differences in us of both steps
    // together; ours are in ns per step.
    for (name, before, after, difference_us) in [
        ("nccl:all_reduce", 2, 1, -67),
        ("AddmmBackward0", 0, 1, 207),
        ("All2All_Pooled_Req", 0, 1, 311),
        ("CatBackward0", 0, 1, 11),
        ("aten::empty", 2, 2, 0),
        ("aten::as_strided", 2, 2, 0),
    ] {
        let row = row(&found["ranges"], name);
        let calls = said(row, &["before_calls", "after_calls"]);
        assert_eq!(calls, json!([before, after]), "{name}");
        assert_eq!(row["difference_ns"], json!(difference_us * 500), "{name}");
        // What differs is how often they ran; the mean of nccl:all_reduce went from 66.5 us to 66
        // us.
        let by_length = if name == "nccl:all_reduce" { -250 } else { 0 };
        assert_eq!(row["duration_part_ns"], json!(by_length), "{name}");
    }
    // HTA has 2 and 1 of this kernel, for it leaves out what has no recorded launch; a third began
    // in the first step of both.
    let kernel = row(
        &found["kernels"],
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<int>",
    );
    assert_eq!(said(kernel, &["before_calls", "after_calls"]), json!([3, 2]));
    assert_eq!(kernel["difference_ns"], json!(-4 * 500));
    let before = |field: &str| found["before"][field].as_u64().unwrap();
    assert_eq!(before("kernels") - before("kernels_without_launch"), 2);
    // The steps took as long, and two of them are too few for a test.
    assert_eq!(found["verdict"], "neutral");
    assert_eq!(said(&found["time"], &["change_percent", "p_value"]), json!([0.0, null]));
}

#[test]
fn a_capture_does_not_differ_from_itself() {
    for name in [
        "hta/trace_diff-control-control.json.gz",
        "nsys-ai/mfu_2gpu_before.sqlite",
        BASE,
    ] {
        let Some(capture) = timeline(name) else { return };
        let found = analyze("compare", &Value::Null, &[&capture, &capture]);
        let verdict = said(&found, &["verdict", "speedup"]);
        assert_eq!(verdict, json!(["neutral", 1.0]), "{name}: {}", found["verdict_reason"]);
        assert_eq!(found["comparability"]["score_ratio"], json!(1.0), "{name}");
        for part in ["kernels", "ranges", "copies", "gpu_time"] {
            let mut rows = list(&found[part]);
            let is_equal = rows.len() > 0 && rows.all(|row| row["difference_ns"] == 0);
            assert!(is_equal, "{name}: {part}");
        }
    }
}

#[test]
fn parts_of_a_whole_captures_time_are_the_golden_ones() {
    let Some(control) = timeline("hta/trace_diff-control-control.json.gz") else {
        return;
    };
    let found = analyze("compare", &json!({"per": "capture"}), &[&control, &control]);
    // Exact interval algebra of all kernels, copies and memsets of the trace; HTA's breakdown has
    // the same idle time.
    let parts = [281_336_000, 87_921_000, 19_330_000, 76_007_000, 464_594_000];
    assert_eq!(numbers(&found["gpu_time"], "before_ns"), parts);
    let before = analyze("kernel-changes", &Value::Null, &[&control, &control]);
    let sum: u64 = numbers(&found["kernels"], "before_ns").iter().sum();
    assert!(found["kernels_left_out"] != 0 || before["before_total_ns"] == json!(sum));
}

#[test]
fn captures_of_two_programs_have_no_verdict() {
    let (Some(one), Some(other)) = (
        timeline("hta/trace_diff-control-control.json.gz"),
        timeline("nsys-ai/mfu_2gpu_before.sqlite"),
    ) else {
        return;
    };
    let found = analyze("compare", &Value::Null, &[&one, &other]);
    assert_eq!(found["verdict"], json!("inconclusive"));
    assert!(found["comparability"]["score_ratio"].as_f64().unwrap() < 0.05);
}

#[test]
fn ranks_of_a_job_stand_side_by_side() {
    let ranks = [
        "hta/trace_filter-sampled_rank-0.json.gz",
        "hta/trace_filter-sampled_rank-1.json.gz",
    ]
    .map(timeline);
    let [Some(first), Some(second)] = &ranks else { return };
    let found = analyze("ranks", &Value::Null, &[first, second]);
    assert_eq!(numbers(&found["ranks"], "input"), [0, 1]);
    // The exact parts of the second; HTA has the same idle time.
    assert_eq!(
        found["ranks"][1]["time"],
        json!({
            "window_ns": 1_231_186_000_u64,
            "compute_ns": 271_973_000,
            "exposed_communication_ns": 303_523_000,
            "exposed_memory_ns": 4_554_000,
            "idle_ns": 651_136_000,
        })
    );
    assert!(list(&found["kernels"]).len() > 0);
}

#[test]
fn less_work_in_a_window_of_the_same_length_is_not_called_unchanged() {
    let Some(before) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    // Every fifth kernel is gone: what a slower program leaves undone until a window of fixed
    // length ends. nsys-ai 0.3.0 says `neutral`.
    let mut after = before.clone();
    let kernels = after.capture.events.get_mut(&Category::CudaKernel).unwrap();
    let kept: Vec<usize> = (0..kernels.len())
        .filter(|at| at % 5 != 0 || at + 1 == kernels.len())
        .collect();
    let mut fewer = Events::new(Category::CudaKernel);
    fewer.names.clone_from(&kernels.names);
    fewer.columns.retain(|column| kernels.column(column.id).is_some());
    for at in kept {
        let event = Event {
            start_ns: kernels.start_ns[at],
            duration_ns: kernels.duration_ns[at],
            row: kernels.row[at],
            name: kernels.name[at],
            correlation: kernels.correlation[at],
        };
        let own = fewer
            .columns
            .iter()
            .map(|column| kernels.column(column.id).unwrap().get(at).unwrap());
        let own: Vec<u64> = own.collect();
        fewer.push(event, &own);
    }
    *kernels = fewer;
    let found = analyze("compare", &json!({"per": "capture"}), &[&before, &after]);
    assert_eq!(found["verdict"], json!("inconclusive"), "{}", found["verdict_reason"]);
    assert!(found["time"]["change_percent"].as_f64().unwrap().abs() < 1.0);
}
