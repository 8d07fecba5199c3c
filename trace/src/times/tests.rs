//! Times that cannot be, and long ones that can.

use proptest::prelude::*;

use super::*;
use flopwatch_model::{ColumnId, Event, Row, RowId, Track};

/// Zero of the source's clock.
const ZERO: u64 = 1 << 63;
const SECONDS: u64 = 1_000_000_000;
const DAY: u64 = 24 * 60 * 60 * SECONDS;

fn row(stream: Option<u64>) -> Row {
    Row {
        device: Some(0),
        context: Some(1),
        stream,
        ..Row::of(1, Track::GpuStream)
    }
}

/// Rows 0 and 1 are streams, row 2 is work of which no stream is named.
fn capture(events: &[(Category, u32, u64, u64)]) -> Capture {
    let mut capture = Capture {
        rows: vec![row(Some(7)), row(Some(9)), row(None)],
        ..Capture::default()
    };
    for (category, row, start_ns, duration_ns) in events.iter().copied() {
        let of = capture.events.entry(category);
        let of = of.or_insert_with(|| Events::new(category));
        of.push(
            Event {
                start_ns,
                duration_ns,
                row: RowId::new(row),
                ..Event::default()
            },
            &[],
        );
    }
    capture
}

fn lengths(capture: &Capture, category: Category) -> Vec<u64> {
    let events = capture.events.get(&category);
    events.map_or_else(Vec::new, |events| events.duration_ns.clone())
}

fn losses(capture: &Capture) -> Vec<(LossReason, String, u64)> {
    let list = capture.losses.list().into_iter();
    list.map(|loss| (loss.reason, loss.what, loss.count)).collect()
}

const KERNEL: Category = Category::CudaKernel;
const RANGE: Category = Category::NvtxRange;

#[test]
fn a_kernel_of_centuries_is_left_out_and_counted() {
    for length in [DAY, 236 * 366 * DAY, u64::MAX - ZERO - 500, u64::MAX] {
        let mut capture = capture(&[
            (KERNEL, 0, ZERO, 50),
            (KERNEL, 0, ZERO + 100, length),
            (RANGE, 0, ZERO, 900),
        ]);
        assert!(remove_impossible_times(&mut capture, ZERO, None).is_empty());
        assert_eq!(lengths(&capture, KERNEL), [50], "{length}");
        let what = "cuda_kernel: lengths that reach out of the capture".to_owned();
        assert_eq!(losses(&capture), [(LossReason::Skipped, what, 1)]);
        assert!(capture.losses.list()[0].is_of_impossible_times());
    }
}

#[test]
fn an_event_of_1970_beside_those_of_today_is_left_out() {
    let today = ZERO + 19_000 * DAY;
    for category in [KERNEL, RANGE] {
        let mut capture = capture(&[
            (category, 0, today, 50),
            (category, 0, ZERO, 5),
            (category, 0, today + 100, 50),
        ]);
        assert!(remove_impossible_times(&mut capture, ZERO, None).is_empty());
        assert_eq!(lengths(&capture, category), [50, 50]);
        let what = format!("{}: times away from all others", category.name());
        assert_eq!(losses(&capture), [(LossReason::Skipped, what, 1)]);
    }
}

#[test]
fn gpu_work_of_begin_and_length_0_was_not_timed_however_long_the_machine_runs() {
    let later = ZERO + 7200 * SECONDS;
    let mut capture = capture(&[(KERNEL, 0, ZERO, 0), (KERNEL, 0, later, 50), (RANGE, 0, later, 90)]);
    assert!(remove_impossible_times(&mut capture, ZERO, None).is_empty());
    assert_eq!(lengths(&capture, KERNEL), [50]);
    let what = "cuda_kernel: no times".to_owned();
    assert_eq!(losses(&capture), [(LossReason::Skipped, what, 1)]);
}

#[test]
fn a_capture_whose_times_begin_with_0_is_left_alone() {
    let times = [(KERNEL, 0, ZERO, 0), (RANGE, 0, ZERO, 90), (KERNEL, 0, ZERO + 10, 50)];
    let mut relative = capture(&times);
    assert!(remove_impossible_times(&mut relative, ZERO, None).is_empty());
    assert_eq!(relative, capture(&times));
}

#[test]
fn of_a_category_that_lost_all_its_events_nothing_is_known() {
    let mut capture = capture(&[(KERNEL, 0, ZERO, 0), (RANGE, 0, ZERO + 2 * DAY, 90)]);
    assert_eq!(
        remove_impossible_times(&mut capture, ZERO, None),
        BTreeSet::from([KERNEL])
    );
    assert_eq!(capture.events.keys().copied().collect::<Vec<_>>(), [RANGE]);
}

/// A service that runs for weeks inside one range, a capture of hours in which nothing happens, a
/// wait that ends last.
#[test]
fn long_ranges_long_captures_and_long_waits_stay() {
    let now = ZERO + 100 * DAY;
    let hour = 3600 * SECONDS;
    let times = [
        (RANGE, 0, now - 30 * DAY, 30 * DAY + 7 * hour),
        (KERNEL, 0, now, 50),
        (KERNEL, 1, now + 6 * hour, 10 * 60 * SECONDS),
        (Category::OsRuntime, 0, now + 6 * hour, 5 * hour),
        (KERNEL, 0, now + 7 * hour, 50),
    ];
    let mut long = capture(&times);
    assert!(remove_impossible_times(&mut long, ZERO, None).is_empty());
    assert_eq!(long, capture(&times));
}

#[test]
fn the_bounds_that_the_source_states_are_narrower_than_what_neighbors_span() {
    let times = [
        (KERNEL, 0, ZERO, 50),
        (KERNEL, 1, ZERO + 100, 900 * SECONDS),
        (RANGE, 0, ZERO, 9),
    ];
    let mut stated = capture(&times);
    remove_impossible_times(&mut stated, ZERO, Some(ZERO..ZERO + 2 * SECONDS));
    assert_eq!(lengths(&stated, KERNEL), [50]);
    let mut unstated = capture(&times);
    remove_impossible_times(&mut unstated, ZERO, None);
    assert_eq!(lengths(&unstated, KERNEL), [50, 900 * SECONDS]);
    // A statement that hardly an event agrees with is of another clock.
    let mut elsewhere = capture(&times);
    remove_impossible_times(&mut elsewhere, ZERO, Some(0..2 * SECONDS));
    assert_eq!(elsewhere, unstated);
}

#[test]
fn work_that_runs_on_is_cut_where_later_work_of_its_stream_began() {
    let (copy, us) = (Category::CudaMemcpyH2d, 1000);
    let mut capture = capture(&[
        (KERNEL, 0, ZERO, 1600 * us),
        (copy, 0, ZERO + 50 * us, 30 * us),
        (KERNEL, 0, ZERO + 100 * us, 30 * us),
        // Another stream, and work of which no stream is known, may run as it likes.
        (KERNEL, 1, ZERO, 1600 * us),
        (KERNEL, 2, ZERO, 1600 * us),
        (KERNEL, 2, ZERO + 100 * us, 30 * us),
    ]);
    assert!(remove_impossible_times(&mut capture, ZERO, None).is_empty());
    let long = 1600 * us;
    assert_eq!(lengths(&capture, KERNEL), [50 * us, 30 * us, long, long, 30 * us]);
    let what = "cuda_kernel: ends behind later work of its stream".to_owned();
    assert_eq!(losses(&capture), [(LossReason::Truncated, what, 1)]);
    assert!(capture.losses.list()[0].is_of_impossible_times());
}

#[test]
fn work_that_overlaps_and_branches_of_graphs_stay() {
    let us = 1000;
    // Programmatic dependent launch; times of whole microseconds; two nodes of one graph.
    let times = [
        (KERNEL, 0, ZERO, 100 * us),
        (KERNEL, 0, ZERO + 90 * us, 30 * us),
        (KERNEL, 0, ZERO + 119 * us, 0),
        (KERNEL, 1, ZERO, 100 * us),
        (KERNEL, 1, ZERO + 10 * us, 20 * us),
    ];
    let of_a_graph = |by_node: bool| {
        let mut capture = capture(&times);
        let kernels = capture.events.get_mut(&KERNEL).unwrap();
        if by_node {
            let node = kernels.add_column(ColumnId::GraphNode);
            kernels.columns[node].values.set(3, 12);
        } else {
            kernels.correlation[3] = 5;
            kernels.correlation[4] = 5;
        }
        capture
    };
    for by_node in [true, false] {
        let mut capture = of_a_graph(by_node);
        assert!(remove_impossible_times(&mut capture, ZERO, None).is_empty());
        assert_eq!(capture, of_a_graph(by_node), "{by_node}");
    }
}

proptest! {
    #[test]
    fn what_is_left_out_is_counted_and_what_is_kept_is_within_a_year(
        events in prop::collection::vec(
            (
                prop_oneof![Just(KERNEL), Just(Category::CudaMemset), Just(RANGE)],
                0_u32..3,
                prop_oneof![Just(0), 0..2_000_000_u64, (0..9_u64).prop_map(|days| days * DAY)],
                prop_oneof![Just(0), 0..3_000_000_u64, (0..900_u64).prop_map(|days| days * DAY)],
            ),
            0..40,
        )
    ) {
        let events: Vec<_> = events.into_iter().map(|(of, row, start, length)| (of, row, ZERO + start, length)).collect();
        let mut cleaned = capture(&events);
        let size = |capture: &Capture| capture.events.values().map(Events::count).sum::<u64>();
        let before = size(&cleaned);
        let emptied = remove_impossible_times(&mut cleaned, ZERO, None);
        let losses = cleaned.losses.list();
        prop_assert!(losses.iter().all(Loss::is_of_impossible_times), "{losses:?}");
        let skipped = losses.iter().filter(|loss| loss.reason == LossReason::Skipped);
        prop_assert_eq!(before, size(&cleaned) + skipped.map(|loss| loss.count).sum::<u64>());
        prop_assert!(emptied.iter().all(|category| !cleaned.events.contains_key(category)));
        for (category, events) in &cleaned.events {
            prop_assert!(!events.is_empty());
            let longest = if category.is_gpu_work() { 9 * DAY + 3600 * SECONDS } else { 366 * DAY };
            prop_assert!(events.duration_ns.iter().all(|length| *length <= longest), "{category:?}");
        }
    }
}
