//! The summary artifact: its tables, its text forms and its schema.

use std::collections::BTreeSet;

use flopwatch_model::{Capture, Category, Event, Events, KernelProfile, Metric, NameId, Row, RowId, Track};
use flopwatch_summary::{Summary, Table, json_schema, summarise};

use crate::capture::timeline_of;
use crate::export::Schema;
use crate::sample::sample;

/// Name, style, calls and total of each row.
fn rows(table: &Table) -> Vec<(&str, Option<&str>, u64, u64)> {
    let rows = table.rows.iter().map(|row| {
        let figures = &row.statistics;
        (row.name.as_str(), row.style.as_deref(), figures.calls, figures.total)
    });
    rows.collect()
}

fn sample_summary() -> Summary {
    summarise(&sample(Schema::V2022, false).timeline())
}

/// Operators of two threads, as Kineto tells them.
fn operators() -> Summary {
    let mut capture = Capture::default();
    let mut events = Events::new(Category::CpuOp);
    events.names = ["aten::linear", "aten::mm"].map(str::to_owned).to_vec();
    for (start_ns, duration_ns, row, name) in [(0, 100, 0, 0), (10, 50, 0, 1), (0, 30, 1, 1), (90, 200, 1, 0)] {
        let event = Event {
            start_ns,
            duration_ns,
            row: RowId::new(row),
            name: NameId::new(name),
            correlation: 0,
        };
        events.push(event, &[]);
    }
    capture.rows = [1, 2]
        .map(|thread| Row {
            thread: Some(thread),
            ..Row::of(1, Track::CpuOp)
        })
        .to_vec();
    capture.events.insert(Category::CpuOp, events);
    summarise(&timeline_of(capture))
}

#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/summary.schema.json");
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(
        committed == json_schema().unwrap(),
        "run `cargo xtask codegen` and commit {path}"
    );
}

#[test]
fn a_summary_holds_what_its_schema_says_and_reads_back() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema().unwrap()).unwrap();
    let of = |value: &serde_json::Value, key: &str| value[key].clone();
    let known: BTreeSet<String> = of(&schema, "properties").as_object().unwrap().keys().cloned().collect();
    for summary in [sample_summary(), operators()] {
        let text = summary.to_json().unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let held: BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
        assert_eq!(held, known);
        for required in of(&schema, "required").as_array().unwrap() {
            assert!(held.contains(required.as_str().unwrap()));
        }
        assert!(serde_json::from_str::<Summary>(&text).unwrap() == summary, "{text}");
    }
}

#[test]
fn every_table_has_its_events_by_name() {
    let summary = sample_summary();
    let gemm = ("void gemm<float>(float*, int)", None, 4, 2100);
    assert_eq!(rows(&summary.kernels), [gemm]);
    let h2d = ("[CUDA memcpy Host-to-Device]", None, 1, 100);
    assert!(rows(&summary.memcpy_time).contains(&h2d));
    assert_eq!(summary.memcpy_time.rows.len(), 6);
    assert!(rows(&summary.memcpy_size).contains(&("[CUDA memcpy Host-to-Device]", None, 1, 4096)));
    assert_eq!(rows(&summary.memset), [("[CUDA memset]", None, 1, 40)]);
    assert_eq!(rows(&summary.memset_size), [("[CUDA memset]", None, 1, 64)]);
    assert!(rows(&summary.cuda_api).contains(&("cudaLaunchKernel", None, 3, 75)));
    assert!(rows(&summary.nvtx).contains(&("io", Some("StartEnd"), 1, 2930)));
    assert!(rows(&summary.nvtx).contains(&("step", Some("PushPop"), 1, 2995)));
    assert_eq!(rows(&summary.os_runtime), [("read", None, 1, 5)]);
    assert_eq!(
        rows(&operators().operators),
        [("aten::linear", None, 2, 300), ("aten::mm", None, 2, 80)]
    );
}

#[test]
fn what_a_source_lacks_is_not_captured_and_never_zero() {
    let summary = operators();
    let count = |wanted| {
        let mut counts = summary.categories.iter();
        counts.find(|count| count.category == wanted).unwrap().events
    };
    assert_eq!((count(Category::CpuOp), count(Category::CudaKernel)), (Some(4), None));
    assert!(!summary.kernels.captured && summary.operators.captured);
    let lacking = "Not captured: Kernels, Whole CUDA graphs, Memory copies (time)";
    assert!(summary.render(9).contains(lacking));
    let csv = summary.to_csv(9);
    assert!(csv.contains("\nkernels,not captured,ns,,,,,,,,,,\n"), "{csv}");
    let mut capture = Capture::default();
    capture.declare_captured([Category::CudaKernel]);
    let declared = summarise(&timeline_of(capture));
    assert!(declared.to_csv(9).contains("\nkernels,no events,ns,"));
}

#[test]
fn csv_has_a_line_per_row_and_survives_what_names_hold() {
    let mut summary = sample_summary();
    summary.kernels.rows[0].name = "a \"b\",\nc\u{1b}[31m".to_owned();
    let text = summary.to_csv(usize::MAX);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let first: Vec<&str> = heads.iter().take(5).collect();
    assert_eq!(first, ["table", "status", "unit", "style", "name"]);
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let lines: usize = summary.tables().iter().map(|(_, table)| table.rows.len().max(1)).sum();
    assert_eq!(records.len(), lines);
    let kernels = &records[0];
    assert_eq!(&kernels[4], "a \"b\",\u{fffd}c\u{fffd}[31m");
    let figures = [6, 7, 10, 11].map(|at: usize| &kernels[at]);
    assert_eq!(figures, ["4", "2100", "0", "1000"]);
    let text = summary.to_csv(1);
    let copies = text.lines().filter(|line| line.starts_with("memcpy_time,"));
    assert_eq!(copies.count(), 1);
}

#[test]
fn launches_of_a_kernel_profiler_have_a_table_of_their_own() {
    let mut capture = Capture::default();
    for (name, value) in [("gemm", 2.5), ("gemm", 1.5), ("copy", 9.0)] {
        let metric = Metric {
            value: value.into(),
            unit: "us".to_owned(),
        };
        capture.profiles.push(KernelProfile {
            name: name.to_owned(),
            metrics: [("gpu__time_duration.sum".to_owned(), metric)].into(),
            ..KernelProfile::default()
        });
    }
    let summary = summarise(&timeline_of(capture));
    assert_eq!(
        rows(&summary.profiled_kernels),
        [("copy", None, 1, 9000), ("gemm", None, 2, 4000)]
    );
    assert!(!summary.kernels.captured);
}
