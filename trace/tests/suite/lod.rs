//! Levels of detail against a plain reckoning of what they stand for.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::{Capture, Category, Event, Events, LodLevel, NameId, Row, RowId, Timeline, Track};

use crate::capture::timeline_of;
use crate::random::Random;

fn row(stream: u64) -> Row {
    Row {
        device: Some(0),
        stream: Some(stream),
        ..Row::of(1, Track::GpuStream)
    }
}

/// `count` events on `rows` rows, in bursts, some nested in long ones, some without length.
fn capture(count: usize, rows: u32, seed: u64) -> Capture {
    let mut random = Random(seed);
    let mut events = Events::new(Category::CudaMemset);
    events.names = vec!["a".to_owned(), "b".to_owned()];
    let mut time = 0;
    for at in 0..count {
        time += if at % 100 == 0 { 1_000_000 } else { random.below(900) };
        let duration = match random.below(50) {
            0 => random.below(3_000_000),
            1 => 0,
            _ => random.below(1000),
        };
        let event = Event {
            start_ns: u64::try_from(time).unwrap(),
            duration_ns: u64::try_from(duration).unwrap(),
            row: RowId::from_index(random.below(usize::try_from(rows).unwrap())).unwrap(),
            name: NameId::from_index(random.below(2)).unwrap(),
            correlation: 0,
        };
        events.push(event, &[]);
    }
    Capture {
        events: [(Category::CudaMemset, events)].into(),
        rows: (0..rows).map(|stream| row(u64::from(stream))).collect(),
        ..Capture::default()
    }
}

fn made(count: usize, rows: u32, seed: u64) -> Timeline {
    timeline_of(capture(count, rows, seed))
}

/// Length of the union of intervals.
fn union(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let (mut covered, mut until) = (0, 0);
    for (start, end) in intervals {
        covered += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    covered
}

#[test]
fn every_entry_says_what_its_bucket_holds() {
    for (count, rows, seed) in [(4096, 1, 1), (6000, 3, 2), (9000, 40, 3)] {
        let timeline = made(count, rows, seed);
        let events = &timeline.capture.events[&Category::CudaMemset];
        let lod = &timeline.lod[&Category::CudaMemset];
        let longest = events.duration_ns.iter().max().unwrap();
        assert!(lod.levels.len() > 2, "{count} events make {} levels", lod.levels.len());
        let mut shift = None;
        for level in &lod.levels {
            assert!(shift.is_none_or(|before: u8| level.shift == before + 2));
            shift = Some(level.shift);
            assert!(level.len() * 8 <= count);
            let held = level.count.iter().map(|n| usize::try_from(*n).unwrap());
            assert_eq!(held.sum::<usize>(), count);
            assert_eq!(level.duration_ns.iter().max(), Some(longest));
            let mut of_buckets: BTreeMap<(RowId, u32, u64), Vec<usize>> = BTreeMap::new();
            let mut of_strips: BTreeMap<(RowId, u32), Vec<(u64, u64)>> = BTreeMap::new();
            for at in 0..count {
                let bucket = events.start_ns[at] >> level.shift;
                let (row, lane) = (events.row[at], events.lane[at].min(LodLevel::LANES - 1));
                of_buckets.entry((row, lane, bucket)).or_default().push(at);
                let time = (events.start_ns[at], events.end_ns(at));
                of_strips.entry((row, lane)).or_default().push(time);
            }
            assert_eq!(level.len(), of_buckets.len());
            for (at, ((row, lane, bucket), members)) in of_buckets.iter().enumerate() {
                let place = (level.row[at], level.lane[at], level.bucket[at]);
                assert_eq!(place, (*row, *lane, *bucket));
                assert_eq!(usize::try_from(level.count[at]).unwrap(), members.len());
                let members = members.iter().rev();
                let best = members.max_by_key(|member| events.duration_ns[**member]).unwrap();
                assert_eq!(level.event[at].index(), *best);
                assert_eq!(level.duration_ns[at], events.duration_ns[*best]);
                let (from, to) = (bucket << level.shift, (bucket + 1) << level.shift);
                let times = of_strips[&(*row, *lane)].iter();
                let clipped = times.map(|(start, end)| (*start.max(&from), *end.min(&to)));
                let busy = union(clipped.filter(|(start, end)| start < end).collect());
                let shift = level.shift;
                let place = format!("row {row} lane {lane} bucket {bucket} shift {shift}");
                assert_eq!(level.busy_ns[at], busy, "{place}");
                assert!(busy <= to - from);
            }
        }
        let lanes = events.lane.iter().map(|lane| (*lane).min(LodLevel::LANES - 1));
        let used: BTreeSet<(RowId, u32)> = events.row.iter().copied().zip(lanes).collect();
        assert!(used.len() > usize::try_from(rows).unwrap(), "events overlap");
        let last = lod.levels.last().unwrap();
        assert_eq!(last.len(), used.len(), "the last level has one entry per lane");
    }
}

#[test]
fn what_runs_at_a_time_is_found_in_the_entries_before_it() {
    let timeline = made(9000, 3, 7);
    let events = &timeline.capture.events[&Category::CudaMemset];
    let last = events.start_ns.last().unwrap();
    let mut found = 0;
    for level in &timeline.lod[&Category::CudaMemset].levels {
        let width = 1_u64 << level.shift;
        for time in (0..16).map(|part| last / 16 * part) {
            for at in (0..events.len()).filter(|at| (events.start_ns[*at]..events.end_ns(*at)).contains(&time)) {
                let bucket = events.start_ns[at] >> level.shift;
                if bucket == time >> level.shift || events.end_ns(at) < ((bucket + 1) << level.shift) + width {
                    continue;
                }
                let of_lane = |entry: &usize| {
                    level.row[*entry] == events.row[at]
                        && level.lane[*entry] == events.lane[at]
                        && level.bucket[*entry] < time >> level.shift
                };
                let before = (0..level.len()).rev().find(of_lane).unwrap();
                assert_eq!(level.event[before].index(), at, "time {time} level {}", level.shift);
                found += 1;
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn far_lanes_share_entries_so_that_nothing_but_overlaps_still_has_levels() {
    let mut capture = capture(5000, 1, 8);
    for events in capture.events.values_mut() {
        events.duration_ns.fill(u64::from(u32::MAX));
    }
    let timeline = timeline_of(capture);
    let lanes = timeline.capture.events[&Category::CudaMemset].lane.iter();
    assert_eq!(lanes.max(), Some(&4999));
    let levels = &timeline.lod[&Category::CudaMemset].levels;
    let last = levels.last().unwrap();
    assert_eq!(last.lane, (0..LodLevel::LANES).collect::<Vec<u32>>());
    assert_eq!(last.count.last(), Some(&(5000 - 63)));
}

#[test]
fn few_events_have_no_levels() {
    assert!(made(4095, 1, 4).lod[&Category::CudaMemset].levels.is_empty());
    assert!(made(5000, 5000, 5).lod[&Category::CudaMemset].levels.is_empty());
}
