//! One entry for every format.

use std::path::Path;

use flopwatch_model::{Capture, Events, RuleKind};
use flopwatch_trace::{Format, ReadError, ReadLimits, detect, ncu, read, timeline_file};

use crate::capture::{counted, read_as};
use crate::cases::case;
use crate::export::Schema;
use crate::limits::limited;
use crate::sample::sample;
use crate::{hlo, kineto, nsys_report, pprof, recorder, xplane};

/// A details page as ncu writes it, behind the lines in which it says what it does.
pub(crate) fn details(kernel: &str) -> String {
    let launch =
        format!(r#""0","6153","python3.11","127.0.0.1","{kernel}","1","7","(256, 2, 1)","(1024, 1, 1)","0","9.0""#);
    format!(
        r#"==PROF== Connected to process 6153
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"
{launch},"GPU Speed Of Light Throughput","Memory Throughput","%","91.5",
{launch},"Memory Workload Analysis","Memory Throughput","byte/s","4,963,609,951.19",
{launch},"Command line profiler metrics","dram__bytes_read.sum","Mbyte","2.33",
{launch},"Launch Statistics","Function Cache Configuration","","CachePreferNone",
{launch},"SpeedOfLight","","","","SOLBottleneck","OPT","Memory is busier, ""than"" compute"
"#
    )
}

pub(crate) const RAW: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","gpu__time_duration.sum","launch__block_dim_x","launch__block_dim_y","launch__block_dim_z","launch__device_id","launch__grid_dim_x","smsp__none"
"","","","","","","","","nsecond","","","","","","inst"
"4","77","train","a-host","gemm(float *)","2025-Oct-28 21:47:21","1","13","1,234.5","64","2","1","3","500",""
"5","77","train","a-host","gemm(float *)","2025-Oct-28 21:47:21","1","13","99","64","2","1","3","500","7"
"#;

#[test]
fn every_format_is_found_by_content_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no-ending");
    let export = sample(Schema::V2023, false);
    let timeline = export.beside("timeline.h5");
    timeline_file::write(&export.timeline(), &timeline).unwrap();
    let bytes = |path: &Path| std::fs::read(path).unwrap();
    for (format, content) in [
        (Format::Hdf5, bytes(export.path())),
        (Format::Sqlite, bytes(export.sqlite())),
        (Format::Hdf5, bytes(&timeline)),
        (Format::Kineto, kineto::document(kineto::EVENTS).into_bytes()),
        (Format::Kineto, kineto::gzip_of(kineto::document(kineto::EVENTS))),
        (Format::Kineto, format!("[{}]", kineto::EVENTS).into_bytes()),
        (Format::XPlane, xplane::space("forward")),
        (Format::NcuCsv, details("gemm").into_bytes()),
        (Format::NcuCsv, RAW.into()),
        (Format::Hlo, hlo::program("jit_f").0),
        (Format::Pprof, pprof::profile()),
        (Format::Pprof, kineto::gzip_of(pprof::profile())),
        (Format::Recorder, recorder::ring().0),
        (Format::NsysReport, nsys_report::sample().bytes()),
    ] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(detect(&path).unwrap(), Some(format));
        let capture = read(&path, &ReadLimits::default()).unwrap_or_else(|error| panic!("{format:?}: {error}"));
        let holds = !capture.events.is_empty() || !capture.profiles.is_empty() || !capture.programs.is_empty();
        let holds = holds || capture.stacks.is_some();
        assert!(holds, "{format:?}");
    }
}

#[test]
fn other_files_are_of_no_known_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.bin");
    for content in [
        &b""[..],
        b"hello",
        b"\x7fELF",
        b"\x1f\x8b\x08",
        &[0x0a; 100],
        b"a,b\n1,2\n",
        &[0; 5000],
    ] {
        std::fs::write(&path, content).unwrap();
        let error = read(&path, &ReadLimits::default()).unwrap_err();
        assert!(
            matches!(error, ReadError::Unknown { .. }) && error.to_string().contains("other.bin"),
            "{error}"
        );
    }
    let error = read(&folder.path().join("absent"), &ReadLimits::default()).unwrap_err();
    assert!(error.to_string().contains("absent: cannot be read"), "{error}");
    std::fs::write(&path, b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-").unwrap();
    let error = read(&path, &ReadLimits::default()).unwrap_err().to_string();
    assert!(error.contains("QdstrmImporter"), "{error}");
}

#[test]
fn a_folder_and_tables_of_other_programs_say_what_to_name() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| read(path, &ReadLimits::default()).unwrap_err();
    let error = refusal(folder.path());
    assert!(matches!(error, ReadError::Folder { .. }), "{error}");
    for (name, content) in [
        ("NVTX_EVENTS.parquet", b"PAR1\x15\0PAR1".as_slice()),
        ("a.arrow", b"ARROW1\0\0".as_slice()),
    ] {
        let export = folder.path().join(format!("of-{name}"));
        std::fs::create_dir(&export).unwrap();
        std::fs::write(export.join(name), content).unwrap();
        for path in [&export, &export.join(name)] {
            let error = refusal(path);
            assert!(matches!(error, ReadError::Tables { .. }), "{error}");
            assert!(error.to_string().contains("nsys export --type sqlite"), "{error}");
        }
    }
}

#[test]
fn a_gzip_of_two_members_with_zeros_behind_them_is_whole() {
    let Some(path) = case("gzip_two_members.json.gz") else {
        return;
    };
    let capture = read(&path, &ReadLimits::default()).unwrap();
    let events: u64 = capture.events.values().map(Events::count).sum();
    assert_eq!((events, capture.losses.list()), (40, Vec::new()));
    // A profile of pprof is packed by the same programs.
    let mut padded = kineto::gzip_of(pprof::profile());
    padded.resize(padded.len() + 512, 0);
    let heap = read_as("heap.pb.gz", padded, |path| read(path, &ReadLimits::default()));
    assert!(heap.unwrap().stacks.is_some());
}

/// What is read of a page that ncu writes as CSV.
fn page(text: impl AsRef<[u8]>, limits: &ReadLimits) -> Result<Capture, String> {
    read_as("page.csv", text, |path| ncu::read(path, limits))
}

#[test]
fn a_details_page_becomes_profiles() {
    let capture = page(details("gemm(float *)"), &ReadLimits::default()).unwrap();
    let [profile] = capture.profiles.as_slice() else {
        panic!("one launch")
    };
    assert_eq!(profile.name, "gemm(float *)");
    assert_eq!((profile.process, profile.stream), (6153, 7));
    assert_eq!((profile.block, profile.grid), ([256, 2, 1], [1024, 1, 1]));
    let metrics: Vec<_> = profile
        .metrics
        .iter()
        .map(|(name, metric)| (name.as_str(), metric.value.number().unwrap(), metric.unit.as_str()))
        .collect();
    let expected = [
        ("GPU Speed Of Light Throughput: Memory Throughput", 91.5, "%"),
        (
            "Memory Workload Analysis: Memory Throughput",
            4_963_609_951.19,
            "byte/s",
        ),
        ("dram__bytes_read.sum", 2.33, "Mbyte"),
    ];
    assert_eq!(metrics, expected);
    assert_eq!(counted(&capture), [("values that are no numbers".to_owned(), 1)]);
    let [rule] = profile.rules.as_slice() else {
        panic!("one rule")
    };
    assert_eq!(rule.rule, "SOLBottleneck");
    assert_eq!(rule.kind, RuleKind::Optimization);
}

#[test]
fn a_raw_page_becomes_profiles() {
    let capture = page(RAW, &ReadLimits::default()).unwrap();
    let ids: Vec<_> = capture.profiles.iter().map(|profile| profile.id).collect();
    assert_eq!(ids, [4, 5]);
    let profile = &capture.profiles[0];
    assert_eq!(profile.device, 3);
    assert_eq!((profile.block, profile.grid), ([64, 2, 1], [500, 0, 0]));
    let time = &profile.metrics["gpu__time_duration.sum"];
    assert_eq!((&time.value, time.unit.as_str()), (&1234.5.into(), "nsecond"));
    assert!(!profile.metrics.contains_key("smsp__none"), "not measured is not zero");
    assert_eq!(capture.losses.list(), []);
    for (content, says) in [("\"ID\",\"x\"\n", "no column of a metric"), ("x,y\n", "has no header")] {
        let error = page(content, &ReadLimits::default()).unwrap_err();
        assert!(error.contains("page.csv") && error.contains(says), "{error}");
    }
    for (limits, says) in [
        (limited(|of| of.max_text_bytes = 100), "100 bytes"),
        (limited(|of| of.max_events = 3), "3 metrics"),
        (limited(|of| of.max_rows = 1), "1 launches"),
        (limited(|of| of.max_string_bytes = 30), "30 bytes of strings"),
    ] {
        let error = page(RAW, &limits).unwrap_err();
        assert!(error.contains("page.csv") && error.contains(says), "{error}");
    }
}
