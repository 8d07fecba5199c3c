//! What nsys-ai 0.3.0 says of a capture, beside what we say.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};

/// A time in ns as nsys-ai prints it: hundredths of a millisecond.
fn hundredths(ns: &Value) -> u64 {
    (ns.as_u64().unwrap() + 5_000) / 10_000
}

#[test]
fn totals_are_those_of_nsys_ai_where_it_is_right() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    // `nsys-ai skill run top_kernels`: flash attention has 68 launches of 272.32 ms; all kernels
    // are 4,010 of 535.20 ms.
    let streams = analyze("kernels-per-stream", &Value::Null, &[&timeline]);
    let launches: u64 = streams["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["launches"].as_u64().unwrap())
        .sum();
    assert_eq!(launches, 4010);
    let kernels = analyze("kernel-changes", &json!({"limit": 100_000}), &[&timeline, &timeline]);
    assert_eq!(hundredths(&kernels["before_total_ns"]), 53_520);
    let rows = kernels["rows"].as_array().unwrap();
    let flash = rows
        .iter()
        .find(|row| row["name"].as_str().unwrap().contains("flash_fwd_kernel"))
        .unwrap();
    assert_eq!(flash["before_launches"], 68);
    assert_eq!(hundredths(&flash["before_total_ns"]), 27_232);
    let sends = rows
        .iter()
        .find(|row| row["name"].as_str().unwrap().contains("ncclDevKernel_SendRecv"))
        .unwrap();
    assert_eq!(sends["before_launches"], 66);
    assert_eq!(hundredths(&sends["before_total_ns"]), 2_540);
}
