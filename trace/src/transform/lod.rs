//! Levels of detail: per lane of a row and bucket of time the longest event, how many start there
//! and how long the lane is busy.
//!
//! # The rule
//!
//! The rule goes by strips ([`strips`]): a lane of a row, or its far lanes together.
//!
//! A level of shift `s` has an entry per strip and value of `start_ns >> s` that occurs in it. The
//! finest level is the one of the least `s` with at most N / 8 entries; from there every second `s`
//! follows, up to and including the first one that has a single entry per strip. A category of
//! fewer than 4,096 events, or one where no `s` below 64 has so few entries, has no levels.
//!
//! An entry's busy time is |U ∩ bucket|, where U is the union of all intervals of the strip in this
//! category. With the events of the strip in order, let `covered(i)` be the length of the union of
//! the first `i` and `until(i)` their latest end. Up to a time `t` that none of the events behind
//! the first `i` precedes, `covered(i) - max(0, until(i) - t)` of it is covered: the difference of
//! two such terms, and so constant work per entry at every level.

use rayon::prelude::*;

use super::spans::{Span, Spans};
use super::strips;
use flopwatch_model::{EventId, Lod, LodLevel, RowId, index};

/// Fewer events are drawn as they are.
const LEAST_EVENTS: usize = 4096;
/// The finest level has at most one entry for so many events.
const EVENTS_PER_ENTRY: usize = 8;
/// Buckets grow by 2^2 from level to level.
const LEVEL_SHIFT: usize = 2;

/// The levels of events that have their lanes.
pub(super) fn lod(spans: &Spans) -> Lod {
    let count = spans.len();
    if count < LEAST_EVENTS {
        return Lod::default();
    }
    let of_rows = spans.rows().par_iter();
    let of_rows = of_rows.map(|(_, range)| differing(spans.of(range), spans.lanes(range)));
    let (differing, strips) = of_rows.reduce(
        || ([0; 65], 0),
        |(mut all, strips), (of_row, more)| {
            for (all, of_row) in all.iter_mut().zip(of_row) {
                *all += of_row;
            }
            (all, strips + more)
        },
    );
    let shifts = shifts(count, strips, &differing);
    let of_strips = spans.rows().par_iter().flat_map_iter(|(row, range)| {
        let strips = finest(spans.of(range), spans.lanes(range), &shifts);
        let used = (0_u32..).zip(strips).filter(|(_, entries)| !entries.is_empty());
        let of_row: Vec<Vec<LodLevel>> = used
            .map(|(lane, entries)| pyramid((*row, lane), entries, &shifts))
            .collect();
        of_row
    });
    merge_strips(&shifts, &of_strips.collect::<Vec<_>>())
}

/// The shifts of the levels of `count` events in `strips` strips, the finest first. `differing`
/// counts the events whose start differs in so many low bits from that of the event before in their
/// strip; the first event of each strip counts as 64.
pub(super) fn shifts(count: usize, strips: usize, differing: &[usize; 65]) -> Vec<u8> {
    if count < LEAST_EVENTS {
        return Vec::new();
    }
    let entries = entries_by_shift(differing);
    let Some(finest) = entries.iter().position(|entries| entries * EVENTS_PER_ENTRY <= count) else {
        return Vec::new();
    };
    let shifts: Vec<usize> = (finest..entries.len()).step_by(LEVEL_SHIFT).collect();
    // The first level that has one entry per strip is the last.
    let needed = shifts
        .iter()
        .take_while(|shift| entries.get(**shift).is_some_and(|entries| *entries > strips));
    let needed = needed.count() + 1;
    let shifts = shifts.into_iter().take(needed);
    shifts.filter_map(|shift| u8::try_from(shift).ok()).collect()
}

/// The levels of all strips, in the order of the strips.
pub(super) fn merge_strips(shifts: &[u8], of_strips: &[Vec<LodLevel>]) -> Lod {
    fn column<T: Copy + Send>(levels: &[&LodLevel], of: impl Fn(&LodLevel) -> &[T] + Sync) -> Vec<T> {
        let columns: Vec<&[T]> = levels.iter().map(|level| of(level)).collect();
        columns.concat()
    }
    let level = |(at, shift): (usize, &u8)| {
        let levels: Vec<&LodLevel> = of_strips.iter().filter_map(|levels| levels.get(at)).collect();
        let numbers = || {
            rayon::join(
                || {
                    (
                        column(&levels, |level| &level.row),
                        column(&levels, |level| &level.lane),
                    )
                },
                || {
                    (
                        column(&levels, |level| &level.event),
                        column(&levels, |level| &level.count),
                    )
                },
            )
        };
        let times = || {
            rayon::join(
                || column(&levels, |level| &level.bucket),
                || {
                    rayon::join(
                        || column(&levels, |level| &level.duration_ns),
                        || column(&levels, |level| &level.busy_ns),
                    )
                },
            )
        };
        let (((row, lane), (event, count)), (bucket, (duration_ns, busy_ns))) = rayon::join(numbers, times);
        LodLevel {
            shift: *shift,
            row,
            lane,
            bucket,
            event,
            duration_ns,
            count,
            busy_ns,
        }
    };
    let levels = shifts.par_iter().enumerate().map(level).collect();
    Lod { levels }
}

/// How many events of a row differ in how many low bits from the event before in their strip, and
/// how many strips there are.
fn differing(spans: impl Iterator<Item = Span>, lane: &[u32]) -> ([usize; 65], usize) {
    let mut differing = [0_usize; 65];
    let mut before = vec![None; index(LodLevel::LANES)];
    for (span, lane) in spans.zip(lane) {
        let Some(before) = before.get_mut(index(strips::gathered(*lane))) else {
            continue;
        };
        let bits = before
            .replace(span.start)
            .map_or(64, |before: u64| 64 - (before ^ span.start).leading_zeros());
        if let Some(count) = usize::try_from(bits).ok().and_then(|bits| differing.get_mut(bits)) {
            *count += 1;
        }
    }
    (differing, before.iter().flatten().count())
}

/// How many entries the level of each shift would have: two neighbours of a strip share a bucket
/// when they differ in lower bits only.
fn entries_by_shift(differing: &[usize; 65]) -> [usize; 64] {
    // The bucket at shift `s` is another one where the highest differing bit is at `s` or above.
    let mut entries = [0; 64];
    let mut more = 0;
    for (entries, differing) in entries.iter_mut().rev().zip(differing.iter().rev()) {
        more += differing;
        *entries = more;
    }
    entries
}

/// What is covered up to some event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coverage {
    pub(super) covered: u64,
    pub(super) until: u64,
}

impl Coverage {
    fn add(&mut self, start: u64, end: u64) {
        self.covered += end.saturating_sub(start.max(self.until));
        self.until = self.until.max(end);
    }

    fn up_to(self, time: u64) -> u64 {
        self.covered - self.until.saturating_sub(time)
    }
}

/// An entry of the finest level, or of one above it, with what its busy time comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) bucket: u64,
    pub(super) event: EventId,
    pub(super) duration_ns: u64,
    pub(super) count: u32,
    /// What is covered up to its last event; up to its first one it is what the entry before it
    /// says.
    pub(super) after: Coverage,
}

impl Entry {
    fn add(&mut self, next: &Self) {
        if next.duration_ns > self.duration_ns {
            self.duration_ns = next.duration_ns;
            self.event = next.event;
        }
        self.count += next.count;
        self.after = next.after;
    }
}

/// The entries of the finest level of a row, strip by strip.
fn finest(spans: impl Iterator<Item = Span>, lane: &[u32], shifts: &[u8]) -> Vec<Vec<Entry>> {
    let Some(finest) = shifts.first() else {
        return Vec::new();
    };
    let mut covers = vec![Coverage::default(); index(LodLevel::LANES)];
    let mut strips = vec![Vec::<Entry>::new(); covers.len()];
    for (span, lane) in spans.zip(lane) {
        let strip = index(strips::gathered(*lane));
        let (Some(cover), Some(entries)) = (covers.get_mut(strip), strips.get_mut(strip)) else {
            continue;
        };
        cover.add(span.start, span.end());
        let entry = Entry {
            bucket: span.start >> finest,
            event: EventId::new(span.at),
            duration_ns: span.duration,
            count: 1,
            after: *cover,
        };
        match entries.last_mut() {
            Some(last) if last.bucket == entry.bucket => last.add(&entry),
            _ => entries.push(entry),
        }
    }
    strips
}

/// The levels of the strip of this row and lane, from the entries of its finest one.
pub(super) fn pyramid(strip: (u32, u32), mut entries: Vec<Entry>, shifts: &[u8]) -> Vec<LodLevel> {
    let mut levels = Vec::with_capacity(shifts.len());
    let mut below = shifts.first().copied().unwrap_or(0);
    for shift in shifts {
        let up = shift - below;
        below = *shift;
        if up > 0 {
            for entry in &mut entries {
                entry.bucket >>= up;
            }
            entries.dedup_by(|next, entry| {
                let same = next.bucket == entry.bucket;
                if same {
                    entry.add(next);
                }
                same
            });
        }
        levels.push(level(strip, *shift, &entries));
    }
    levels
}

fn level((row, lane): (u32, u32), shift: u8, entries: &[Entry]) -> LodLevel {
    let mut before = Coverage::default();
    let busy = |entry: &Entry| {
        let from = entry.bucket << shift;
        let to = from.saturating_add(1 << shift);
        entry.after.up_to(to) - std::mem::replace(&mut before, entry.after).up_to(from)
    };
    LodLevel {
        shift,
        row: vec![RowId::new(row); entries.len()],
        lane: vec![lane; entries.len()],
        bucket: entries.iter().map(|entry| entry.bucket).collect(),
        event: entries.iter().map(|entry| entry.event).collect(),
        duration_ns: entries.iter().map(|entry| entry.duration_ns).collect(),
        count: entries.iter().map(|entry| entry.count).collect(),
        busy_ns: entries.iter().map(busy).collect(),
    }
}
