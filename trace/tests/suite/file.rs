//! The timeline file as its readers find it.

use flopwatch_model::{
    Capture, Category, ColumnId, CounterSeries, Device, Event, Events, Instances, InstructionText, KernelCode,
    KernelFunction, KernelProfile, LineStart, Metric, MetricValue, NameId, OpenRange, PtxStart, RooflineChart,
    RooflineSide, RooflineValue, Row, RowId, RuleKind, RuleResult, SourceFile, SourceLocation, Speedup, Timeline,
    Track, ValueList,
};
use flopwatch_summary::{Summary, summarise};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::timeline_file::{self, Failure, OpenError, WriteFailure};
use hdf5::types::{IntSize, TypeDescriptor, VarLenUnicode};

use crate::capture::{of_session, published, timeline_of};
use crate::columns::through_a_file;
use crate::export::{Schema, unlocked};
use crate::limits::limited;
use crate::sample::sample;

/// A kernel of two instructions, one of them inlined.
fn function() -> KernelFunction {
    let place = SourceLocation { file: 0, line: 12 };
    let text = |offset_bytes, text: &str| InstructionText {
        offset_bytes,
        text: text.to_owned(),
    };
    KernelFunction {
        address: 0x7fd5_24fb_8900,
        bytes: 32,
        architecture: "sm_86".to_owned(),
        files: vec!["/src/gemm.cu".to_owned()],
        lines: vec![
            LineStart {
                place: Some(place),
                ..LineStart::default()
            },
            LineStart {
                offset_bytes: 16,
                place: None,
                inlined: vec![SourceLocation { file: 0, line: 3 }, place],
            },
        ],
        ptx_lines: vec![PtxStart {
            offset_bytes: 16,
            line: 7,
        }],
        instructions: vec![text(0, "NOP"), text(16, "EXIT")],
        ..KernelFunction::default()
    }
}

/// A chart with a roof and a point.
fn chart() -> RooflineChart {
    RooflineChart {
        section: "SpeedOfLight_RooflineChart".to_owned(),
        roofs: vec![RooflineSide {
            label: "roof".to_owned(),
            work: RooflineValue::Metric("work".to_owned()),
            traffic: RooflineValue::PerCycle {
                metrics: vec!["bytes".to_owned()],
                clock: "clock".to_owned(),
            },
        }],
        points: vec![RooflineSide::default()],
    }
}

/// `count` calls, each on a stream and with a name of its own.
fn many(count: u32) -> Timeline {
    let mut events = Events::new(Category::CudaMemset);
    let mut rows = Vec::new();
    for at in 0..count {
        rows.push(Row {
            device: Some(0),
            context: Some(1),
            stream: Some(u64::from(at)),
            label: format!("stream {at}"),
            ..Row::of(1, Track::GpuStream)
        });
        events.names.push(format!("name {at}"));
        let event = Event {
            start_ns: u64::from(at),
            duration_ns: 1,
            row: RowId::new(at),
            name: NameId::new(at),
            correlation: 0,
        };
        events.push(event, &[u64::from(at)]);
    }
    let capture = Capture {
        events: [(Category::CudaMemset, events)].into(),
        rows,
        ..Capture::default()
    };
    timeline_of(capture)
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let bytes = |reverse, name| {
        let export = sample(Schema::V2022, reverse);
        let path = export.beside(name);
        timeline_file::write(&export.timeline(), &path).unwrap();
        std::fs::read(path).unwrap()
    };
    let first = bytes(false, "a.h5");
    // Object times have a resolution of a second: were there any, they would differ now.
    #[allow(clippy::disallowed_methods, reason = "no runtime is blocked here")]
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(first == bytes(true, "another-name.h5"));
}

#[test]
fn a_written_file_reads_back_as_it_was() {
    let export = sample(Schema::V2023, true);
    let mut capture = export.read().unwrap();
    capture.add_counters(vec![series("power_watts"), series("temperature_celsius")]);
    through_a_file(&published(capture));
}

#[test]
fn columns_that_only_some_sources_give_and_profiled_launches_read_back_too() {
    let mut kernels = Events::new(Category::CudaKernel);
    kernels.names.push("gemm".to_owned());
    kernels.push(Event::default(), &[]);
    assert_eq!(kernels.add_column(ColumnId::GraphNode), 10);
    assert_eq!(kernels.add_column(ColumnId::ExternalId), 11);
    kernels.push(Event::default(), &[1, 1, 1, 32, 1, 1, 8, 0, 0, 0, 5, 6]);
    let metric = |value: MetricValue, unit: &str| Metric {
        value,
        unit: unit.to_owned(),
    };
    let profile = |id, metrics: &[(&str, Metric)]| KernelProfile {
        id,
        name: "gemm".to_owned(),
        stream: 7,
        grid: [1, 2, 3],
        block: [4, 5, 6],
        metrics: metrics
            .iter()
            .map(|(name, metric)| ((*name).to_owned(), metric.clone()))
            .collect(),
        ..KernelProfile::default()
    };
    let instances = |keys, values| Instances { keys, values };
    let device = Device {
        peak_flops: [("fp32".to_owned(), 67_000_000_000_000)].into(),
        ..Device::default()
    };
    let capture = Capture {
        events: [(Category::CudaKernel, kernels)].into(),
        rows: many(1).capture.rows,
        devices: vec![device],
        profiles: vec![
            profile(
                0,
                &[
                    ("time", metric(1.5.into(), "us")),
                    ("waves", metric(0.25.into(), "")),
                    ("serial", metric(MetricValue::Integer(u64::MAX), "")),
                ],
            ),
            profile(
                1,
                &[
                    ("time", metric(2.5.into(), "ms")),
                    ("device", metric(MetricValue::Text("H100".to_owned()), "")),
                ],
            ),
            KernelProfile {
                rules: vec![RuleResult {
                    text: "uses \u{b5}s".to_owned(),
                    kind: RuleKind::Warning,
                    speedup: Some(Speedup::default()),
                    ..RuleResult::default()
                }],
                ranges: vec![OpenRange::default()],
                sections: vec!["Occupancy".to_owned()],
                code: Some(std::sync::Arc::new(KernelCode {
                    ptx: "ret;".to_owned(),
                    machine_code_bytes: 16,
                    files: vec![SourceFile {
                        path: "/src/gemm.cu".to_owned(),
                        text: "sum += a * b;\n".to_owned(),
                    }],
                    ..KernelCode::default()
                })),
                function: Some(std::sync::Arc::new(function())),
                rooflines: vec![chart()],
                instances: [
                    (
                        "executed".to_owned(),
                        instances(ValueList::Integers(vec![16, 32]), ValueList::Numbers(vec![0.5, 1.5])),
                    ),
                    (
                        "opcode".to_owned(),
                        instances(ValueList::Texts(vec!["FFMA".to_owned()]), ValueList::Integers(vec![7])),
                    ),
                ]
                .into(),
                ..profile(2, &[])
            },
            KernelProfile {
                instances: [(
                    "executed".to_owned(),
                    instances(ValueList::default(), ValueList::Integers(vec![9])),
                )]
                .into(),
                ..profile(3, &[])
            },
        ],
        ..Capture::default()
    };
    let timeline = timeline_of(capture);
    let columns = &timeline.capture.events[&Category::CudaKernel].columns;
    let optional: Vec<ColumnId> = columns.iter().skip(10).map(|column| column.id).collect();
    assert_eq!(optional, [ColumnId::ExternalId, ColumnId::GraphNode]);
    through_a_file(&timeline);
}

#[test]
fn a_peak_rate_of_zero_is_none_that_is_known() {
    let mut timeline = many(1);
    let rates = [("any".to_owned(), 0), ("fp32".to_owned(), 67_000_000_000_000)];
    timeline.capture.devices = vec![Device {
        peak_flops: rates.into(),
        ..Device::default()
    }];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let read = timeline_file::read(&path, &ReadLimits::default()).unwrap();
    let names: Vec<&str> = read.capture.devices[0].peak_flops.keys().map(String::as_str).collect();
    assert_eq!(names, ["fp32"]);
}

fn series(metric: &str) -> CounterSeries {
    CounterSeries {
        source: "nvml".to_owned(),
        device: "gpu0".to_owned(),
        metric: metric.to_owned(),
        unit: "W".to_owned(),
        t_ns: vec![0, 100, 200],
        value: vec![1.5, -2.0, f64::MAX],
    }
}

#[test]
fn the_layout_is_the_documented_one() {
    let export = sample(Schema::V2022, false);
    let mut capture = export.read().unwrap();
    capture.add_counters(vec![series("power_watts")]);
    let timeline = published(capture);
    let path = export.beside("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();

    let file = unlocked().open(&path).unwrap();
    let meta = file.group("meta").unwrap();
    let session: VarLenUnicode = meta.attr("session_id").unwrap().read_scalar().unwrap();
    assert_eq!(session.as_str(), "c0ffee00");
    let unsigned = |size| TypeDescriptor::Unsigned(size);
    let stored = |attribute: &str| meta.attr(attribute).unwrap().dtype().unwrap().to_descriptor().unwrap();
    assert_eq!(stored("total_duration_ns"), unsigned(IntSize::U8));
    assert_eq!(stored("total_events"), unsigned(IntSize::U4));
    let events: u64 = meta.attr("total_events").unwrap().read_scalar().unwrap();
    assert_eq!(events, timeline.total_events());

    let categories = meta.dataset("categories").unwrap().read_raw::<VarLenUnicode>().unwrap();
    assert_eq!(categories.len(), timeline.capture.captured.len());
    for category in &categories {
        let group = file.group(category).unwrap();
        let start = group.dataset("start_ns").unwrap();
        assert!(start.is_chunked() && !start.filters().is_empty());
        assert!(start.read_raw::<u64>().unwrap().is_sorted(), "{category}");
        let names = file.dataset(&format!("names/{category}")).unwrap().size();
        let indices = group.dataset("name_idx").unwrap().read_raw::<u32>().unwrap();
        let known = indices.into_iter().all(|name| usize::try_from(name).unwrap() < names);
        assert!(known, "{category}");
        for column in ["duration_ns", "stream"] {
            let size = group.dataset(column).unwrap().size();
            assert_eq!(size, start.size(), "{category}/{column}");
        }
    }
    for column in [
        "grid_x",
        "grid_y",
        "grid_z",
        "block_x",
        "block_y",
        "block_z",
        "registers",
        "shared_static",
        "shared_dynamic",
    ] {
        let size = file.dataset(&format!("cuda_kernel/{column}")).unwrap().size();
        assert_eq!(size, 4, "{column}");
    }
    let streams = file.dataset("cuda_kernel/stream").unwrap();
    assert_eq!(streams.read_raw::<u16>().unwrap(), [7, 7, 7, 300]);
    let none = file.dataset("nvtx_range/stream").unwrap();
    assert_eq!(none.read_raw::<u8>().unwrap(), [0; 6]);
    assert!(file.link_exists("nvtx_range") && file.group("nvtx_range").unwrap().link_exists("color"));
    let value = file.dataset("counters/nvml/gpu0/power_watts/value").unwrap();
    assert_eq!(value.read_raw::<f64>().unwrap(), series("power_watts").value);
    let lanes = file.dataset("rows/lanes").unwrap().read_raw::<u32>().unwrap();
    assert_eq!(lanes.len(), timeline.capture.rows.len());
    for (row, lanes) in RowId::all().zip(lanes) {
        let of_row = timeline.capture.events.values().flat_map(|events| {
            let events = events.row.iter().zip(&events.lane);
            events.filter(|(of, _)| **of == row).map(|(_, lane)| lane + 1)
        });
        assert_eq!(lanes, of_row.max().unwrap_or(0), "row {row}");
    }
    let summary = file.dataset("summary").unwrap();
    assert!(summary.is_chunked() && !summary.is_resizable() && !summary.filters().is_empty());
    let summary = summary.read_raw::<u8>().unwrap();
    assert_eq!(summary, summarise(&timeline).to_json().unwrap().as_bytes());
    assert_eq!(serde_json::from_slice::<Summary>(&summary).unwrap().total_events, 24);
}

#[test]
fn columns_widen_when_they_must_and_no_earlier() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.h5");
    let cases = [
        (256, IntSize::U1, IntSize::U2),
        (257, IntSize::U2, IntSize::U2),
        (65_537, IntSize::U4, IntSize::U4),
    ];
    for (count, stream, name) in cases {
        let timeline = many(count);
        timeline_file::write(&timeline, &path).unwrap();
        let file = unlocked().open(&path).unwrap();
        for (column, size) in [("stream", stream), ("name_idx", name)] {
            let stored = file.dataset(&format!("cuda_memset/{column}")).unwrap().dtype().unwrap();
            let stored = stored.to_descriptor().unwrap();
            assert_eq!(stored, TypeDescriptor::Unsigned(size), "{count} {column}");
        }
        file.close().unwrap();
        let read = timeline_file::read(&path, &ReadLimits::default()).unwrap();
        assert_eq!(read, timeline, "{count}");
    }
}

#[test]
fn an_empty_capture_is_a_file_too() {
    let mut capture = Capture::default();
    capture.declare_captured([Category::CudaKernel]);
    through_a_file(&timeline_of(capture));
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    std::fs::write(&path, b"before").unwrap();
    for name in ["../escape", "", "a/b", "..", "nul\0"] {
        let bad = CounterSeries {
            device: name.to_owned(),
            ..series("power_watts")
        };
        let capture = Capture {
            counters: vec![bad],
            ..Capture::default()
        };
        let error = timeline_file::write(&timeline_of(capture), &path).unwrap_err();
        assert!(matches!(error.error, WriteFailure::Counter { .. }), "{name}");
    }
    let nul = of_session(Capture::default(), "a\0b");
    let error = timeline_file::write(&nul, &path).unwrap_err();
    assert!(matches!(error.error, WriteFailure::Hdf5(_)));
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside it");
    let nowhere = timeline_file::write(&many(1), &folder.path().join("missing/timeline.h5"));
    assert!(matches!(nowhere.unwrap_err().error, WriteFailure::Io(_)));
}

#[test]
fn a_file_that_contradicts_itself_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged.h5");
    let forged = |change: &dyn Fn(&hdf5::File)| {
        timeline_file::write(&many(10), &path).unwrap();
        let file = unlocked().open_rw(&path).unwrap();
        change(&file);
        file.close().unwrap();
        timeline_file::read(&path, &ReadLimits::default()).unwrap_err()
    };
    let column = |name: &str, values: &[u64]| {
        let (name, values) = (format!("cuda_memset/{name}"), values.to_vec());
        move |file: &hdf5::File| {
            file.unlink(&name).unwrap();
            file.new_dataset_builder()
                .with_data(&values)
                .create(name.as_str())
                .unwrap();
        }
    };
    let ten: Vec<u64> = (0..10).rev().collect();
    let cases: [(&str, OpenError); 5] = [
        ("not sorted", forged(&column("start_ns", &ten))),
        ("3 values, not 10", forged(&column("duration_ns", &[1, 2, 3]))),
        ("a name that is not there", forged(&column("name_idx", &[10; 10]))),
        ("a row that is not there", forged(&column("row", &[10; 10]))),
        ("no group rows", forged(&|file| file.unlink("rows").unwrap())),
    ];
    for (what, error) in cases {
        let error = error.to_string();
        assert!(error.contains(what) && error.contains("forged.h5"), "{what}: {error}");
    }
    let newer = forged(&|file| {
        let version = file.group("meta").unwrap().attr("schema_version").unwrap();
        version.write_scalar(&(timeline_file::SCHEMA_VERSION + 1)).unwrap();
    });
    assert!(matches!(newer.error, Failure::Newer(_)), "{newer}");
}

#[test]
fn reading_back_has_limits_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(&many(100), &path).unwrap();
    for limits in [
        limited(|of| of.max_events = 99),
        limited(|of| of.max_table_rows = 99),
        limited(|of| of.max_string_bytes = 99),
        limited(|of| of.max_rows = 99),
    ] {
        let error = timeline_file::read(&path, &limits).unwrap_err().to_string();
        assert!(error.contains("99"), "{error}");
    }
}
