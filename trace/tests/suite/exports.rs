//! The forms for other programs hold what the timeline holds.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use flopwatch_analysis::export::{ExportFormat, Table, export};
use flopwatch_export::ExportCounts;
use flopwatch_model::{Capture, Category, CounterSeries, Event, Events, Row, RowId, Timeline, Track};
use flopwatch_trace::{ReadLimits, read, timeline_file};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;

use crate::capture::{read_as, timeline_of};
use crate::export::Schema;
use crate::nsys::corpus;
use crate::program::{python_with, stdout_of};
use crate::sample::sample;

fn exported(timeline: &Timeline, format: ExportFormat, table: Table) -> (ExportCounts, Vec<u8>) {
    let mut bytes = Vec::new();
    let exported = export(timeline, format, table, &mut bytes).unwrap();
    (exported, bytes)
}

fn chrome(timeline: &Timeline) -> Value {
    serde_json::from_slice(&exported(timeline, ExportFormat::Chrome, Table::Events).1).unwrap()
}

/// A stream whose kernels cross each other, and a thread whose ranges nest and cross.
fn crossing() -> Timeline {
    let row = |track, thread: Option<u64>| Row {
        device: thread.is_none().then_some(0),
        stream: thread.is_none().then_some(3),
        thread,
        label: "a \"row\"".to_owned(),
        ..Row::of(7, track)
    };
    let mut capture = Capture {
        rows: vec![row(Track::GpuStream, None), row(Track::Nvtx, Some(9))],
        ..Capture::default()
    };
    let events = |category, row, spans: &[(u64, u64)]| {
        let mut events = Events::new(category);
        events.names = vec!["a, \"b\"\n\u{1}ü".to_owned()];
        for (start_ns, duration_ns) in spans.iter().copied() {
            let event = Event {
                start_ns,
                duration_ns,
                row: RowId::new(row),
                ..Event::default()
            };
            events.push(event, &[]);
        }
        events
    };
    let kernels = events(Category::CudaKernel, 0, &[(0, 10), (5, 10), (12, 1), (20, 0), (20, 0)]);
    let ranges = events(Category::NvtxRange, 1, &[(0, 100), (10, 20), (30, 40), (50, 100)]);
    capture.events.insert(Category::CudaKernel, kernels);
    capture.events.insert(Category::NvtxRange, ranges);
    let series = CounterSeries {
        source: "nvml".to_owned(),
        device: "gpu0".to_owned(),
        metric: "power_watts".to_owned(),
        unit: "W".to_owned(),
        t_ns: vec![1, 2, 3],
        value: vec![0.1, f64::NAN, 250.0],
    };
    capture.add_counters(vec![series]);
    timeline_of(capture)
}

fn tracks_of(trace: &Value, category: &str) -> Vec<u64> {
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let of = events.filter(|event| event["cat"] == category);
    of.map(|event| event["tid"].as_u64().unwrap()).collect()
}

#[test]
fn what_overlaps_gets_a_track_of_its_own_and_what_nests_does_not() {
    let trace = chrome(&crossing());
    let kernels = tracks_of(&trace, "cuda_kernel");
    assert_eq!(kernels, [0, 1, 0, 0, 0].map(|track| track + kernels[0]), "{trace}");
    let ranges = tracks_of(&trace, "nvtx_range");
    // 0-100 holds 10-30 and 30-70; 50-150 crosses it.
    assert_eq!(ranges, [0, 0, 0, 1].map(|track| track + ranges[0]), "{trace}");
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let of_threads = events.filter(|event| event["name"] == "thread_name");
    let names: BTreeSet<&str> = of_threads.filter_map(|event| event["args"]["name"].as_str()).collect();
    let expected = ["a \"row\"", "a \"row\" (2)", "a \"row\": NVTX", "a \"row\": NVTX (2)"];
    assert_eq!(names, expected.into());
}

#[test]
fn a_chrome_trace_of_ours_is_read_with_the_categories_that_it_has() {
    let timeline = crossing();
    let (_, text) = exported(&timeline, ExportFormat::Chrome, Table::Events);
    let again = read_as("trace.json", text, |path| read(path, &ReadLimits::default())).unwrap();
    for category in [Category::CudaKernel, Category::NvtxRange] {
        let count = |events: &Events| events.len();
        let before = timeline.capture.events.get(&category).map(count);
        assert_eq!(again.events.get(&category).map(count), before, "{category:?}");
    }
    let row = again.events[&Category::CudaKernel].row[0];
    assert_eq!(again.rows[row.index()].stream, Some(3));
}

#[test]
fn times_and_names_of_a_chrome_trace_are_exact() {
    let trace = chrome(&crossing());
    let mut events = trace["traceEvents"].as_array().unwrap().iter();
    let is_it = |event: &&Value| event["cat"] == "cuda_kernel" && event["ts"] == 0.012;
    let event = events.find(is_it).unwrap();
    assert_eq!(event["dur"], 0.001);
    assert_eq!(event["name"], "a, \"b\"\n\u{1}ü");
    assert_eq!(event["args"]["stream"], 3);
}

#[test]
fn what_a_format_cannot_hold_is_counted() {
    let timeline = crossing();
    let left_out = |format, table| {
        let (exported, _) = exported(&timeline, format, table);
        let list = exported.left_out.list().into_iter().map(|drop| (drop.what, drop.count));
        (exported.events, exported.samples, list.collect::<Vec<(String, u64)>>())
    };
    let events = vec![("samples of series".to_owned(), 3)];
    let samples = vec![("events".to_owned(), 9)];
    let not_finite = vec![
        ("samples of series".to_owned(), 1),
        ("samples that are no finite numbers".to_owned(), 1),
    ];
    assert_eq!(left_out(ExportFormat::Chrome, Table::Events), (9, 2, not_finite));
    assert_eq!(left_out(ExportFormat::Perfetto, Table::Events), (9, 3, vec![]));
    for format in [ExportFormat::Csv, ExportFormat::Parquet] {
        assert_eq!(left_out(format, Table::Events), (9, 0, events.clone()));
        assert_eq!(left_out(format, Table::Samples), (0, 3, samples.clone()));
    }
}

#[test]
fn the_columns_of_the_tables_are_documented_in_their_order() {
    let timeline = crossing();
    let heads = |table| {
        let (_, bytes) = exported(&timeline, ExportFormat::Csv, table);
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let heads = reader.headers().unwrap().iter().map(str::to_owned);
        (heads.collect::<Vec<String>>(), reader.records().count())
    };
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats.md")).unwrap();
    for (table, lines) in [(Table::Events, 9), (Table::Samples, 3)] {
        let (heads, found) = heads(table);
        assert_eq!(found, lines);
        let documented: Vec<String> = heads.iter().map(|head| format!("`{head}`")).collect();
        let documented = documented.join(", ");
        let is_there = page.replace('\n', " ").contains(&documented);
        assert!(is_there, "docs/formats.md lacks {documented}");
        let (_, bytes) = exported(&timeline, ExportFormat::Parquet, table);
        let parquet = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let schema = parquet.metadata().file_metadata().schema_descr_ptr();
        let columns: Vec<String> = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        assert_eq!(columns, heads);
        assert_eq!(parquet.get_row_iter(None).unwrap().count(), lines);
    }
    let (_, bytes) = exported(&timeline, ExportFormat::Parquet, Table::Samples);
    let parquet = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let first = parquet.get_row_iter(None).unwrap().next().unwrap().unwrap();
    assert!((first.get_double(5).unwrap() - 0.1).abs() < f64::EPSILON);
}

#[test]
fn an_empty_capture_gives_whole_files() {
    let timeline = Timeline::default();
    assert_eq!(chrome(&timeline)["traceEvents"], serde_json::json!([]));
    let (_, csv) = exported(&timeline, ExportFormat::Csv, Table::Events);
    assert_eq!(String::from_utf8(csv).unwrap().lines().count(), 1);
    let (_, parquet) = exported(&timeline, ExportFormat::Parquet, Table::Events);
    let parquet = SerializedFileReader::new(Bytes::from(parquet)).unwrap();
    assert_eq!(parquet.metadata().num_row_groups(), 0);
    let (counts, _) = exported(&timeline, ExportFormat::Perfetto, Table::Events);
    assert_eq!(counts, ExportCounts::default());
}

/// Holds what each format's own library reads against what h5py reads of the timeline file.
fn all_hold_the_same(timeline: &Timeline) {
    let Some(python) = python_with("h5py pyarrow perfetto") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timeline.h5");
    timeline_file::write(timeline, &file).unwrap();
    let mut files = vec![file];
    for format in [
        ExportFormat::Csv,
        ExportFormat::Chrome,
        ExportFormat::Parquet,
        ExportFormat::Perfetto,
    ] {
        let path = folder.path().join("events").with_extension(format.extension());
        export(timeline, format, Table::Events, File::create(&path).unwrap()).unwrap();
        files.push(path);
    }
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/independent/exports.py");
    let sums = stdout_of(Command::new(python).arg(script).args(&files));
    let sums: Value = serde_json::from_slice(&sums).unwrap();
    let counts = sums["timeline"].as_object().unwrap().values();
    let counts = counts.map(|of| of[0].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), timeline.total_events());
    for format in ["table", "chrome", "parquet", "perfetto"] {
        assert_eq!(sums[format], sums["timeline"], "{format}");
    }
}

#[test]
fn every_format_read_by_its_own_library_holds_the_events_of_the_timeline_file() {
    all_hold_the_same(&sample(Schema::V2023, false).timeline());
    all_hold_the_same(&crossing());
}

#[test]
fn every_format_holds_the_events_of_a_capture_of_somebody_else() {
    let Some(path) = corpus("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let capture = read(&path, &ReadLimits::default()).unwrap();
    all_hold_the_same(&timeline_of(capture));
}
