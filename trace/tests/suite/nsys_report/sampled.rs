//! Samples of the CPU of reports, and of exports that list the same frames.

use flopwatch_analysis::{Input, Request};
use flopwatch_model::{Capture, Category, ColumnId, LossReason, Needs, Timeline};
use flopwatch_trace::{ReadLimits, timeline_file};
use serde_json::json;

use super::writer::{Report, THREAD};
use super::{capture, read_bytes};
use crate::capture::{lost, names, timeline_of};
use crate::export::{Callchain, Composite, Export, Finished, Schema};
use crate::limits::limited;
use crate::message::{Message, new};

const STRINGS: [&str; 6] = [
    "",
    "main",
    "work",
    "/home/someone/train",
    "0x7f0000001234",
    "/usr/lib/libc.so.6",
];

/// A frame: its name, what it is in, and whether its name is an address.
type Frame = (u64, u64, bool);

const MAIN: Frame = (1, 3, false);
const WORK: Frame = (2, 3, false);
const IN_LIBC: Frame = (4, 5, true);

/// When, and the frames, the innermost first.
const SAMPLES: [(u64, &[Frame]); 4] = [
    (10, &[WORK, MAIN]),
    (20, &[IN_LIBC, MAIN]),
    (30, &[]),
    (40, &[WORK, MAIN]),
];

/// A sample of the thread at that time, with its frames, the innermost first.
pub(super) fn sample_of(time: u64, frames: &[Frame]) -> Message {
    let sample = new().number(1, time).number(3, 17).number(6, 1).number(11, THREAD);
    frames.iter().fold(sample, |sample, (symbol, module, unresolved)| {
        let frame = new().number(1, *symbol).number(2, *module).number(8, 1 << 47);
        let frame = if *unresolved { frame.number(6, 1) } else { frame };
        sample.message(4, &frame)
    })
}

/// A report of the samples, each in a chunk of its own or all in one.
fn report(apart: bool) -> Report {
    SAMPLES.iter().fold(Report::new(&STRINGS), |report, (time, frames)| {
        let report = report.event(104, &sample_of(*time, frames));
        if apart { report.next_chunk() } else { report }
    })
}

/// An export of the samples; the frames of each in their order, or in the opposite one.
fn export(reverse: bool) -> Finished {
    let strings: Vec<(i32, &str)> = (0_i32..).zip(STRINGS).collect();
    let (mut samples, mut chains) = (Vec::new(), Vec::new());
    for (id, (time, frames)) in (1_u64..).zip(SAMPLES) {
        samples.push(Composite {
            id,
            start: i64::try_from(time).unwrap(),
            globalTid: THREAD,
            ..Composite::default()
        });
        let rows = (0_i32..).zip(frames);
        let mut rows: Vec<Callchain> = rows
            .map(|(depth, (symbol, module, unresolved))| Callchain {
                id,
                symbol: u32::try_from(*symbol).unwrap(),
                module: u32::try_from(*module).unwrap(),
                unresolved: u32::from(*unresolved),
                stackDepth: depth,
            })
            .collect();
        if reverse {
            rows.reverse();
        }
        chains.extend(rows);
    }
    Export::new(Schema::V2023, &strings)
        .table("COMPOSITE_EVENTS", &samples)
        .table("SAMPLING_CALLCHAINS", &chains)
        .finish()
}

/// The names of the frames of each sample, the innermost first.
fn stacks(capture: &Capture) -> Vec<Vec<String>> {
    let samples = &capture.events[&Category::CpuSample];
    let stack = |at| -> Vec<String> {
        let number = samples.number(ColumnId::CallStack, at).unwrap();
        let frames = capture.call_stacks.frames_of(u32::try_from(number).unwrap());
        frames
            .map(|frame| capture.call_stacks.name(frame).into_owned())
            .collect()
    };
    (0..samples.len()).map(stack).collect()
}

fn assert_sampled(timeline: &Timeline) {
    let capture = &timeline.capture;
    let samples = &capture.events[&Category::CpuSample];
    assert_eq!(names(samples), ["work", "[libc.so.6]", "[unknown]", "work"]);
    assert_eq!(samples.start_ns, [10, 20, 30, 40]);
    assert_eq!(samples.duration_ns, [0; 4]);
    let expected = [&["work", "main"][..], &["[libc.so.6]", "main"], &[], &["work", "main"]];
    assert_eq!(stacks(capture), expected);
    // Those of `main`, and of each that it calls.
    assert_eq!(capture.call_stacks.stacks.len(), 3);
    assert_eq!(capture.call_stacks.texts, ["", "libc.so.6", "main", "train", "work"]);
    let row = timeline.row(samples.row[0]).unwrap();
    let place = (row.track.name(), row.process, row.thread);
    assert_eq!(place, ("cpu_sample", 100, Some(101)));
}

/// How a timeline's capture is forged.
type Change = fn(&mut Capture);

#[test]
fn samples_of_reports_and_of_both_exports_are_the_same_with_their_stacks() {
    let of_reports = [false, true].map(|apart| capture(&report(apart)));
    let of_exports = [false, true].map(|reverse| {
        let export = export(reverse);
        [export.read().unwrap(), export.read_sqlite().unwrap()]
    });
    for read in of_reports.into_iter().chain(of_exports.into_iter().flatten()) {
        assert!(lost(&read).is_empty(), "{:?}", lost(&read));
        assert!(read.captured.contains(&Category::CpuSample));
        assert_sampled(&timeline_of(read));
    }
}

#[test]
fn a_flame_graph_of_samples_counts_each_once() {
    let timeline = timeline_of(capture(&report(false)));
    let written = |name: &str, parameters: &serde_json::Value| {
        let mut out = Vec::new();
        let request = Request::parse(name, parameters).unwrap();
        request.run(&[Input::whole(&timeline)], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let folded = written("flame-folded", &json!({"weight": "samples"}));
    assert_eq!(folded, "main;work 2\nmain;[libc.so.6] 1\n(no stack) 1\n");
    let of_window = json!({"weight": "samples", "from_ns": 20, "to_ns": 40, "group_by": "thread"});
    let folded = written("flame-folded", &of_window);
    let thread = "process 100, thread 101";
    assert_eq!(folded, format!("{thread};main;[libc.so.6] 1\n{thread};(no stack) 1\n"));
}

#[test]
fn samples_read_back_from_the_timeline_file_with_their_stacks() {
    let timeline = timeline_of(capture(&report(false)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let limits = ReadLimits::default();
    timeline_file::write(&timeline, &path).unwrap();
    assert_eq!(timeline_file::read(&path, &limits).unwrap(), timeline);
    let needs = Needs {
        call_stacks: false,
        ..Needs::EVERYTHING
    };
    let without = timeline_file::read_for(&path, &limits, &needs).unwrap().timeline;
    assert!(without.capture.call_stacks.is_empty());
    let forge = |change: Change| {
        let mut forged = timeline.clone();
        change(&mut forged.capture);
        timeline_file::write(&forged, &path).unwrap();
        timeline_file::read(&path, &limits).unwrap_err().to_string()
    };
    let nothing = "numbers that refer to nothing";
    let gone = "a stack that is not there";
    let changes: [(Change, &str); 4] = [
        (|forged| forged.call_stacks.stacks[0].caller = 3, nothing),
        (|forged| forged.call_stacks.frames[0].function = 99, nothing),
        (|forged| forged.call_stacks.texts[0].push('a'), "the first text"),
        (|forged| forged.call_stacks.stacks.truncate(1), gone),
    ];
    for (change, says) in changes {
        let error = forge(change);
        assert!(error.contains("call_stacks") && error.contains(says), "{says}: {error}");
    }
}

#[test]
fn a_stack_of_a_million_frames_is_cut_and_counted() {
    let frames: Vec<Frame> = (0..1_000_000).map(|at| (at % 3, 3, false)).collect();
    let report = Report::new(&STRINGS).event(104, &sample_of(10, &frames));
    let capture = capture(&report);
    assert_eq!(stacks(&capture)[0].len(), 1024);
    let what = "frames of stacks beyond the innermost 1024".to_owned();
    assert_eq!(lost(&capture), [(LossReason::Truncated, what, 1_000_000 - 1024)]);
}

#[test]
fn stacks_count_against_the_limit_of_events() {
    let frames: Vec<Frame> = (0..500).map(|at| (at, 3, false)).collect();
    let report = Report::new(&STRINGS).event(104, &sample_of(10, &frames));
    let limits = limited(|of| of.max_events = 400);
    let error = read_bytes(&report.bytes(), &limits).unwrap_err();
    assert!(error.contains("400 events"), "{error}");
}

#[test]
fn frames_of_no_string_are_said_to_be_missing() {
    let frames = [(99, 3, false), (u64::MAX, u64::MAX, false), (4, u64::MAX, true)];
    let report = Report::new(&STRINGS).event(104, &sample_of(10, &frames));
    let last = format!("[string {} missing]", u64::MAX);
    let expected = [["[string 99 missing]", last.as_str(), "[unknown]"]];
    assert_eq!(stacks(&capture(&report)), expected);
}

#[test]
fn frames_apart_from_others_of_their_sample_are_left_out_and_counted() {
    let strings: Vec<(i32, &str)> = (0_i32..).zip(STRINGS).collect();
    let sample = Composite {
        id: 1,
        start: 10,
        globalTid: THREAD,
        ..Composite::default()
    };
    let frame = |id, symbol| Callchain {
        id,
        symbol,
        ..Callchain::default()
    };
    let export = Export::new(Schema::V2023, &strings)
        .table("COMPOSITE_EVENTS", &[sample])
        .table("SAMPLING_CALLCHAINS", &[frame(1, 2), frame(2, 1), frame(1, 1)])
        .finish();
    let capture = export.read().unwrap();
    assert_eq!(stacks(&capture), [["work"]]);
    let what = "SAMPLING_CALLCHAINS: frames apart from others of their sample".to_owned();
    assert_eq!(lost(&capture), [(LossReason::Skipped, what, 1)]);
}
