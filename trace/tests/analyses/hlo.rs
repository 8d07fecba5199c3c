//! Compiled programs of real captures, beside what XProf 2.23 (PyPI) says of them: its tool `hlo_stats`.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};

fn row<'a>(result: &'a Value, operation: &str) -> &'a Value {
    let rows = result["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["operation"] == operation);
    found.unwrap_or_else(|| panic!("{operation} in {rows:?}"))
}

fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} is not {expected}");
}

#[test]
fn operations_of_gpus_take_the_time_that_xprof_gives_and_a_convolution_of_two_kernels_ran_once() {
    let Some(timeline) = timeline("tracelens-jax/jax_conv_minimal_08.xplane.pb") else {
        return;
    };
    let found = analyze("hlo-operations", &json!({}), &[&timeline]);
    for (operation, occurrences, total_ns) in [
        ("input_transpose_fusion", 40, 14_344_140),
        ("cudnn-conv.1", 40, 12_531_616),
        ("input_transpose_fusion.1", 39, 481_400),
        ("loop_transpose_fusion", 40, 193_520),
    ] {
        let row = row(&found, operation);
        assert_eq!(
            (&row["occurrences"], &row["total_ns"]),
            (&json!(occurrences), &json!(total_ns))
        );
    }
    let convolution = row(&found, "cudnn-conv.1");
    // XProf has 79 occurrences, as many as kernels, each with the work of a whole convolution: 206,240.77 GFLOP/s.
    assert_eq!(convolution["events"], 79);
    near(&convolution["flops"], 206_240.769_330_946_6 * 12_531.616e3 / 79.0);
    near(&convolution["flops_per_second"], 206_240.769_330_946_6e9 * 40.0 / 79.0);
    assert_eq!(convolution["source"], "/workspace/traces/generate_conv_trace.py:23");
    assert_eq!(found["kernels"][1]["operation"], "cudnn-conv.1");
}

#[test]
fn operations_of_an_accelerator_have_the_work_that_xprof_gives() {
    let Some(timeline) = timeline("xprof/tpu_inference_2.xplane.pb") else {
        return;
    };
    let found = analyze("hlo-operations", &json!({}), &[&timeline]);
    let add = row(&found, "broadcast_add_fusion.1");
    // `hlo_stats`: 400 occurrences, 164.577938 GFLOP/s over 3,262,107.41375 us, 0.125 FLOP per byte, bound by HBM. Its time is that of the
    // device's clock; the events of the timeline are 0.2 % longer.
    assert_eq!(add["occurrences"], 400);
    near(&add["flops"], 164.577_938_095_187_6 * 3_262_107.413_75e3 / 400.0);
    assert_eq!((&add["intensity"], &add["bound"]), (&json!(0.125), &json!("memory")));
    assert_eq!(add["total_ns"], 3_268_452_061_u64);
    // Copies beside the operations are no time of theirs.
    let beside = row(&found, "async-copy");
    assert_eq!(
        (&beside["is_asynchronous"], &beside["self_ratio"]),
        (&json!(true), &Value::Null)
    );
    let own: u64 = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["is_asynchronous"] == false)
        .map(|row| row["self_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(found["self_ns"], own);
}
