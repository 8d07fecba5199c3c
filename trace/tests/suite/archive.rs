//! Archives of traces of several processes, of which some did nothing.

use flopwatch_model::{Capture, Category, Loss, LossReason};
use flopwatch_trace::{ReadLimits, kineto, open};

use crate::cases::case;
use crate::kineto::{EVENTS, document, read_archive};

/// Events of a process that did nothing: its name, and what Kineto says of its own window.
const IDLE: &str = r#"
  {"ph": "M", "name": "process_name", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "python3"}},
  {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 4458676522790.000}"#;

fn idle(capture: &Capture) -> Option<u64> {
    let losses = capture.losses.list();
    let idle = losses.iter().find(|loss| loss.reason == LossReason::Idle)?;
    assert_eq!(idle.what, Loss::IDLE_PROCESSES);
    Some(idle.count)
}

#[test]
fn a_parent_that_did_nothing_is_counted_and_its_worker_is_the_capture() {
    let Some(path) = case("kineto_idle_parent.tar") else {
        return;
    };
    let capture = open(&path, &ReadLimits::default()).unwrap().capture;
    let operators = &capture.events[&Category::CpuOp];
    assert_eq!(operators.len(), 10);
    let mut rows = operators.row.iter().map(|row| &capture.rows[row.index()]);
    assert!(rows.all(|row| row.process == 8), "{:?}", capture.rows);
    assert_eq!(idle(&capture), Some(1));
}

#[test]
fn processes_that_did_nothing_change_no_event_wherever_they_stand() {
    let (worker, idle_trace) = (document(EVENTS), document(IDLE));
    let alone = read_archive(&[("trace-5_2.json", &worker)]).unwrap();
    for files in [
        [("a.json", &idle_trace), ("b.json", &worker), ("c.json", &idle_trace)],
        [("a.json", &worker), ("b.json", &idle_trace), ("c.json", &idle_trace)],
    ] {
        let files = files.map(|(name, text)| (name, text.as_str()));
        let capture = read_archive(&files).unwrap();
        assert_eq!(capture.events, alone.events);
        assert_eq!(
            (capture.session_start_utc_ns, capture.duration_ns),
            (alone.session_start_utc_ns, alone.duration_ns)
        );
        assert_eq!(idle(&capture), Some(2));
    }
    assert_eq!(idle(&alone), None);
}

#[test]
fn a_worker_whose_times_are_relative_needs_no_clock_in_common_with_idle_processes() {
    let worker = r#"{"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 8, "tid": 8, "ts": 10, "dur": 5}]}"#;
    let idle_trace = format!(r#"{{"schemaVersion": 1, "traceEvents": [{IDLE}]}}"#);
    let capture = read_archive(&[("a.json", &idle_trace), ("b.json", worker)]).unwrap();
    assert_eq!(capture.session_start_utc_ns, None);
    assert_eq!(capture.events[&Category::CpuOp].len(), 1);
    let error = read_archive(&[("a.json", worker), ("b.json", worker)]).unwrap_err();
    assert!(error.contains("does not say when it began"), "{error}");
}

#[test]
fn a_process_of_which_kineto_tells_no_more_than_when_it_recorded_is_idle() {
    let span = r#"{"ph": "X", "cat": "Trace", "ts": 4458676522600.000, "dur": 200.0, "pid": "Spans",
        "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}}"#;
    let spans = document(&format!("{IDLE}, {span}"));
    let capture = read_archive(&[("a.json", &spans), ("b.json", &document(EVENTS))]).unwrap();
    assert_eq!(idle(&capture), Some(1));
    let error = read_archive(&[("a.json", &spans)]).unwrap_err();
    assert!(error.contains("none of its 1 traces"), "{error}");
}

#[test]
fn a_process_whose_events_are_lost_is_not_taken_for_idle() {
    let cut = r#"{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "na"#;
    let capture = read_archive(&[("a.json", cut), ("b.json", &document(EVENTS))]).unwrap();
    assert_eq!(idle(&capture), None);
    assert!(
        capture.losses.list().iter().any(Loss::is_of_a_cut_file),
        "{:?}",
        capture.losses
    );
}

#[test]
fn an_archive_in_which_every_process_did_nothing_is_an_error_that_counts_them() {
    let trace = document(IDLE);
    let error = read_archive(&[("a.json", &trace), ("b.json", &trace)]).unwrap_err();
    assert!(
        error.contains("capture.tar") && error.contains("none of its 2 traces holds an event"),
        "{error}"
    );
    let list = r#"[{"reason": "dropped", "what": "processes that wrote no trace", "count": 3}]"#;
    let error = read_archive(&[("a.json", &trace), (kineto::LOSSES, list)]).unwrap_err();
    assert!(error.contains("none of its 1 traces"), "{error}");
}
