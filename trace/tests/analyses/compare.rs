//! Two captures: differences as HolisticTraceAnalysis 0.5.0 has them, and a capture against itself.

use flopwatch_model::{Category, Event, Events};
use serde_json::{Value, json};

use crate::captures::{analyze, timeline};

const BASE: &str = "hta/trace_compare-base-base.json.gz";
const TEST: &str = "hta/trace_compare-test-test.json.gz";

fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(|row| row["name"].as_str().unwrap().starts_with(name))
        .unwrap()
}

#[test]
fn differences_are_those_of_hta() {
    let (Some(base), Some(test)) = (timeline(BASE), timeline(TEST)) else {
        return;
    };
    let found = analyze("compare", &Value::Null, &[&base, &test]);
    assert_eq!(
        (&found["unit"], &found["before"]["iterations"]),
        (&json!("iteration"), &json!(2))
    );
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
        assert_eq!(
            (&row["before_calls"], &row["after_calls"]),
            (&json!(before), &json!(after)),
            "{name}"
        );
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
    assert_eq!(
        (&kernel["before_calls"], &kernel["after_calls"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(kernel["difference_ns"], json!(-4 * 500));
    assert_eq!(
        found["before"]["kernels"].as_u64().unwrap() - found["before"]["kernels_without_launch"].as_u64().unwrap(),
        2
    );
    // The steps took as long, and two of them are too few for a test.
    assert_eq!(
        (&found["verdict"], &found["time"]["change_percent"]),
        (&json!("neutral"), &json!(0.0))
    );
    assert_eq!(found["time"]["p_value"], Value::Null);
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
        assert_eq!(
            (&found["verdict"], &found["speedup"]),
            (&json!("neutral"), &json!(1.0)),
            "{name}: {}",
            found["verdict_reason"]
        );
        assert_eq!(found["comparability"]["score_ratio"], json!(1.0), "{name}");
        for list in ["kernels", "ranges", "copies", "gpu_time"] {
            let rows = found[list].as_array().unwrap();
            assert!(
                !rows.is_empty() && rows.iter().all(|row| row["difference_ns"] == 0),
                "{name}: {list}"
            );
        }
    }
}

#[test]
fn parts_of_a_whole_captures_time_are_the_golden_ones() {
    let Some(control) = timeline("hta/trace_diff-control-control.json.gz") else {
        return;
    };
    let found = analyze("compare", &json!({"per": "capture"}), &[&control, &control]);
    let parts = found["gpu_time"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["before_ns"].as_u64().unwrap());
    // Exact interval algebra of all kernels, copies and memsets of the trace; HTA's breakdown has
    // the same idle time.
    assert_eq!(
        parts.collect::<Vec<_>>(),
        [281_336_000, 87_921_000, 19_330_000, 76_007_000, 464_594_000]
    );
    let before = analyze("kernel-changes", &Value::Null, &[&control, &control]);
    let sum: u64 = found["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kernel| kernel["before_ns"].as_u64().unwrap())
        .sum();
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
    let ranks = found["ranks"].as_array().unwrap();
    assert_eq!(
        (ranks.len(), &ranks[0]["input"], &ranks[1]["input"]),
        (2, &json!(0), &json!(1))
    );
    // The exact parts of the second; HTA has the same idle time.
    assert_eq!(
        ranks[1]["time"],
        json!({
            "window_ns": 1_231_186_000_u64,
            "compute_ns": 271_973_000,
            "exposed_communication_ns": 303_523_000,
            "exposed_memory_ns": 4_554_000,
            "idle_ns": 651_136_000,
        })
    );
    assert!(!found["kernels"].as_array().unwrap().is_empty());
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
