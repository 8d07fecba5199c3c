use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Category, Track};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// `step` from 0 to 2 ms, which launches a kernel of 1 ms by a call of 0.5 ms; `load` from 3 to 4
/// ms.
fn capture() -> Timeline {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let (nvtx, api) = (trace.thread(1, 1, Track::Nvtx), trace.thread(1, 1, Track::CudaApi));
    trace.event(Category::NvtxRange, nvtx, "step 1", 0, 2_000_000);
    trace.event(Category::NvtxRange, nvtx, "load", 3_000_000, 4_000_000);
    trace.launch_kernel((api, 500_000, 1_000_000), (stream, "gemm", 1_000_000, 2_000_000));
    let mut timeline = trace.build();
    timeline.capture.session_start_utc_ns = Some(1_000_000_000_000_000_000);
    timeline
}

#[test]
fn a_capture_is_written_with_the_fields_that_clients_of_profiles_know() {
    let profile = serde_json::to_value(of(&capture(), &OperationsProfileParams::default())).unwrap();
    let step = json!({
        "operation": "step *", "start_time": 1e9, "end_time": 1e9 + 0.002, "duration_ms": 2.0, "device": "gpu", "backend": "unknown",
        "gpu_time_ms": 1.0, "cpu_time_ms": 1.5, "transfer_time_ms": 0.0, "overhead_ms": 0.5,
        "memory_allocated_mb": null, "memory_peak_mb": null, "gpu_utilization": 50.0, "memory_bandwidth_gb_s": null,
    });
    assert_eq!(profile["entries"][0], step);
    assert_eq!(profile["entries"][1]["device"], "cpu");
    let summary = json!({
        "operation": "step *", "call_count": 1, "total_time_ms": 2.0, "avg_time_ms": 2.0, "min_time_ms": 2.0, "max_time_ms": 2.0,
        "std_dev_ms": 0.0, "total_gpu_time_ms": 1.0, "total_cpu_time_ms": 1.5, "avg_memory_mb": null, "avg_gpu_utilization": 50.0,
    });
    assert_eq!(profile["summary"]["step *"], summary);
    let first = OperationsProfileParams {
        limit: 1,
        ..OperationsProfileParams::default()
    };
    assert_eq!(of(&capture(), &first).entries_left_out, 1);
}

#[test]
fn what_is_written_is_read_as_the_same_figures() {
    let json = serde_json::to_vec(&of(&capture(), &OperationsProfileParams::default())).unwrap();
    assert!(is_profile(&json));
    let found = read::operations(&json).unwrap();
    let step = found
        .operations
        .iter()
        .find(|operation| operation.operation == "step *")
        .unwrap();
    assert_eq!(
        (step.calls, step.total_ns, step.gpu_ns),
        (1, 2_000_000, Some(1_000_000))
    );
    assert_eq!((step.cpu_ns, step.overhead_ns), (Some(1_500_000), Some(500_000)));
    assert_eq!((found.calls, found.self_ns), (2, 3_000_000));
    let starts: Vec<u64> = found.first_calls.iter().map(|call| call.start_ns / 1_000_000).collect();
    assert_eq!(starts, [0, 3]);
}

#[test]
fn entries_alone_and_summaries_alone_are_profiles() {
    let entries = json!([
        {"operation": "a", "start_time": 5.0, "duration_ms": 1.0, "memory_allocated_mb": 2.0},
        {"operation": "a", "start_time": 5.5, "duration_ms": 3.0, "device": "cpu"},
    ]);
    let found = read::operations(entries.to_string().as_bytes()).unwrap();
    let a = &found.operations[0];
    assert_eq!(
        (a.calls, a.total_ns, a.max_ns, a.gpu_ns),
        (2, 4_000_000, 3_000_000, None)
    );
    assert_eq!((a.allocated_bytes, found.memory.len()), (Some(2 << 20), 1));
    let summary = json!({"summary": [{"operation": "b", "call_count": 10, "total_time_ms": 5.0, "avg_time_ms": 0.5}]});
    let found = read::operations(summary.to_string().as_bytes()).unwrap();
    assert_eq!(
        (found.calls, found.self_ns, found.operations[0].calls),
        (10, 5_000_000, 10)
    );
    let titles = serde_json::to_value(read(summary.to_string().as_bytes()).unwrap()).unwrap();
    assert_eq!(titles["title"], "Operations");
    let mut written = Vec::new();
    write(
        summary.to_string().as_bytes(),
        flopwatch_report::Format::Json,
        flopwatch_report::Layout::default(),
        &mut written,
    )
    .unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!((&written["kind"], &written["calls"]), (&json!("profile"), &json!(10)));
}

#[test]
fn what_is_no_profile_is_refused_with_the_reason() {
    let cases: [(Value, &str); 5] = [
        (json!({"traceEvents": []}), "neither entries nor a summary"),
        (json!({"entries": []}), "no entries and no summary"),
        (json!(7), "no profile of operations"),
        (
            json!([{"operation": "a", "duration_ms": -1.0}]),
            "duration_ms of an entry of \"a\" is -1",
        ),
        (json!([{"operation": "a", "gpu_time_ms": 1e300}]), "gpu_time_ms"),
    ];
    for (json, expected) in cases {
        let error = read(json.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
    assert!(!is_profile(br#"{"traceEvents": [{"operation": 1, "duration_ms": 2}]}"#));
    assert!(!is_profile(b"not json"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(start in any::<f64>(), length in any::<f64>(), name in ".{0,2000}", cut in 0_usize..200) {
        let json = json!({"entries": [{"operation": name, "start_time": start, "duration_ms": length}, {"operation": "b"}]}).to_string();
        drop(read(json.as_bytes()));
        drop(read(json.as_bytes().get(..cut).unwrap_or_default()));
    }
}
