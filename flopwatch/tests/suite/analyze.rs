//! `analyze` as a person runs it, through the real children.

use std::path::{Path, PathBuf};
use std::process::Output;

use flopwatch_analysis::catalogue::{self, CATALOGUE};
use flopwatch_model::{Capture, Category, Event, Events, NameId, Row, RowId, Track};
use flopwatch_trace::timeline_file;
use flopwatch_trace::transform::{TransformOptions, transform};
use serde_json::{Value, json};

use crate::program::{self, ONE_KERNEL, run_in, stderr};

fn analyze(folder: &Path, arguments: &[&str]) -> Output {
    run_in(folder, &[&["analyze"], arguments].concat())
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    program::stdout(output)
}

fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    stderr(output)
}

/// A timeline file of kernels on two streams: name, stream, start and length.
fn timeline(folder: &Path, name: &str, kernels: &[(&str, u64, u64, u64)]) -> PathBuf {
    let mut events = Events::new(Category::CudaKernel);
    for (name, stream, start_ns, duration_ns) in kernels {
        let at = events.names.iter().position(|known| known == name).unwrap_or_else(|| {
            events.names.push((*name).to_owned());
            events.names.len() - 1
        });
        let event = Event {
            start_ns: *start_ns,
            duration_ns: *duration_ns,
            name: NameId::from_index(at).expect("a few names"),
            row: RowId::new(u32::try_from(*stream).expect("a few streams")),
            ..Event::default()
        };
        events.push(event, &[]);
    }
    let row = |stream| Row {
        device: Some(0),
        context: Some(1),
        stream: Some(stream),
        label: "a stream".to_owned(),
        ..Row::of(1, Track::GpuStream)
    };
    let capture = Capture {
        events: [(Category::CudaKernel, events)].into(),
        rows: vec![row(0), row(1)],
        ..Capture::default()
    };
    let path = folder.join(name);
    timeline_file::write(&transform(capture, TransformOptions::default()), &path).expect("a timeline file");
    path
}

#[test]
fn the_list_tells_every_analysis_to_people_and_to_programs() {
    let folder = tempfile::tempdir().unwrap();
    let table = stdout(&analyze(folder.path(), &["--list"]));
    let json = stdout(&analyze(folder.path(), &["--list", "--format", "json"]));
    let listed: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(listed.len(), CATALOGUE.len());
    for (definition, listed) in CATALOGUE.iter().zip(&listed) {
        assert_eq!(listed["name"], definition.name);
        assert_eq!(listed["version"], definition.version);
        assert!(listed["parameters"]["properties"].is_object() || listed["parameters"]["type"] == "object");
        assert!(table.lines().any(|line| line.starts_with(definition.name)), "{table}");
    }
    let list = ["kernel-changes", "--list", "--format", "csv"];
    let one = stdout(&analyze(folder.path(), &list));
    assert_eq!(one.lines().count(), 2, "{one}");
    let version = catalogue::find("kernel-changes").unwrap().version;
    let expected = format!("kernel-changes,{version},two captures,limit name_contains,");
    assert!(one.contains(&expected), "{one}");
    let none = analyze(folder.path(), &["nothing", "--list"]);
    assert!(refusal(&none).contains("kernels-per-stream"), "{}", refusal(&none));
}

#[test]
fn streams_of_a_capture_are_printed_as_a_table_as_csv_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    // On stream 0 two that overlap: 150 ns together.
    let kernels = [("gemm", 0, 0, 100), ("add", 0, 50, 100), ("gemm", 1, 10, 5)];
    timeline(folder.path(), "a.h5", &kernels);
    let run = |format: &str| {
        let line = ["kernels-per-stream", "a.h5", "--quiet", "--format", format];
        stdout(&analyze(folder.path(), &line))
    };
    let heads = "process,device,context,stream,launches,busy_ns,distinct_kernels";
    assert_eq!(run("csv"), format!("{heads}\n1,0,1,0,2,150,2\n1,0,1,1,1,5,1\n"));
    let table = run("table");
    let rows: Vec<&str> = table.lines().filter(|line| line.ends_with(['1', '2'])).collect();
    assert!(rows.len() == 2 && rows[0].contains("150 ns"), "{table}");
    let page: Value = serde_json::from_str(&run("page")).unwrap();
    assert_eq!(page["analysis"], "kernels-per-stream");
    assert_eq!(page["page"]["blocks"][0]["rows"][0]["cells"][5], 150);
    let json: Value = serde_json::from_str(&run("json")).unwrap();
    assert_eq!(json["not_captured"], json!([]));
    assert_eq!(json["rows"][0]["busy_ns"], 150);
}

#[test]
fn two_captures_are_compared_in_their_order_with_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let before = [("gemm", 0, 0, 100), ("gone", 0, 200, 30), ("gemm", 0, 300, 50)];
    timeline(folder.path(), "before.h5", &before);
    timeline(folder.path(), "after.h5", &[("gemm", 0, 0, 60), ("new", 1, 100, 7)]);
    let changes = |after: &str| -> Value {
        let words = format!("kernel-changes before.h5 {after} --quiet --format json --param limit=2");
        let output = analyze(folder.path(), &words.split(' ').collect::<Vec<_>>());
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let json = changes("after.h5");
    assert_eq!(
        (&json["before_total_ns"], &json["after_total_ns"], &json["kernels"]),
        (&180.into(), &67.into(), &3.into())
    );
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, field, expected) in [
        (0, "name", json!("gemm")),
        (0, "difference_ns", json!(-90)),
        (0, "before_mean_ns", json!(75.0)),
        (0, "after_mean_ns", json!(60.0)),
        (1, "name", json!("gone")),
        (1, "presence", json!("before")),
    ] {
        assert_eq!(rows[row][field], expected, "{row} {field}");
    }
    let one = analyze(folder.path(), &["kernel-changes", "before.h5", "--quiet"]);
    assert_eq!(
        refusal(&one).trim(),
        "flopwatch: kernel-changes is made of two captures, not of 1"
    );
    let same = changes("before.h5");
    assert_eq!(same["before_total_ns"], same["after_total_ns"]);
}

#[test]
fn a_result_goes_to_a_file_whole_and_replaces_nothing_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    timeline(folder.path(), "a.h5", &[("gemm", 0, 0, 100)]);
    let run = |arguments: &[&str]| analyze(folder.path(), &[&["--quiet"], arguments].concat());
    stdout(&run(&["events-csv", "a.h5"]));
    let csv = std::fs::read_to_string(folder.path().join("timeline.csv")).unwrap();
    assert!(csv.lines().count() == 2 && csv.contains("gemm"), "{csv}");
    for arguments in [
        &["events-csv", "a.h5"][..],
        &["kernels-per-stream", "a.h5", "-o", "timeline.csv"],
    ] {
        assert!(refusal(&run(arguments)).contains("--force"), "{arguments:?}");
    }
    let line = "kernels-per-stream a.h5 --format csv -o timeline.csv --force";
    stdout(&run(&line.split(' ').collect::<Vec<_>>()));
    let table = std::fs::read_to_string(folder.path().join("timeline.csv")).unwrap();
    assert!(table.starts_with("process,"), "{table}");
}

#[test]
fn what_is_no_analysis_or_no_parameter_is_refused_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    timeline(folder.path(), "a.h5", &[("gemm", 0, 0, 100)]);
    let cases = [
        (vec!["kernel-per-stream", "a.h5"], "did you mean kernels-per-stream?"),
        (vec!["kernels-per-stream", "a.h5", "--param", "limit=1"], "it has none"),
        (
            vec!["kernel-changes", "a.h5", "a.h5", "--param", "limit=0"],
            "a whole number from 1 to 100000",
        ),
        (vec!["kernels-per-stream", "missing.h5"], "missing.h5"),
        (vec!["perfetto-trace", "a.h5", "--format", "csv"], "perfetto-trace"),
        (vec!["kernels-per-stream"], "<FILES>"),
    ];
    for (arguments, expected) in cases {
        let message = refusal(&analyze(folder.path(), &arguments));
        assert!(
            message.contains(expected) && !message.contains("panicked"),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn a_capture_of_another_profiler_is_transformed_first() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.json"), ONE_KERNEL).unwrap();
    let line = ["kernels-per-stream", "trace.json", "--quiet", "--format", "csv"];
    let csv = stdout(&analyze(folder.path(), &line));
    assert!(
        csv.lines().nth(1).is_some_and(|line| line.ends_with(",7,1,2000,1")),
        "{csv}"
    );
}

#[test]
fn the_name_of_an_output_says_how_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    timeline(folder.path(), "a.h5", &[("</script><b>", 0, 0, 100)]);
    let written = |name: &str| {
        stdout(&analyze(folder.path(), &["summary", "a.h5", "--quiet", "-o", name]));
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    };
    let html = written("a.html");
    assert!(html.starts_with("<!doctype html>") && html.contains("&lt;/script&gt;&lt;b&gt;"));
    assert!(written("a.csv").starts_with("table,status,"));
    assert!(written("a.txt").contains("Kernels"));
    let json: Value = serde_json::from_str(&written("summary.json")).unwrap();
    assert_eq!(json["kernels"]["rows"][0]["name"], "</script><b>");
    // A summary of a summary is printed like that of a capture.
    let again = analyze(folder.path(), &["summary", "summary.json", "--quiet"]);
    assert!(stdout(&again).contains("Kernels"));
}
