//! Reports of Nsight Systems, of other people and of our own making, read without Nsight Systems.

mod bounds;
mod corpus;
mod libraries;
mod mig;
mod recorded;
mod sampled;
mod scheduling;
mod secrets;
pub(crate) mod writer;

use std::collections::BTreeSet;

use flopwatch_model::{Capture, Category, ColumnId, LossReason, MemoryKind};
use flopwatch_trace::{ReadLimits, nsys_report, read};

use crate::capture::{lost, names, read_as, spans};
use crate::message::{Message, new};
use writer::{PROCESS, Report, THREAD};

/// What the strings of [`sample`] are.
const STRINGS: [&str; 17] = [
    "",
    "void gemm<float>(float*)",
    "gemm",
    "_Z4gemmIfEvPf",
    "cudaLaunchKernel_v7000",
    "read",
    "worker",
    "a registered range",
    "GpuMetrics",
    "SMs Active [Throughput %]",
    "cudaDeviceSynchronize_v3020",
    "main",
    "/opt/run/train",
    "0x7f0000001234",
    "/usr/lib/libc.so.6",
    "cudnnConvolutionForward",
    "cublasSgemm_v2",
];

/// A source of generic events and a type of it have these bits in common.
const METRICS: u64 = 0x1_0005 << 32;

fn kernel() -> Message {
    (10..=15)
        .fold(new().number(1, 1).number(2, 2).number(3, 3), |own, field| {
            own.number(field, field * 2)
        })
        .number(16, 48)
        .number(17, 1024)
        .number(21, 40)
        .number(27, 77)
        .number(31, 2)
        .number(32, 1)
        .number(33, 1)
}

fn range(kind: u64, times: (i64, i64)) -> Message {
    let range = new().number(1, kind).number(2, times.0.cast_unsigned());
    let range = range.number(9, THREAD).number(13, 3);
    if times.1 == 0 {
        return range;
    }
    range.number(10, times.1.cast_unsigned())
}

/// A report with something of everything that is read.
pub(crate) fn sample() -> Report {
    let mut report = Report::new(&STRINGS);
    let source = new().number(1, METRICS | 1).number(2, 3).number(3, 8);
    let field = |name: u64, offset: u64, size: u64| new().number(1, name).number(2, offset).number(3, size);
    let kind = new()
        .number(1, METRICS | 0x200)
        .message(3, &field(9, 4, 4))
        .message(3, &field(5, 8, 2).number(4, 1));
    report.header = report.header.message(13, &source).message(14, &kind);
    let offset = |from: u64, to: u64, value: &str| {
        let offset = new().number(1, from).number(2, to).text(5, value).text(6, "Offset");
        new().message(1, &offset)
    };
    let offsets = [
        offset(1, 3, "18446744073709551516"),
        offset(3, 9, "-1700000000000000000"),
        offset(7, 1, "0"),
    ];
    let offsets = offsets.iter().flat_map(|offset| offset.0.clone()).collect();
    report.state = report.state.message(16, &Message(offsets));
    report.threads = new().message(1, &new().number(2, 6).number(3, 20).number(4, THREAD));
    let gpu = new()
        .number(1, 0)
        .text(2, "NVIDIA H100 80GB HBM3")
        .number(11, 85_000_000_000)
        .number(12, 3_352_000_000_000)
        .number(13, 1_980_000_000)
        .number(14, 132)
        .number(41, 9)
        .number(42, 0);
    let machine = new().number(1, 1 << 48).message(2, &new().message(7, &gpu));
    report.system = new().message(1, &machine);
    let copy = new().number(1, 4096).number(2, 1).number(4, 1).number(5, 2);
    let set = new().number(1, 64).number(2, 0).number(4, 2);
    report
        .work(101, (100, 300), &kernel())
        .work(102, (310, 400), &copy)
        .work(103, (410, 420), &set)
        .work(105, (430, 500), &new().number(1, 0xFFFF_FFFF).number(4, 4))
        .next_chunk()
        .work(107, (510, 600), &new().number(1, 4).number(2, 5))
        .call(0, (50, 60), 4)
        .call(1, (425, 505), 10)
        .call(27, (10, 20), 5)
        .call(31, (1, 1), 5)
        .event(102, &range(75, (0, 0)).text(7, "training"))
        .event(102, &range(59, (40, 700)).text(7, "step").number(6, 0xFF00_FF00))
        .event(102, &range(60, (41, 0)).number(12, 7))
        .event(102, &range(34, (45, 0)).text(7, "a mark"))
        .next_chunk()
        .event(113, &new().number(2, PROCESS).text(6, "/opt/run/train --fast"))
        .event(
            104,
            &sampled::sample_of(77, &[(13, 14, true), (5, 14, false), (11, 12, false)]),
        )
        .event(106, &scheduling::switch((THREAD, 30, true, 17)))
        .event(106, &scheduling::switch((THREAD, 78, false, 17)))
        .call(28, (12, 18), 15)
        .call(29, (13, 17), 16)
        .event(110, &new().text(4, "a message of the profiler"))
        .generic(METRICS | 0x200, 640, &[0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE, 0xFF])
        .event(123, &usage(650, 0x1000, 1 << 20, 0))
        .event(123, &usage(660, 0x1000, 1 << 20, 1))
}

fn usage(time: u64, address: u64, bytes: u64, operation: u64) -> Message {
    new()
        .number(1, time)
        .number(3, 0)
        .number(5, PROCESS)
        .number(6, address)
        .number(8, bytes)
        .number(9, 2)
        .number(10, operation)
        .number(12, 9)
}

/// Reads the bytes of a report.
pub(crate) fn read_bytes(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, String> {
    read_as("a.nsys-rep", bytes, |path| nsys_report::read(path, limits))
}

fn capture(report: &Report) -> Capture {
    read_bytes(&report.bytes(), &ReadLimits::default()).unwrap()
}

#[test]
fn a_report_becomes_the_events_that_it_holds() {
    let capture = capture(&sample());
    let of = |category| &capture.events[&category];
    let kernels = of(Category::CudaKernel);
    assert_eq!(spans(kernels), [(STRINGS[1], 100, 200)]);
    let own = |id| kernels.number(id, 0);
    let shape = [
        ColumnId::GridX,
        ColumnId::GridY,
        ColumnId::GridZ,
        ColumnId::BlockX,
        ColumnId::BlockY,
        ColumnId::BlockZ,
    ];
    assert_eq!(shape.map(own), [20, 22, 24, 26, 28, 30].map(Some));
    let sizes = [
        ColumnId::SharedStatic,
        ColumnId::SharedDynamic,
        ColumnId::Registers,
        ColumnId::GraphNode,
        ColumnId::ClusterX,
        ColumnId::ClusterZ,
    ];
    assert_eq!(sizes.map(own), [48, 1024, 40, 77, 2, 1].map(Some));
    let copies = of(Category::CudaMemcpyH2d);
    assert_eq!(spans(copies), [("[CUDA memcpy Host-to-Device]", 310, 90)]);
    assert_eq!(copies.number(ColumnId::Bytes, 0), Some(4096));
    let kinds = [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind].map(|id| copies.number(id, 0));
    let expected = [MemoryKind::Pinned, MemoryKind::Device].map(|kind| Some(u64::from(kind.number())));
    assert_eq!(kinds, expected);
    assert_eq!(spans(of(Category::CudaMemset)), [("[CUDA memset]", 410, 10)]);
    assert_eq!(names(of(Category::CudaSync)), ["Context sync"]);
    assert_eq!(names(of(Category::CudaGraph)), ["[CUDA graph 4 executable 5]"]);
    let calls = names(of(Category::CudaApi));
    assert_eq!(calls, ["cudaLaunchKernel", "cudaDeviceSynchronize"]);
    assert_eq!(spans(of(Category::OsRuntime)), [("read", 10, 10)]);
    assert_eq!(spans(of(Category::CpuSample)), [("[libc.so.6]", 77, 0)]);
    assert_eq!(spans(of(Category::CpuRunning)), [("CPU 17", 30, 48)]);
    let libraries = [Category::CudnnApi, Category::CublasApi].map(|category| names(of(category)));
    assert_eq!(libraries, [["cudnnConvolutionForward"], ["cublasSgemm_v2"]]);
    let ranges = of(Category::NvtxRange);
    // The second one had not ended: it lasts up to the last time of the table.
    let expected = [("training:step", 40, 660), ("training:a registered range", 41, 659)];
    assert_eq!(spans(ranges), expected);
    assert_eq!(ranges.number(ColumnId::Color, 0), Some(0xFF00_FF00));
    assert_eq!(ranges.number(ColumnId::RangeStyle, 1), Some(1));

    assert_eq!(capture.session_start_utc_ns, Some(1_700_000_000_000_000_100));
    assert_eq!(capture.duration_ns, 1_000_000_000);
    assert_eq!(capture.source.tool, "NVIDIA Nsight Systems");
    assert_eq!(capture.source.tool_version, "2025.3.1.90");
    assert_eq!(capture.source.capture_options, ["Cuda", "NvtxEvents", "OSRuntime"]);
    let gpu = &capture.devices[0];
    assert_eq!((gpu.id, gpu.name.as_str()), (0, "NVIDIA H100 80GB HBM3"));
    assert_eq!((gpu.compute_capability, gpu.multiprocessors), (Some((9, 0)), Some(132)));
    assert!(gpu.peak_flops.contains_key("fp32"));
    let labels: BTreeSet<&str> = capture.rows.iter().map(|row| row.label.as_str()).collect();
    assert!(labels.contains("train (100) worker (101)"), "{labels:?}");
    assert!(labels.contains("train (100) GPU 0 stream 7"), "{labels:?}");
    let series = &capture.counters;
    let of_series: Vec<_> = series.iter().map(|one| (one.metric.as_str(), one.value[0])).collect();
    let expected = [("SMs_Active_Throughput_pct", 4_294_967_295.0), ("read", -2.0)];
    assert_eq!(of_series, expected);
    assert_eq!((series[0].t_ns.as_slice(), series[0].unit.as_str()), (&[640][..], "%"));
    let changes: Vec<_> = capture.allocations.iter().map(|one| (one.t_ns, one.bytes)).collect();
    assert_eq!(changes, [(650, 1 << 20), (660, -(1 << 20))]);
    let unsupported = |what: &str| (LossReason::Unsupported, what.to_owned(), 1);
    let expected = [
        (LossReason::Truncated, "NVTX_EVENTS: not ended".to_owned(), 1),
        unsupported("NVTX marks"),
        unsupported("OSRT_API: events of class 31"),
    ];
    assert_eq!(lost(&capture), expected);
}

#[test]
fn what_is_not_known_is_counted_by_what_it_is() {
    let report = sample()
        .event(250, &new().number(1, 5))
        .event(50, &new().number(1, 5))
        .call(200, (1, 2), 4)
        .call(48, (1, 2), 4)
        .call(6, (1, 2), 4)
        .work(150, (1, 2), &new().number(1, 2))
        .generic(7, 9, b"data");
    let lost = lost(&capture(&report));
    for what in [
        "GPU work of kind 150",
        "calls of class 200",
        "OpenACC calls",
        "events of kind 0",
        "events of kind 250",
        "table GENERIC_EVENTS",
    ] {
        let expected = (LossReason::Unsupported, what.to_owned(), 1);
        assert!(lost.contains(&expected), "{what}: {lost:?}");
    }
}

#[test]
fn fields_that_are_not_known_and_chunks_that_hold_nothing_change_nothing() {
    let plain = capture(&sample());
    let mut other = sample();
    other.state = other.state.number(5000, 1).text(5001, "more");
    other.header = other.header.double(70, 0.5).float(71, 0.5);
    other.chunks.insert(1, new());
    let event = &mut other.chunks[0];
    *event = Message(event.0.clone());
    assert_eq!(capture(&other), plain);
    let mut all = new();
    for chunk in &sample().chunks {
        all.0.extend_from_slice(&chunk.0);
    }
    let mut whole = sample();
    whole.chunks = vec![all];
    assert_eq!(capture(&whole), plain);
}

#[test]
fn a_synchronisation_is_named_by_what_its_version_meant() {
    let none = 0xFFFF_FFFF;
    let old = |kind, event| new().number(1, event).number(2, kind);
    let today = |kind, event| new().number(1, event).number(4, kind);
    let report = Report::new(&STRINGS)
        .work(105, (10, 20), &old(1, none))
        .work(105, (11, 20), &old(2, 5))
        .work(105, (12, 20), &old(3, none))
        .work(105, (13, 20), &old(3, 5))
        .work(105, (14, 20), &today(4, none))
        .work(105, (15, 20), &today(1, 5))
        .work(105, (16, 20), &today(2, none))
        .work(105, (17, 20), &today(2, 5));
    let waits = ["Context sync", "Event sync", "Stream sync", "Stream wait sync"];
    let capture = capture(&report);
    assert_eq!(names(&capture.events[&Category::CudaSync]), [waits, waits].concat());
}

#[test]
fn what_a_report_counts_of_itself_is_held_against_what_is_read() {
    let mut report = sample();
    report.more = 3;
    let found = lost(&capture(&report));
    for what in ["events", "generic events", "strings", "names of threads"] {
        let what = format!("{what} that the report counts and does not hold");
        assert!(found.contains(&(LossReason::Dropped, what, 3)), "{found:?}");
    }
}

#[test]
fn a_name_of_no_string_is_said_to_be_missing_and_counted() {
    let report = sample()
        .call(0, (70, 80), 9999)
        .call(0, (71, 80), u64::MAX)
        .call(27, (72, 80), 17);
    let capture = capture(&report);
    let found = lost(&capture);
    for (what, count) in [
        ("CUPTI_ACTIVITY_KIND_RUNTIME: nameId of no string", 2),
        ("OSRT_API: nameId of no string", 1),
    ] {
        let expected = (LossReason::Truncated, what.to_owned(), count);
        assert!(found.contains(&expected), "{found:?}");
    }
    let calls = names(&capture.events[&Category::CudaApi]);
    assert!(calls.contains(&"[string 9999 missing]"), "{calls:?}");
}

#[test]
fn a_report_of_a_later_version_is_read_with_a_note() {
    let note = |version: &str| {
        let mut report = sample();
        report.version = version.to_owned();
        let capture = capture(&report);
        assert_eq!(capture.events[&Category::CudaKernel].len(), 1);
        let lost = lost(&capture).into_iter();
        lost.filter(|(reason, what, _)| *reason == LossReason::Inferred && what.contains("newest"))
            .count()
    };
    assert_eq!(
        ["2026.1.3.500-1v0", "2026.2.1.1-1v0", "2031.1.1.1"].map(note),
        [0, 1, 1]
    );
}

#[test]
fn a_report_since_2025_6_says_its_start_by_pairs_of_clocks() {
    let clock = |id: &str, number| new().text(1, id).number(2, number);
    let pair = |a: u64, b: u64| new().message(1, &new().number(1, a).number(2, b)).double(2, 1.0);
    let clocks = new()
        .message(1, &clock("utc", 11))
        .message(1, &clock("monotonic", 7))
        .message(1, &clock("tsc", 1));
    let pairs = new()
        .message(1, &new().text(1, "tsc").text(2, "monotonic").message(3, &pair(1, 2)))
        .message(
            1,
            &new()
                .text(1, "utc")
                .text(2, "monotonic")
                .message(3, &pair(1_700_000_000_000_000_000, 4_000_000_000)),
        );
    let mut report = sample();
    report.state = new();
    report.sections = vec![("Time Conversion Data", new().message(1, &clocks).message(2, &pairs).0)];
    // The session began a second after the pair was taken.
    assert_eq!(capture(&report).session_start_utc_ns, Some(1_700_000_001_000_000_000));
    report.sections.clear();
    assert_eq!(capture(&report).session_start_utc_ns, None);
}

#[test]
fn a_report_is_known_by_its_content_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let known = capture(&sample());
    for name in ["a.qdrep", "a.nsys-rep", "a.sqlite", "a"] {
        let path = folder.path().join(name);
        std::fs::write(&path, sample().bytes()).unwrap();
        assert_eq!(read(&path, &ReadLimits::default()).unwrap(), known, "{name}");
    }
}
