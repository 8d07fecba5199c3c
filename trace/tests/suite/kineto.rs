//! Chrome traces of our own making: what PyTorch wrote over the years, and what goes wrong in them.

use std::io::Write;
use std::path::Path;

use flopwatch_model::{Capture, Category, ColumnId, LossReason, Track};
use flopwatch_trace::{ReadLimits, kineto};

use crate::capture::{lost, read_as, spans, timeline_of};
use crate::limits::limited;

/// A kernel, the call that launched it and the operator around that, as Kineto writes them today.
pub(crate) const EVENTS: &str = r#"
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 101, "ts": 4458676522690.655, "dur": 50.001,
   "args": {"External id": 9, "Sequence number": 5, "Fwd thread id": 1, "Input Dims": [[2, 3], []], "Concrete Inputs": ["", "0"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 101, "ts": 4458676522700.000, "dur": 7,
   "args": {"External id": 9, "cbid": 211, "correlation": 77}},
  {"ph": "s", "id": 77, "pid": 100, "tid": 101, "ts": 4458676522700.000, "cat": "ac2g", "name": "ac2g"},
  {"ph": "X", "cat": "kernel", "name": "gemm<float, \"x\">", "pid": 0, "tid": 7, "ts": 4458676522710.250, "dur": 4.5,
   "args": {"External id": 9, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 77, "registers per thread": 40,
    "shared memory": 400, "blocks per SM": 4.740741, "grid": [512, 2, 3], "block": [64, 4, 1], "graph node id": 0}},
  {"ph": "f", "id": 77, "pid": 0, "tid": 7, "ts": 4458676522710.250, "cat": "ac2g", "name": "ac2g", "bp": "e"},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 4458676522720.000, "dur": 1,
   "args": {"device": 0, "context": 1, "stream": 7, "correlation": 78, "bytes": 4096}},
  {"ph": "X", "cat": "gpu_user_annotation", "name": "forward", "pid": 0, "tid": 7, "ts": 4458676522710.249, "dur": 4.502, "args": {}},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#12", "pid": 100, "tid": 101, "ts": 4458676522690.000, "dur": 60, "args": {}},
  {"ph": "M", "name": "process_name", "ts": 0, "pid": 100, "tid": 0, "args": {"name": "python3"}},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": 101, "ts": 4458676522695.000,
   "args": {"Total Reserved": 2097152, "Total Allocated": 1024, "Bytes": 1024, "Addr": 140000000000000, "Device Id": 0, "Device Type": 1}}"#;

/// The members that stand around the events.
pub(crate) fn document(events: &str) -> String {
    format!(
        r#"{{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "Big GPU", "totalGlobalMem": 1024, "computeMajor": 9,
            "computeMinor": 0, "numSms": 132}}, {{"id": 1, "name": "Unused"}}], "with_stack": 1, "odd": NaN,
            "traceEvents": [{events}
            ], "traceName": "/tmp/x.json", "baseTimeNanoseconds": 1711964646000000000}}"#
    )
}

pub(crate) fn read_text(text: &str) -> Result<Capture, String> {
    read_as("trace.json", text, |path| kineto::read(path, &ReadLimits::default()))
}

fn gzip(path: &Path, text: &[u8]) {
    let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(path).unwrap(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap();
}

fn count(capture: &Capture, category: Category) -> u64 {
    capture.events.get(&category).map_or(0, flopwatch_model::Events::count)
}

#[test]
fn a_trace_of_today_becomes_columns() {
    let capture = read_text(&document(EVENTS)).unwrap();
    assert_eq!(lost(&capture), []);
    assert_eq!(capture.source.tool, "PyTorch Kineto");
    assert_eq!(capture.source.capture_options, ["with_stack"]);
    // The step comes first: all times count from it.
    let base = 1_711_964_646_000_000_000 + 4_458_676_522_690_000;
    assert_eq!(capture.session_start_utc_ns, Some(base));
    assert_eq!(capture.duration_ns, 60_000);
    let devices = capture.devices.iter();
    let devices = devices.map(|gpu| (gpu.id, gpu.name.as_str(), gpu.multiprocessors));
    assert_eq!(devices.collect::<Vec<_>>(), [(0, "Big GPU", Some(132))]);

    let kernels = &capture.events[&Category::CudaKernel];
    assert_eq!(spans(kernels), [("gemm<float, \"x\">", 20_250, 4500)]);
    assert_eq!(kernels.correlation, [77]);
    let own = |id| kernels.column(id).and_then(|values| values.get(0));
    assert_eq!(
        [ColumnId::GridX, ColumnId::BlockY, ColumnId::SharedDynamic].map(own),
        [Some(512), Some(4), Some(400)]
    );
    assert_eq!(
        [ColumnId::Registers, ColumnId::ExternalId, ColumnId::GraphNode].map(own),
        [Some(40), Some(9), None]
    );
    let row = &capture.rows[kernels.row[0].index()];
    assert_eq!(
        (row.track, row.process, row.device, row.stream),
        (Track::GpuStream, 100, Some(0), Some(7))
    );
    assert_eq!(row.label, "python3 (100) GPU 0 stream 7");

    let operators = &capture.events[&Category::CpuOp];
    let own = |id| operators.column(id).and_then(|values| values.get(0));
    let thread = [ColumnId::Sequence, ColumnId::ForwardThread].map(own);
    assert_eq!(thread, [Some(5), Some(1)]);
    let steps = capture.events[&Category::Step].column(ColumnId::StepNumber);
    assert_eq!(steps.and_then(|values| values.get(0)), Some(12));
    assert_eq!(count(&capture, Category::GpuAnnotation), 1);
    let series = capture.counters.iter();
    let series = series.map(|s| (s.device.as_str(), s.metric.as_str(), s.t_ns[0], s.value[0]));
    assert_eq!(
        series.collect::<Vec<_>>(),
        [
            ("gpu0", "memory_allocated", 5000, 1024.0),
            ("gpu0", "memory_reserved", 5000, 2_097_152.0)
        ]
    );
    assert!(
        capture.captured.contains(&Category::CudaMemset),
        "asked for with the kernels, and none happened"
    );
    assert!(!capture.captured.contains(&Category::OsRuntime));

    let timeline = timeline_of(capture);
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    let launch = kernels.column(ColumnId::Launch).and_then(|values| values.get(0));
    assert_eq!(launch, Some(0), "joined to its call");
}

#[test]
fn a_trace_of_2021_has_the_same_categories() {
    let capture = read_text(
        r#"{"traceEvents": [
        {"ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 5, "tid": "24572", "ts": 1621401187223197, "dur": 21, "args": {"External id": 2}},
        {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 5, "tid": "24572", "ts": 1621401187224533, "dur": 20, "args": {"correlation": 311, "external id": 31}},
        {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 1621401187225275, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 333}},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "pid": 0, "tid": "stream 7", "ts": 1621401187224556, "dur": 1, "args": {"bytes": 640}},
        {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": 1621401187224600, "dur": 1, "args": {"bytes": 8}},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Traces", "tid": "PyTorch Profiler", "ts": 1621401187223000, "dur": 13896},
        {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 1621401187223005, "args": {"GPU Utilization": 0.5, "none": NaN}}
        ]}"#,
    )
    .unwrap();
    for category in [
        Category::CpuOp,
        Category::CudaApi,
        Category::CudaKernel,
        Category::CudaMemcpyD2h,
        Category::CudaMemset,
        Category::Other,
    ] {
        assert_eq!(count(&capture, category), 1, "{category:?}");
    }
    assert_eq!(capture.session_start_utc_ns, Some(1_621_401_187_223_000_000));
    let skipped = (LossReason::Skipped, "samples that are no numbers".to_owned(), 1);
    assert_eq!(lost(&capture), [skipped]);
    let other = &capture.events[&Category::Other];
    let row = &capture.rows[other.row[0].index()];
    assert_eq!(row.label, "Traces PyTorch Profiler");
    let api = &capture.events[&Category::CudaApi];
    assert_eq!(capture.rows[api.row[0].index()].thread, Some(24572));
    // Without arguments that say so, the thread's name tells the stream.
    let copies = &capture.events[&Category::CudaMemcpyD2h];
    assert_eq!(capture.rows[copies.row[0].index()].stream, Some(7));
    assert_eq!(capture.counters[0].metric, "GPU_0_Utilization.GPU_Utilization");
}

#[test]
fn gzip_holds_the_same_trace_also_in_several_members() {
    let folder = tempfile::tempdir().unwrap();
    let text = document(EVENTS);
    let plain = read_text(&text).unwrap();
    let path = folder.path().join("trace.json.gz");
    gzip(&path, text.as_bytes());
    assert_eq!(kineto::read(&path, &ReadLimits::default()).unwrap(), plain);
    let (front, back) = text.as_bytes().split_at(1234);
    gzip(&path, front);
    let mut both = std::fs::read(&path).unwrap();
    gzip(&path, back);
    both.extend(std::fs::read(&path).unwrap());
    std::fs::write(&path, both).unwrap();
    assert_eq!(kineto::read(&path, &ReadLimits::default()).unwrap(), plain);
}

#[test]
fn a_list_of_events_alone_is_a_trace_also_without_its_end() {
    for text in [
        format!("[{EVENTS}]"),
        format!("\u{feff} [{EVENTS}\n"),
        format!("[{EVENTS},\n"),
    ] {
        let capture = read_text(&text).unwrap();
        assert_eq!(count(&capture, Category::CudaKernel), 1, "{text}");
        let cut = lost(&capture).iter().any(|loss| loss.0 == LossReason::Truncated);
        assert_eq!(cut, !text.ends_with(']'));
    }
}

#[test]
fn a_truncated_trace_keeps_what_it_has_and_says_so() {
    let text = document(EVENTS);
    let first = text.find("{\"ph\"").unwrap();
    let mut before = 0;
    for end in (first..text.len() - 1).step_by(3) {
        if !text.is_char_boundary(end) {
            continue;
        }
        let capture = read_text(&text[..end]).unwrap();
        let lost = lost(&capture);
        let cut = lost.iter().any(|loss| loss.0 == LossReason::Truncated);
        assert!(cut, "{end}: {lost:?}");
        let events = capture.events.values().map(flopwatch_model::Events::count).sum();
        assert!(events >= before, "{end}: more text, fewer events");
        before = events;
    }
    assert_eq!(before, 6);
    let whole = gzip_of(&text);
    let read = |path: &Path| kineto::read(path, &ReadLimits::default());
    let capture = read_as("trace.json.gz", &whole[..whole.len() - 9], read).unwrap();
    assert_eq!(count(&capture, Category::CudaKernel), 1);
    let is_rest = |what: &str| what.starts_with("rest of the file");
    let mut lost = lost(&capture).into_iter();
    assert!(lost.any(|(reason, what, _)| reason == LossReason::Truncated && is_rest(&what)));
}

pub(crate) fn gzip_of(content: impl AsRef<[u8]>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gz");
    gzip(&path, content.as_ref());
    std::fs::read(path).unwrap()
}

#[test]
fn an_event_whose_quotes_are_not_escaped_is_repaired_and_counted() {
    let broken = r#"{"ph": "X", "cat": "cpu_op", "name": "say "hello" to", "pid": 1, "tid": 1, "ts": 4458676522690, "dur": 3, "args": {"a": ["x"y", 1]}},"#;
    let capture = read_text(&document(&format!("{broken}{EVENTS}"))).unwrap();
    let what = "events whose quotes were not escaped".to_owned();
    assert_eq!(lost(&capture), [(LossReason::Truncated, what, 1)]);
    let operators = &capture.events[&Category::CpuOp];
    assert_eq!(operators.len(), 2);
    assert_eq!(operators.names, ["say \"hello\" to", "aten::mm"]);
}

#[test]
fn a_damaged_event_costs_itself_and_not_its_neighbours() {
    for damage in [
        r#"{"ph": "X", "ts": , "dur": 3},"#,
        r#"{"ph": "X" "ts": 5},"#,
        r#"{"ph": "X", "args": {"a": [1, {"b": 2}, }]}},"#,
        "{,",
        "nonsense,",
        r#"{"ph": "X", "name": "no time"},"#,
        r#"{"ph": "X", "name": "ends before it starts", "ts": 5, "dur": -1},"#,
    ] {
        let capture = read_text(&document(&format!("{damage}{EVENTS}"))).unwrap();
        let lost = lost(&capture);
        assert!(
            !lost.is_empty() && lost.iter().all(|(reason, ..)| *reason == LossReason::Skipped),
            "{damage}: {lost:?}"
        );
        for category in [
            Category::CpuOp,
            Category::CudaKernel,
            Category::CudaApi,
            Category::CudaMemcpyH2d,
            Category::Step,
        ] {
            assert_eq!(count(&capture, category), 1, "{damage}: {category:?}");
        }
    }
}

#[test]
fn begins_and_ends_become_ranges() {
    let capture = read_text(
        r#"[{"ph": "B", "cat": "nvtx", "name": "outer", "pid": 1, "tid": 2, "ts": 10},
            {"ph": "B", "cat": "nvtx", "name": "inner", "pid": 1, "tid": 2, "ts": 11},
            {"ph": "B", "cat": "nvtx", "name": "elsewhere", "pid": 1, "tid": 3, "ts": 12},
            {"ph": "E", "pid": 1, "tid": 2, "ts": 13}, {"ph": "E", "pid": 1, "tid": 2, "ts": 15},
            {"ph": "E", "pid": 1, "tid": 2, "ts": 16}]"#,
    )
    .unwrap();
    let mut found = spans(&capture.events[&Category::NvtxRange]);
    found.sort_unstable();
    let expected = [("elsewhere", 2000, 4000), ("inner", 1000, 2000), ("outer", 0, 5000)];
    assert_eq!(found, expected);
    let lost = lost(&capture);
    assert!(lost.contains(&(LossReason::Truncated, "ranges that had not ended".to_owned(), 1)));
    assert!(lost.contains(&(LossReason::Skipped, "ends of ranges that did not begin".to_owned(), 1)));
}

#[test]
fn what_is_no_trace_is_an_error_that_names_the_file() {
    for (text, says) in [
        ("", "holds no list"),
        ("hello", "no JSON at byte 0"),
        ("{}", "holds no list"),
        (r#"{"a": 1, "b": [{}]}"#, "holds no list"),
        ("[]", "holds no list"),
        ("[1, 2, 3]", "holds no list"),
        (r#"{"a": "b" c}"#, "holds no list"),
    ] {
        let error = read_text(text).unwrap_err();
        assert!(error.contains("trace.json") && error.contains(says), "{text}: {error}");
    }
}

#[test]
fn limits_end_in_errors_that_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json.gz");
    // A bomb: a few kilobytes that inflate to many megabytes.
    gzip(&path, format!("[{}", " ".repeat(12 << 20)).as_bytes());
    let cases = [
        (limited(|of| of.max_text_bytes = 4 << 20), "bytes of text"),
        (limited(|of| of.max_events = 4), "4 events"),
        (limited(|of| of.max_rows = 2), "2 streams and threads"),
        (limited(|of| of.max_string_bytes = 20), "20 bytes of strings"),
    ];
    for (limits, says) in cases {
        let error = kineto::read(&path, &limits).unwrap_err().to_string();
        assert!(error.contains("trace.json.gz") && error.contains(says), "{error}");
        gzip(&path, document(EVENTS).as_bytes());
    }
    let long = format!("{{\"long\": [{}], \"traceEvents\": []}}", "1, ".repeat(1 << 20));
    std::fs::write(&path, long).unwrap();
    let limits = limited(|of| of.max_chunk_bytes = 1 << 19);
    let error = kineto::read(&path, &limits).unwrap_err().to_string();
    let says = "the member at byte 1 is longer than 524288 bytes";
    assert!(error.contains(says), "{error}");
}

/// The capture of an archive with files of those names and texts.
pub(crate) fn read_archive(files: &[(&str, &str)]) -> Result<Capture, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(text.len()).unwrap());
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().sync_all().unwrap();
    kineto::read_archive(&path, &ReadLimits::default()).map_err(|error| error.to_string())
}

#[test]
fn an_archive_says_which_of_its_traces_are_missing() {
    let trace = document(EVENTS);
    let list = r#"[{"reason": "dropped", "what": "processes that wrote no trace", "count": 3}]"#;
    let alone = read_archive(&[("trace-5_1.json", &trace)]).unwrap();
    let both = read_archive(&[("trace-5_1.json", &trace), (kineto::LOSSES, list)]).unwrap();
    assert_eq!(both.events, alone.events);
    let mut expected = lost(&alone);
    expected.push((LossReason::Dropped, "processes that wrote no trace".to_owned(), 3));
    expected.sort();
    assert_eq!(lost(&both), expected);
}

#[test]
fn a_file_of_that_name_that_lists_nothing_is_read_as_a_trace() {
    let trace = document(EVENTS);
    let named = read_archive(&[(kineto::LOSSES, &trace)]).unwrap();
    assert_eq!(named.events, read_archive(&[("trace.json", &trace)]).unwrap().events);
    let long = format!("[{}]", " ".repeat(1 << 17));
    for text in ["{}", "[", &long] {
        let error = read_archive(&[("trace.json", &trace), (kineto::LOSSES, text)]).unwrap_err();
        assert!(error.contains("capture.tar"), "{error}");
    }
}
