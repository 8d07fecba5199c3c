use flopwatch_attach::process::Scheduled;
use flopwatch_attach::usage::memory::Room;

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The loop of issue 37: 60,000 layers a second, with ten operators each.
const LOOP_EVENTS: u64 = 600_000;
/// Bytes of memory that it took in a second: 2.2 GB in 2 s.
const LOOP_BYTES: u64 = 1_100_000_000;
/// The same with stacks and shapes: 22.2 GB in 60 s.
const LOOP_DETAILED_BYTES: u64 = 370_000_000;

#[expect(clippy::unnecessary_wraps, reason = "it reads better beside None")]
fn limited(whole_bytes: u64, left_bytes: u64) -> Option<Room> {
    Some(Room {
        whole_bytes,
        left_bytes,
    })
}

/// So many processes that each record so many events in a second, of 300 bytes of traces.
fn probe(processes: usize, events: u64, grown_bytes: Option<u64>) -> Probe {
    let trace = Trace {
        events: events / 5,
        bytes: events / 5 * 300,
        span: PROBE_DURATION,
        busiest: 0,
    };
    Probe {
        length: PROBE_DURATION,
        traces: vec![trace; processes],
        unknown: 0,
        grown_bytes,
        scheduled: Scheduled::default(),
        processors: None,
    }
}

fn asked(seconds: u64) -> WindowRequest {
    WindowRequest {
        length: Duration::from_secs(seconds),
        detailed: false,
        by_iterations: false,
    }
}

/// Room for traces, and that memory.
fn means(memory: Memory) -> Means {
    Means {
        memory,
        traces: Bound {
            bytes: 1 << 40,
            by: BoundBy::Agent,
        },
        traces_in_memory: false,
    }
}

fn given(asked: WindowRequest, probe: &Probe, means: &Means) -> Duration {
    window(asked, probe, means).unwrap().length
}

#[test]
fn the_loop_of_the_issue_stays_within_its_container_of_6_gib() {
    let memory = Memory::of(limited(6 * GIB, 5600 * MIB), limited(23 * GIB, 20 * GIB), 32 * GIB);
    let probe = probe(1, LOOP_EVENTS, Some(LOOP_BYTES / 5));
    for seconds in [10, 60] {
        let window = window(asked(seconds), &probe, &means(memory)).unwrap();
        let taken = u128::from(LOOP_BYTES) * window.length.as_millis() / 1000;
        assert!(taken * 2 <= u128::from(memory.bytes), "{window:?}");
        assert!(window.length >= Duration::from_secs(1), "{window:?}");
        let why = window.shortened.unwrap();
        for figure in [
            format!("1.1 s of the {seconds} s that were asked for"),
            "first window of 200 ms, 1 process would record 600000 events a second".to_owned(),
            "4 KiB each take 2343 MiB".to_owned(),
            "its limit of 6144 MiB leaves".to_owned(),
        ] {
            assert!(why.contains(&figure), "{figure}: {why}");
        }
    }
}

#[test]
fn the_loop_of_the_issue_without_a_limit_leaves_its_node_half_of_what_is_free() {
    let memory = Memory::of(None, limited(23 * GIB, 20 * GIB), 32 * GIB);
    let asked = WindowRequest {
        detailed: true,
        ..asked(60)
    };
    // With these it went through fewer layers.
    let probe = probe(1, LOOP_EVENTS / 4, Some(LOOP_DETAILED_BYTES / 5));
    let window = window(asked, &probe, &means(memory)).unwrap();
    let taken = u128::from(LOOP_DETAILED_BYTES) * window.length.as_millis() / 1000;
    assert!(taken * 2 <= u128::from(10 * GIB), "{window:?}");
    assert!(window.length >= Duration::from_secs(2), "{window:?}");
    let why = window.shortened.unwrap();
    assert!(why.contains("of the 20480 MiB that the node has free"), "{why}");
}

#[test]
fn a_program_of_a_usual_pace_has_the_window_that_was_asked_for() {
    // The loop of docs/kineto.md, in 1 GiB.
    let memory = Memory::of(limited(GIB, 600 * MIB), None, 32 * GIB);
    let window = window(asked(10), &probe(1, 3728, Some(20 * MIB)), &means(memory)).unwrap();
    let expected = Window {
        length: Duration::from_secs(10),
        shortened: None,
    };
    assert_eq!(window, expected);
}

#[test]
fn processes_add_up_and_those_of_whom_nothing_is_known_are_taken_for_the_heaviest() {
    let memory = Memory::of(None, None, 8 * GIB);
    let alone = given(asked(300), &probe(1, 50_000, None), &means(memory));
    let eight = given(asked(300), &probe(8, 50_000, None), &means(memory));
    assert_eq!(alone.as_millis() / 8, eight.as_millis());
    let mut unequal = probe(1, 50_000, None);
    unequal.traces.push(Trace::default());
    unequal.unknown = 6;
    let guessed = given(asked(300), &unequal, &means(memory));
    assert!(
        guessed > eight && guessed < eight * 8 / 7 + Duration::from_millis(20),
        "{guessed:?}"
    );
    let nobody = Probe {
        length: PROBE_DURATION,
        unknown: 3,
        ..Probe::default()
    };
    assert!(given(asked(300), &nobody, &means(memory)) > Duration::from_mins(1));
}

#[test]
fn events_that_took_more_memory_than_the_floor_are_taken_for_as_much() {
    let memory = Memory::of(None, None, 8 * GIB);
    let of = |grown| given(asked(300), &probe(1, 50_000, grown), &means(memory));
    let floor = of(None);
    assert_eq!(of(Some(0)), floor, "memory that an earlier window left is used again");
    assert_eq!(of(Some(60 * MIB)), floor, "the library takes some once");
    // 10,000 events of 16 KiB.
    let grown = of(Some(64 * MIB + 10_000 * 16 * 1024));
    assert_eq!(floor.as_millis() / 4, grown.as_millis());
    // The program's own growth is not taken for that of events without end.
    assert_eq!(of(Some(64 * GIB)).as_millis(), floor.as_millis() / 16);
}

#[test]
fn a_program_that_was_idle_in_the_first_window_is_not_taken_for_one_that_stays_idle() {
    let memory = Memory::of(limited(128 * MIB, 100 * MIB), None, 32 * GIB);
    let window = window(asked(60), &probe(1, 0, None), &means(memory)).unwrap();
    assert!(window.length < Duration::from_secs(10), "{window:?}");
}

#[test]
fn a_late_begin_and_a_burst_are_told_apart_within_bounds() {
    let memory = Memory::of(None, None, 8 * GIB);
    let of = |span: Duration| {
        let mut probe = probe(1, 50_000, None);
        probe.traces[0].span = span;
        given(asked(300), &probe, &means(memory)).as_millis()
    };
    let whole = of(PROBE_DURATION);
    assert_eq!(of(PROBE_DURATION / 2), whole / 2, "it began late");
    assert_eq!(of(Duration::ZERO), whole / 2, "a burst");
    assert_eq!(of(PROBE_DURATION * 100) / 2, whole, "it ended late");
}

#[test]
fn who_waited_for_a_processor_is_taken_for_as_quick_as_without_waiting() {
    let memory = Memory::of(None, None, 8 * GIB);
    let of = |ran, waited| {
        let mut probe = probe(1, 50_000, None);
        let [ran, waited] = [ran, waited].map(Duration::from_millis);
        probe.scheduled = Scheduled { ran, waited };
        given(asked(300), &probe, &means(memory)).as_millis()
    };
    let alone = of(100, 0);
    assert_eq!(of(0, 0), alone, "nobody knows");
    assert_eq!(of(100, 300), alone / 4);
    assert_eq!(of(1, 300_000), alone / 16, "within a bound");
}

#[test]
fn who_hardly_ran_is_taken_for_as_quick_as_in_its_busiest_moment() {
    let memory = Memory::of(None, None, 8 * GIB);
    let of = |busiest, ran, waited| {
        let mut probe = probe(1, 1_000, None);
        probe.traces[0].busiest = busiest;
        let [ran, waited] = [ran, waited].map(Duration::from_millis);
        probe.scheduled = Scheduled { ran, waited };
        given(asked(10_000), &probe, &means(memory)).as_millis()
    };
    let slow = of(0, 100, 0);
    assert_eq!(of(990, 100, 0), slow, "it never waited: it works in bursts");
    // 1,000 events a second, and 99,000 in the half of the time in which it waited.
    assert_eq!(of(1_980, 100, 100), slow / 100);
}

#[test]
fn no_more_processes_are_at_their_busiest_than_there_are_processors() {
    let memory = Memory::of(None, None, 8 * GIB);
    let of = |processes, processors| {
        let mut probe = probe(processes, 1_000, None);
        probe.processors = processors;
        for trace in &mut probe.traces {
            trace.busiest = 1_000;
        }
        let half = Duration::from_millis(100);
        probe.scheduled = Scheduled {
            ran: half,
            waited: half,
        };
        given(asked(10_000), &probe, &means(memory)).as_millis()
    };
    // Each does 1,000 events a second, and 100,000 at its busiest, for half of the time.
    let (of_two, of_eight) = (of(2, Some(2)), of(8, Some(2)));
    assert_eq!(of_two, of(2, None));
    // Lengths are in whole milliseconds.
    assert!((of_two * 102 / 108).abs_diff(of_eight) <= 1, "{of_two}, {of_eight}");
    assert_eq!(of(8, None), of_two / 4);
}

#[test]
fn traces_that_lie_in_memory_count_as_memory() {
    let memory = Memory::of(limited(GIB, 600 * MIB), None, 32 * GIB);
    let probe = probe(1, 20_000, None);
    let on_disk = given(asked(60), &probe, &means(memory));
    let in_memory = Means {
        traces_in_memory: true,
        ..means(memory)
    };
    let window = window(asked(60), &probe, &in_memory).unwrap();
    assert!(window.length < on_disk, "{window:?}");
    let why = window.shortened.unwrap();
    assert!(why.contains("4 KiB each and the traces take"), "{why}");
}

#[test]
fn a_window_is_as_long_as_the_room_of_its_traces_or_is_refused() {
    let memory = Memory::of(None, None, 1 << 40);
    let of_pod = Means {
        traces: Bound {
            bytes: 50 * MIB,
            by: BoundBy::Pod,
        },
        ..means(memory)
    };
    let window_of = |events| window(asked(60), &probe(1, events, None), &of_pod);
    let shortened = window_of(20_000).unwrap();
    assert!(shortened.length < Duration::from_secs(9), "{shortened:?}");
    let why = shortened.shortened.unwrap();
    assert!(
        why.contains("ephemeral-storage limit") && why.contains("50 MiB"),
        "{why}"
    );
    let refused = window_of(LOOP_EVENTS).unwrap_err();
    assert_eq!(refused.reason, CaptureReason::CaptureTooLarge, "{refused}");
    assert!(
        refused.message.starts_with("not even a window of 0.5 s fits"),
        "{refused}"
    );
    let of_disk = Means {
        traces: Bound {
            by: BoundBy::Disk,
            ..of_pod.traces
        },
        ..of_pod
    };
    let refused = window(asked(60), &probe(1, LOOP_EVENTS, None), &of_disk).unwrap_err();
    assert_eq!(refused.reason, CaptureReason::DiskSpace, "{refused}");
}

#[test]
fn a_window_holds_no_more_events_than_can_be_read() {
    let memory = Memory::of(None, None, 1 << 50);
    let window = window(asked(300), &probe(8, 50_000, None), &means(memory)).unwrap();
    assert_eq!(window.length, Duration::from_secs(25));
    let why = window.shortened.unwrap();
    assert!(why.contains("may hold 10000000"), "{why}");
}

#[test]
fn a_window_is_refused_with_the_figures_where_not_even_a_short_one_fits() {
    let memory = Memory::of(limited(GIB, 600 * MIB), None, 32 * GIB);
    let refused = window(asked(60), &probe(1, LOOP_EVENTS, None), &means(memory)).unwrap_err();
    assert_eq!(refused.reason, CaptureReason::OverBudget, "{refused}");
    for figure in [
        "0.5 s",
        "600000 events",
        "limit of 1024 MiB",
        "raise the container's memory limit",
    ] {
        assert!(refused.message.contains(figure), "{figure}: {refused}");
    }
}

#[test]
fn a_window_by_iterations_is_refused_where_it_could_be_shortened() {
    let memory = Memory::of(limited(6 * GIB, 5600 * MIB), None, 32 * GIB);
    let asked = |seconds| WindowRequest {
        by_iterations: true,
        ..asked(seconds)
    };
    let probe = probe(1, LOOP_EVENTS, None);
    let refused = window(asked(60), &probe, &means(memory)).unwrap_err();
    assert_eq!(refused.reason, CaptureReason::OverBudget, "{refused}");
    assert!(
        refused.message.contains("1.1 s of the 60 s of durationSeconds"),
        "{refused}"
    );
    assert_eq!(given(asked(1), &probe, &means(memory)), Duration::from_secs(1));
}

#[test]
fn the_memory_of_a_window_is_the_least_of_the_containers_the_nodes_and_the_agents() {
    let of = |container, node, most| Memory::of(container, node, most).bytes;
    assert_eq!(of(None, None, 7), 7);
    assert_eq!(of(limited(2 * GIB, GIB), None, 8 * GIB), GIB - 2 * GIB / 20);
    assert_eq!(of(limited(256 * MIB, 200 * MIB), None, 8 * GIB), 136 * MIB);
    assert_eq!(of(limited(GIB, 10 * MIB), None, 8 * GIB), 0, "less than must stay free");
    assert_eq!(
        of(limited(8 * GIB, 7 * GIB), limited(16 * GIB, 4 * GIB), 8 * GIB),
        2 * GIB
    );
    assert_eq!(of(limited(8 * GIB, 7 * GIB), limited(64 * GIB, 60 * GIB), GIB), GIB);
}

#[test]
fn the_first_window_is_short_enough_for_processes_of_any_pace() {
    let of = |bytes, processes| {
        let memory = Memory::of(None, None, bytes);
        probe_length(memory, processes)
    };
    assert_eq!(of(32 * GIB, 8).unwrap(), PROBE_DURATION);
    let eight = of(GIB, 8).unwrap();
    assert!(eight < PROBE_DURATION && eight >= MIN_PROBE_DURATION, "{eight:?}");
    assert!(u128::from(UNKNOWN_PACE_BYTES) * 8 * eight.as_millis() / 1000 <= u128::from(GIB));
    for (bytes, processes) in [(GIB, 64), (64 * MIB, 0)] {
        let refused = of(bytes, processes).unwrap_err();
        assert_eq!(refused.reason, CaptureReason::OverBudget);
        assert!(refused.message.contains("50 ms"), "{refused}");
    }
}
