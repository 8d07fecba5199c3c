//! Scheduling of threads: of reports, and of exports that list the same switches.

use flopwatch_model::{Capture, Category, ColumnId, LossReason, Timeline};

use super::writer::{PROCESS, Report, THREAD};
use super::{capture, read_bytes};
use crate::capture::{lost, spans, timeline_of};
use crate::columns::through_a_file;
use crate::export::{Export, Finished, Schema, Switch};
use crate::limits::limited;
use crate::message::{Message, new};

/// A switch: of which thread, when, onto the CPU or off it, and which CPU.
type Row = (u64, i64, bool, u64);

const OTHER: u64 = PROCESS + 102;

/// Two threads on three CPUs, not in the order of time.
const SWITCHES: [Row; 7] = [
    (THREAD, 10, true, 3),
    (THREAD, 40, false, 3),
    (OTHER, 20, true, 0),
    (OTHER, 30, false, 0),
    (THREAD, 55, true, 31),
    (THREAD, 70, false, 31),
    (OTHER, 60, true, 3),
];

/// The message of a switch.
pub(super) fn switch((thread, time, onto, cpu): Row) -> Message {
    let message = new()
        .number(1, time.cast_unsigned())
        .number(3, cpu)
        .number(4, u64::from(onto));
    message.number(5, 0).number(6, thread).number(7, 1)
}

fn report(switches: &[Row]) -> Report {
    let report = Report::new(&[""]);
    switches
        .iter()
        .fold(report, |report, row| report.event(106, &switch(*row)).next_chunk())
}

fn export(switches: &[Row]) -> Finished {
    let rows = switches.iter().map(|(thread, time, onto, cpu)| Switch {
        start: *time,
        cpu: u32::try_from(*cpu).unwrap(),
        isSchedIn: u32::from(*onto),
        globalTid: *thread,
    });
    Export::new(Schema::V2023, &[])
        .table("SCHED_EVENTS", &rows.collect::<Vec<Switch>>())
        .finish()
}

fn skipped(what: &str, count: u64) -> (LossReason, String, u64) {
    (LossReason::Skipped, format!("SCHED_EVENTS: {what}"), count)
}

/// Thread, CPU and times of each run, in the order of the timeline.
fn runs(timeline: &Timeline) -> Vec<(u64, u64, u64, u64)> {
    let Some(events) = timeline.capture.events.get(&Category::CpuRunning) else {
        return Vec::new();
    };
    let run = |at: usize| {
        let row = timeline.row(events.row[at]).unwrap();
        assert_eq!(row.track.name(), "cpu_running");
        let cpu = events.number(ColumnId::Cpu, at).unwrap();
        assert_eq!(events.name_of(at), format!("CPU {cpu}"));
        (row.thread.unwrap(), cpu, events.start_ns[at], events.end_ns(at))
    };
    (0..events.len()).map(run).collect()
}

#[test]
fn switches_of_reports_and_of_both_exports_become_the_same_times_in_any_order() {
    let mut reversed = SWITCHES;
    reversed.reverse();
    for switches in [SWITCHES, reversed] {
        let export = export(&switches);
        let captures = [
            capture(&report(&switches)),
            export.read().unwrap(),
            export.read_sqlite().unwrap(),
        ];
        for read in captures {
            // The last run had not ended: it lasts until the last switch.
            let open = (LossReason::Truncated, "SCHED_EVENTS: not ended".to_owned(), 1);
            assert_eq!(lost(&read), [open]);
            assert!(read.captured.contains(&Category::CpuRunning));
            assert_eq!(
                runs(&timeline_of(read)),
                [(101, 3, 10, 40), (102, 0, 20, 30), (101, 31, 55, 70), (102, 3, 60, 70)]
            );
        }
    }
}

#[test]
fn the_times_are_read_back_from_the_timeline_file() {
    through_a_file(&timeline_of(capture(&report(&SWITCHES))));
}

#[test]
fn switches_that_make_no_sense_are_losses_and_no_times() {
    let hostile = [
        (THREAD, 5, false, 3),
        (THREAD, 10, true, 3),
        (THREAD, 15, true, 4),
        (THREAD, 20, false, 4),
        (OTHER, 30, true, 1),
        (OTHER, 40, false, 2),
        (THREAD, 50, true, 1 << 16),
        (THREAD, 60, true, u64::MAX),
        (THREAD, 70, true, 1 << 40),
        (0, 80, true, 0),
    ];
    let capture = capture(&report(&hostile));
    assert_eq!(
        lost(&capture),
        [
            skipped("numbers that no CPU has", 3),
            skipped("of no thread", 1),
            skipped("off a CPU, and never onto it", 2),
            skipped("onto a CPU, and never off it", 2),
        ]
    );
    assert_eq!(runs(&timeline_of(capture)), [(101, 4, 15, 20)]);
}

#[test]
fn scheduling_of_which_nothing_can_be_used_was_not_captured() {
    let assert_nothing = |capture: &Capture, losses: &[(LossReason, String, u64)]| {
        assert_eq!(lost(capture), losses);
        assert!(!capture.captured.contains(&Category::CpuRunning));
        assert!(!capture.events.contains_key(&Category::CpuRunning));
    };
    let off = [(THREAD, 5, false, 3)];
    assert_nothing(&capture(&report(&off)), &[skipped("off a CPU, and never onto it", 1)]);
    // A schema without the CPU.
    let rows = [Switch::default(), Switch::default()];
    let export = Export::new(Schema::V2023, &[])
        .table_without("SCHED_EVENTS", &rows, &["cpu"])
        .finish();
    let unread = (LossReason::Unsupported, "table SCHED_EVENTS".to_owned(), 2);
    for capture in [export.read().unwrap(), export.read_sqlite().unwrap()] {
        assert_nothing(&capture, std::slice::from_ref(&unread));
    }
    assert_nothing(&capture(&report(&[])), &[]);
}

#[test]
fn times_before_the_session_move_its_start_back() {
    let capture = capture(&report(&[(THREAD, -20, true, 3), (THREAD, 15, false, 3)]));
    assert_eq!(spans(&capture.events[&Category::CpuRunning]), [("CPU 3", 0, 35)]);
}

#[test]
fn switches_count_against_the_limit_of_events() {
    let limits = limited(|of| of.max_events = 6);
    let error = read_bytes(&report(&SWITCHES).bytes(), &limits).unwrap_err();
    assert!(error.contains("6 events"), "{error}");
    let export = export(&SWITCHES);
    let error = export.read_within(&limits).unwrap_err().to_string();
    assert!(
        error.contains("SCHED_EVENTS") && error.contains("limit of 6"),
        "{error}"
    );
}
