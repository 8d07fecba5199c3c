//! `diagnose` as a person and as a pipeline run it, through the real children.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::program::{run_in, stderr, stdout};

/// A Kineto trace of kernels of 70 us, each launched 30 us after the host waited for the one
/// before.
fn trace(folder: &Path, kernels: u64) {
    let mut events = Vec::new();
    for number in 0..kernels {
        let start = number * 100;
        let correlation = number + 1;
        let host = |name: &str, start: u64, length: u64| json!({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": {"correlation": correlation}});
        events.push(host("cudaLaunchKernel", start, 5));
        events.push(json!({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start + 8, "dur": 70, "args": {"device": 0, "stream": 7, "correlation": correlation}}));
        let mut wait = host("cudaStreamSynchronize", start + 6, 73);
        wait["args"]["correlation"] = json!(kernels + number + 1);
        events.push(wait);
    }
    let text = json!({"schemaVersion": 1, "traceEvents": events}).to_string();
    std::fs::write(folder.join("trace.json"), text).expect("a trace");
}

fn diagnose(folder: &Path, arguments: &[&str]) -> Output {
    run_in(folder, &[&["diagnose", "trace.json", "--quiet"], arguments].concat())
}

#[test]
fn findings_are_printed_for_people_and_for_programs_and_fail_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 10);
    let people = diagnose(folder.path(), &[]);
    assert_eq!(people.status.code(), Some(0), "{}", stderr(&people));
    let text = stdout(&people);
    assert!(text.contains("[high] Host synchronisation drains the GPU"), "{text}");
    let programs = diagnose(folder.path(), &["--format", "json", "--fail-on", "high"]);
    assert_eq!(programs.status.code(), Some(3));
    let json: Value = serde_json::from_str(&stdout(&programs)).unwrap();
    let findings = json["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .find(|found| found["rule"] == "host-synchronisation")
        .unwrap();
    // Nine gaps of 30 us in a window from 8 to 978 us.
    assert_eq!(found["gain"]["gain_ns"], 270_000);
    assert_eq!(json["window_ns"], 970_000);
    let html = diagnose(folder.path(), &["-o", "advice.html", "--format", "html"]);
    assert_eq!(html.status.code(), Some(0));
    let html = std::fs::read_to_string(folder.path().join("advice.html")).unwrap();
    assert!(
        html.starts_with("<!doctype html>") || html.starts_with("<!DOCTYPE html>"),
        "{html:.100}"
    );
}

#[test]
fn a_severity_that_is_none_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 1);
    let refused = diagnose(folder.path(), &["--fail-on", "grave"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("medium"));
}
