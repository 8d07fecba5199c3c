//! Changes of a capture as its reader gives it.

use std::hash::{DefaultHasher, Hash, Hasher};

use flopwatch_model::{Capture, Category, Column, ColumnId, Event, Events, Row, Track, Values, count};
use serde_json::Value;

/// A start in ns since the Unix epoch, for captures that do not say theirs.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// The same capture, which began so much earlier than what it holds.
pub(super) fn later(mut capture: Capture, by_ns: u64) -> Capture {
    capture.duration_ns += by_ns;
    for events in capture.events.values_mut() {
        for start in &mut events.start_ns {
            *start += by_ns;
        }
    }
    for allocation in &mut capture.allocations {
        allocation.t_ns += by_ns;
    }
    for time in capture.counters.iter_mut().flat_map(|series| &mut series.t_ns) {
        *time += by_ns;
    }
    capture
}

/// Another number of a stream. The order of numbers stays, as lists of streams are in it.
pub(super) fn other_stream(stream: u64) -> u64 {
    2 * stream + 1_000
}

/// The same capture with other numbers of streams.
pub(super) fn with_other_streams(mut capture: Capture) -> Capture {
    for row in &mut capture.rows {
        row.stream = row.stream.map(other_stream);
    }
    let named = ColumnId::WaitOnStream;
    let columns = capture
        .events
        .values_mut()
        .filter_map(|events| events.column_mut(named));
    for streams in columns {
        for at in 0..streams.len() {
            let stream = streams.get(at).filter(|stream| *stream != named.missing());
            if let Some(stream) = stream {
                streams.set(at, other_stream(stream));
            }
        }
    }
    capture
}

/// A capture that says when it began: pieces need that to have a place among each other.
pub(super) fn dated(mut capture: Capture) -> Capture {
    capture.session_start_utc_ns.get_or_insert(EPOCH_NS);
    capture
}

/// The capture without the profiler's own window, which reaches over all of it.
pub(super) fn without_windows(mut capture: Capture) -> Capture {
    capture.events.remove(&Category::Other);
    capture
}

/// A start in ns at which nothing goes on that began before: of several the one that parts the
/// events best.
pub(super) fn pause(capture: &Capture) -> Option<u64> {
    let mut times: Vec<(u64, u64)> = Vec::new();
    for events in capture.events.values() {
        times.extend((0..events.len()).map(|at| (events.start_ns[at], events.end_ns(at))));
    }
    times.sort_unstable();
    let mut pauses = Vec::new();
    let mut last_end = u64::MAX;
    for (place, (start, end)) in times.iter().copied().enumerate() {
        if start > last_end {
            pauses.push((place.abs_diff(times.len() / 2), start));
        }
        last_end = if place == 0 { end } else { last_end.max(end) };
    }
    pauses.into_iter().min().map(|(_, start)| start)
}

/// What began before `moment` and what began then or later, as captures that were taken one after
/// the other. No event may reach over the moment.
pub(super) fn cut(capture: &Capture, moment: u64) -> [Capture; 2] {
    let mut first = capture.clone();
    let mut second = Capture {
        session_start_utc_ns: capture.session_start_utc_ns.map(|start| start + moment),
        duration_ns: capture.duration_ns.saturating_sub(moment),
        source: capture.source.clone(),
        captured: capture.captured.clone(),
        rows: capture.rows.clone(),
        devices: capture.devices.clone(),
        programs: capture.programs.clone(),
        call_stacks: capture.call_stacks.clone(),
        ..Capture::default()
    };
    first.duration_ns = first.duration_ns.min(moment);
    for (category, events) in &capture.events {
        let places = |is_first: bool| (0..events.len()).filter(move |at| (events.start_ns[*at] < moment) == is_first);
        let is_whole = places(true).all(|at| events.end_ns(at) <= moment);
        assert!(is_whole, "an event of {category:?} reaches over the cut");
        first.events.insert(*category, picked(events, places(true)));
        let mut behind = picked(events, places(false));
        for start in &mut behind.start_ns {
            *start -= moment;
        }
        second.events.insert(*category, behind);
    }
    let (before, mut behind): (Vec<_>, Vec<_>) = std::mem::take(&mut first.allocations)
        .into_iter()
        .partition(|allocation| allocation.t_ns < moment);
    for allocation in &mut behind {
        allocation.t_ns -= moment;
    }
    (first.allocations, second.allocations) = (before, behind);
    [first, second]
}

/// The same capture with its events in another order. Those of one start, length and row stay in
/// the order that they have, which says what is around what.
pub(super) fn shuffled(capture: &Capture, seed: u64) -> Capture {
    // Readers may have several of one row.
    let same = |row: &Row| capture.rows.iter().position(|other| other == row).unwrap();
    let rows: Vec<u64> = capture.rows.iter().map(|row| count(same(row))).collect();
    let mut other = capture.clone();
    for events in other.events.values_mut() {
        let mut places: Vec<usize> = (0..events.len()).collect();
        places.sort_by_key(|at| {
            let time = mixed(mixed(seed, events.start_ns[*at]), events.duration_ns[*at]);
            mixed(time, rows[events.row[*at].index()])
        });
        *events = picked(events, places);
    }
    other
}

/// The same trace of the Chrome format with its whole events in another order. Those of one start,
/// length and thread stay in the order that they have.
pub(super) fn shuffled_trace(text: &[u8], seed: u64) -> Vec<u8> {
    let mut trace: Value = serde_json::from_slice(text).unwrap();
    let is_whole = |event: &&mut Value| event["ph"] == "X";
    let events = trace["traceEvents"].as_array_mut().unwrap();
    let mut shuffled: Vec<Value> = events.iter_mut().filter(is_whole).map(Value::take).collect();
    shuffled.sort_by_cached_key(|event| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        for field in ["ts", "dur", "pid", "tid"] {
            event[field].to_string().hash(&mut hasher);
        }
        hasher.finish()
    });
    let places = events.iter_mut().filter(|place| place.is_null());
    for (place, event) in places.zip(shuffled) {
        *place = event;
    }
    serde_json::to_vec(&trace).unwrap()
}

/// Two numbers as one that tells nothing of either (SplitMix64).
fn mixed(a: u64, b: u64) -> u64 {
    let mut mixed = a.wrapping_add(b).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The events at `places`, in their order.
fn picked(events: &Events, places: impl IntoIterator<Item = usize>) -> Events {
    let places: Vec<usize> = places.into_iter().collect();
    let columns = events.columns.iter().map(|column| Column {
        id: column.id,
        values: match &column.values {
            Values::U32(values) => Values::U32(at(values, &places)),
            Values::U64(values) => Values::U64(at(values, &places)),
        },
        texts: column.texts.clone(),
    });
    Events {
        start_ns: at(&events.start_ns, &places),
        duration_ns: at(&events.duration_ns, &places),
        row: at(&events.row, &places),
        // The transform assigns them.
        lane: vec![0; places.len()],
        name: at(&events.name, &places),
        correlation: at(&events.correlation, &places),
        columns: columns.collect(),
        names: events.names.clone(),
        name_details: events.name_details.clone(),
    }
}

fn at<T: Copy>(values: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|place| values[*place]).collect()
}

#[test]
fn what_a_cut_parts_is_all_that_was_there() {
    let mut events = Events::new(Category::NvtxRange);
    events.names.push("range".to_owned());
    for (start_ns, duration_ns) in [(0, 10), (20, 5), (10, 3)] {
        let event = Event {
            start_ns,
            duration_ns,
            ..Event::default()
        };
        events.push(event, &[]);
    }
    let capture = dated(Capture {
        duration_ns: 25,
        rows: vec![Row {
            thread: Some(1),
            label: "thread 1".to_owned(),
            ..Row::of(1, Track::Nvtx)
        }],
        events: [(Category::NvtxRange, events)].into(),
        ..Capture::default()
    });
    assert_eq!(pause(&capture), Some(20));
    let [first, second] = cut(&capture, 20);
    let starts = |capture: &Capture| capture.events[&Category::NvtxRange].start_ns.clone();
    assert_eq!((starts(&first), starts(&second)), (vec![0, 10], vec![0]));
    assert_eq!((first.duration_ns, second.duration_ns), (20, 5));
    let other = shuffled(&capture, 3);
    let sum = |capture: &Capture| starts(capture).iter().sum::<u64>();
    assert_eq!(sum(&other), sum(&capture));
}
