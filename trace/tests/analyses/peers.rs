//! What nsys-ai 0.3.0 says of a capture, beside what we say.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};
use crate::result::{list, numbers};

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
    assert_eq!(numbers(&streams["rows"], "launches").iter().sum::<u64>(), 4010);
    let kernels = analyze("kernel-changes", &json!({"limit": 100_000}), &[&timeline, &timeline]);
    assert_eq!(hundredths(&kernels["before_total_ns"]), 53_520);
    for (name, launches, total) in [("flash_fwd_kernel", 68, 27_232), ("ncclDevKernel_SendRecv", 66, 2_540)] {
        let is_it = |row: &&Value| row["name"].as_str().unwrap().contains(name);
        let row = list(&kernels["rows"]).find(is_it).unwrap();
        assert_eq!(row["before_launches"], launches, "{name}");
        assert_eq!(hundredths(&row["before_total_ns"]), total, "{name}");
    }
}
