//! Properties of any capture.

use std::collections::BTreeMap;

use flopwatch_model::{Capture, Category, ColumnId, Event, Events, NameId, Row, RowId, Timeline, Track};
use flopwatch_summary::summarise;
use proptest::prelude::*;

use crate::capture::timeline_of;
use crate::columns::through_a_file;

/// Category, start, duration, row, name, correlation, bytes.
type Any = (usize, u64, u64, u32, u32, u32, u64);

fn any_event() -> impl Strategy<Value = Any> {
    let start = prop_oneof![0..50_u64, Just(1 << 54), any::<u32>().prop_map(u64::from)];
    let duration = prop_oneof![Just(0), 0..20_u64, (1_u64 << 32)..(1 << 40)];
    (
        0..Category::ALL.len(),
        start,
        duration,
        0..4_u32,
        0..5_u32,
        0..6_u32,
        any::<u64>(),
    )
}

fn row(at: u32) -> Row {
    Row {
        device: Some(at / 2),
        // Wide, and in the opposite order of the index.
        stream: Some(1000 - u64::from(at)),
        label: format!("row {at}"),
        ..Row::of(at % 2, Track::GpuStream)
    }
}

fn capture(all: &[Any]) -> Capture {
    let mut capture = Capture {
        rows: (0..4).map(row).collect(),
        ..Capture::default()
    };
    for (category, start_ns, duration_ns, row, name, correlation, bytes) in all.iter().copied() {
        let category = Category::ALL[category];
        let events = capture.events.entry(category).or_insert_with(|| {
            let mut events = Events::new(category);
            // Two indices of one name, as two ids of `StringIds` may have.
            events.names = ["b", "a", "c", "a", ""].map(str::to_owned).to_vec();
            events
        });
        events.push(
            Event {
                start_ns,
                duration_ns,
                row: RowId::new(row),
                name: NameId::new(name),
                correlation,
            },
            &[bytes],
        );
    }
    capture
}

fn timeline(all: &[Any]) -> Timeline {
    timeline_of(capture(all))
}

/// The items of `shuffled`, where those of one `key` are in the order in which `all` has them.
pub(crate) fn with_ties_in_order<T: Clone, K: Ord>(all: &[T], shuffled: &[T], key: impl Fn(&T) -> K) -> Vec<T> {
    let mut ties: BTreeMap<K, std::vec::IntoIter<T>> = BTreeMap::new();
    for item in all {
        ties.entry(key(item)).or_insert_with(|| {
            let equal = all.iter().filter(|other| key(other) == key(item));
            equal.cloned().collect::<Vec<T>>().into_iter()
        });
    }
    let in_order = |item: &T| ties.get_mut(&key(item)).unwrap().next().unwrap();
    shuffled.iter().map(in_order).collect()
}

/// Category, start, duration, row and name of each event, sorted.
fn essence(capture: &Capture) -> Vec<(Category, u64, u64, Row, String)> {
    let mut all = Vec::new();
    for (category, events) in &capture.events {
        for at in 0..events.len() {
            let row = capture.rows[events.row[at].index()].clone();
            all.push((
                *category,
                events.start_ns[at],
                events.duration_ns[at],
                row,
                events.name_of(at).to_owned(),
            ));
        }
    }
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_transform_loses_and_changes_nothing(all in prop::collection::vec(any_event(), 0..200)) {
        prop_assert_eq!(essence(&timeline(&all).capture), essence(&capture(&all)));
    }

    #[test]
    fn the_order_of_the_input_matters_only_between_events_of_one_row_and_time(
        (all, shuffled) in prop::collection::vec(any_event(), 0..100)
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let shuffled = with_ties_in_order(&all, &shuffled, |of| (of.0, of.1, of.2, of.3));
        prop_assert_eq!(timeline(&all), timeline(&shuffled));
    }

    #[test]
    fn events_of_one_row_and_time_stay_in_the_order_of_the_source(names in prop::collection::vec(0..5_u32, 1..60)) {
        // Operators of one time, each of which says its place.
        let operator = Category::ALL.iter().position(|category| *category == Category::CpuOp).unwrap();
        let all: Vec<Any> = (0_u64..).zip(&names).map(|(place, name)| (operator, 5, 10, 1, *name, 0, place)).collect();
        let before = capture(&all);
        let timeline = timeline(&all);
        let (before, after) = (&before.events[&Category::CpuOp], &timeline.capture.events[&Category::CpuOp]);
        let places: Vec<u64> = (0..after.len()).map(|at| after.column(ColumnId::ExternalId).unwrap().get(at).unwrap()).collect();
        prop_assert!(places.is_sorted() && places.len() == names.len(), "{:?}", places);
        for at in 0..after.len() {
            prop_assert_eq!(after.name_of(at), before.name_of(at));
        }
    }

    #[test]
    fn within_a_lane_nothing_overlaps_and_there_are_no_more_lanes_than_events_at_once(
        all in prop::collection::vec(any_event(), 0..200)
    ) {
        let timeline = timeline(&all);
        let mut rows: BTreeMap<RowId, Vec<(u64, u64, u32)>> = BTreeMap::new();
        for events in timeline.capture.events.values() {
            prop_assert!(events.start_ns.is_sorted());
            for at in 0..events.len() {
                rows.entry(events.row[at]).or_default().push((events.start_ns[at], events.end_ns(at), events.lane[at]));
            }
        }
        for intervals in rows.values() {
            for (at, a) in intervals.iter().enumerate() {
                for b in &intervals[at + 1..] {
                    let overlap = a.0.max(b.0) < a.1.min(b.1);
                    prop_assert!(!(overlap && a.2 == b.2), "{a:?} and {b:?} share a lane");
                }
            }
            // An event of no length takes a lane where others are running.
            let depth = intervals.iter().map(|at| {
                intervals.iter().filter(|other| other.0 <= at.0 && (at.0 < other.1 || *other == at)).count()
            });
            let lanes = intervals.iter().map(|interval| interval.2 + 1).max().unwrap_or(0);
            prop_assert!(usize::try_from(lanes).unwrap() <= depth.max().unwrap_or(0));
        }
    }

    #[test]
    fn the_tables_add_up(all in prop::collection::vec(any_event(), 1..200)) {
        let timeline = timeline(&all);
        let summary = summarise(&timeline);
        let of = |category| {
            let events = all.iter().filter(move |event| Category::ALL[event.0] == category);
            (events.clone().count(), events.map(|event| u128::from(event.2)).sum::<u128>())
        };
        let tables = [
            (&summary.kernels, Category::CudaKernel),
            (&summary.memset, Category::CudaMemset),
            (&summary.cuda_api, Category::CudaApi),
            (&summary.nvtx, Category::NvtxRange),
            (&summary.os_runtime, Category::OsRuntime),
        ];
        for (table, category) in tables {
            let calls: u64 = table.rows.iter().map(|row| row.statistics.calls).sum();
            let total: u128 = table.rows.iter().map(|row| u128::from(row.statistics.total)).sum();
            prop_assert_eq!((usize::try_from(calls).unwrap(), total), of(category));
            for row in &table.rows {
                let figures = &row.statistics;
                prop_assert!(figures.min <= figures.max && u128::from(figures.max) <= u128::from(figures.total));
            }
        }
        let counted: u64 = summary.categories.iter().map(|category| category.events.unwrap_or(0)).sum();
        prop_assert_eq!(counted, summary.total_events);
        for gpu in &summary.gpus {
            prop_assert!(gpu.busy_ns <= summary.window_ns);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_holds_exactly_what_was_written(all in prop::collection::vec(any_event(), 0..100)) {
        through_a_file(&timeline(&all));
    }
}
