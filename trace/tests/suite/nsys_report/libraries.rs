//! Calls of cuDNN and cuBLAS: of reports, and of exports that list the same calls. No report with
//! such calls was at hand: these are made.

use flopwatch_model::{Category, Events, LossReason, Timeline};

use super::capture;
use super::writer::{Report, THREAD};
use crate::capture::{lost, names, spans, timeline_of};
use crate::export::{Export, Finished, LibraryCall, Schema};

const STRINGS: [&str; 5] = [
    "",
    "cudnnConvolutionForward",
    "cublasSgemm_v2",
    "cuDNN profiling started",
    "cudnnCreate",
];

/// A call: its class, its times and its name.
type Call = (u64, (i64, i64), u64);

/// cuDNN's calls are of class 28, marks around them of 33 and 34; cuBLAS's of 29, 35 and 36.
const CUDNN: [Call; 3] = [(33, (1, 1), 3), (28, (10, 90), 1), (28, (100, 0), 4)];
const CUBLAS: [Call; 2] = [(29, (20, 60), 2), (35, (2, 2), 3)];

fn report() -> Report {
    let calls = CUDNN.iter().chain(&CUBLAS);
    calls.fold(Report::new(&STRINGS), |report, (class, times, name)| {
        report.call(*class, *times, *name)
    })
}

fn export() -> Finished {
    let strings: Vec<(i32, &str)> = (0_i32..).zip(STRINGS).collect();
    let rows = |calls: &[Call]| -> Vec<LibraryCall> {
        let row = |(class, (start, end), name): &Call| LibraryCall {
            start: *start,
            end: *end,
            eventClass: u32::try_from(*class).unwrap(),
            globalTid: THREAD,
            nameId: *name,
        };
        calls.iter().map(row).collect()
    };
    Export::new(Schema::V2023, &strings)
        .table("CUDNN_EVENTS", &rows(&CUDNN))
        .table("CUBLAS_EVENTS", &rows(&CUBLAS))
        .finish()
}

fn assert_called(timeline: &Timeline) {
    let of = |category| &timeline.capture.events[&category];
    let cudnn: &Events = of(Category::CudnnApi);
    // The second one had not ended: it lasts until the last time of its table.
    let called = [("cudnnConvolutionForward", 10, 80), ("cudnnCreate", 100, 0)];
    assert_eq!(spans(cudnn), called);
    let cublas: &Events = of(Category::CublasApi);
    assert_eq!(spans(cublas), [("cublasSgemm_v2", 20, 40)]);
    // Both are on one row, the inner call on the lane below.
    assert_eq!(cudnn.row, [cublas.row[0]; 2]);
    assert_eq!((cudnn.lane[0], cublas.lane[0]), (0, 1));
    let row = timeline.row(cublas.row[0]).unwrap();
    assert_eq!((row.track.name(), row.thread), ("library", Some(101)));
    // Nothing says which work of the GPU they launched.
    assert_eq!([&cudnn.correlation[..], &cublas.correlation].concat(), [0; 3]);
}

#[test]
fn calls_of_libraries_of_reports_and_of_both_exports_are_the_same() {
    let export = export();
    for read in [
        capture(&report()),
        export.read().unwrap(),
        export.read_sqlite().unwrap(),
    ] {
        let unsupported = |what: &str| (LossReason::Unsupported, what.to_owned(), 1);
        assert_eq!(
            lost(&read),
            [
                (LossReason::Truncated, "CUDNN_EVENTS: not ended".to_owned(), 1),
                unsupported("CUBLAS_EVENTS: events of class 35"),
                unsupported("CUDNN_EVENTS: events of class 33"),
            ]
        );
        assert_called(&timeline_of(read));
    }
}

#[test]
fn a_library_that_was_traced_and_not_called_was_captured() {
    let report = Report::new(&STRINGS).call(35, (1, 1), 3).call(36, (2, 2), 3);
    let capture = capture(&report);
    assert!(capture.captured.contains(&Category::CublasApi));
    assert!(!capture.captured.contains(&Category::CudnnApi));
    assert!(!capture.events.contains_key(&Category::CublasApi));
}

#[test]
fn calls_without_a_name_or_that_end_before_they_begin_are_counted() {
    let report = Report::new(&STRINGS)
        .call(28, (10, 20), 99)
        .call(28, (30, 25), 1)
        .call(29, (40, 50), u64::MAX);
    let capture = capture(&report);
    let found = lost(&capture);
    for (reason, what) in [
        (LossReason::Truncated, "CUDNN_EVENTS: nameId of no string"),
        (LossReason::Truncated, "CUBLAS_EVENTS: nameId of no string"),
        (LossReason::Skipped, "CUDNN_EVENTS: end before start"),
    ] {
        assert!(found.contains(&(reason, what.to_owned(), 1)), "{what}: {found:?}");
    }
    assert_eq!(names(&capture.events[&Category::CudnnApi]), ["[string 99 missing]"]);
}
