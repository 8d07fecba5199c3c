//! Levels of detail: per row and bucket of time the longest event, how many start there and how long the row is busy.
//!
//! # The rule
//!
//! A level of shift `s` has an entry per row and value of `start_ns >> s` that occurs in the row. The finest level is the one of
//! the least `s` with at most N / 8 entries; from there every second `s` follows, up to and including the first one that has
//! a single entry per row. A category of fewer than 4,096 events, or one where no `s` below 64 has so few entries, has no levels.
//!
//! An entry's busy time is |U ∩ bucket|, where U is the union of all intervals of the row in this category. With the events of
//! the row in order, let `covered(i)` be the length of the union of the first `i` and `until(i)` their latest end. Up to a time
//! `t` that none of the events behind the first `i` precedes, `covered(i) - max(0, until(i) - t)` of it is covered: the
//! difference of two such terms, and so constant work per entry at every level.

use rayon::prelude::*;

use super::engine::Columns;
use super::rows::RowMajor;
use crate::model::{Lod, LodLevel};

/// Fewer events are drawn as they are.
const LEAST_EVENTS: usize = 4096;
/// The finest level has at most one entry for so many events.
const EVENTS_PER_ENTRY: usize = 8;
/// Buckets grow by 2^2 from level to level.
const STEP: usize = 2;

/// The levels of sorted `columns`.
pub fn lod(columns: &Columns, by_row: &RowMajor) -> Lod {
    let count = columns.start_ns.len();
    if count < LEAST_EVENTS {
        return Lod::default();
    }
    let shifts = shifts(count, by_row.rows().len(), &differing(columns, by_row));
    let of_rows = by_row.rows().par_iter().map(|(row, range)| {
        let positions = by_row.positions(range.clone());
        pyramid(*row, finest(columns, positions, &shifts), &shifts)
    });
    together(&shifts, of_rows.collect())
}

/// The shifts of the levels of `count` events on `rows` rows, the finest first. `differing` counts the events whose start differs
/// in so many low bits from that of the event before in their row; the first event of each row counts as 64.
pub(super) fn shifts(count: usize, rows: usize, differing: &[usize; 65]) -> Vec<u8> {
    if count < LEAST_EVENTS {
        return Vec::new();
    }
    let entries = entries_by_shift(differing);
    let Some(finest) = entries.iter().position(|entries| entries * EVENTS_PER_ENTRY <= count) else {
        return Vec::new();
    };
    let shifts: Vec<usize> = (finest..entries.len()).step_by(STEP).collect();
    // The first level that has one entry per row is the last.
    let needed = shifts
        .iter()
        .take_while(|shift| entries.get(**shift).is_some_and(|entries| *entries > rows));
    let needed = needed.count() + 1;
    let shifts = shifts.into_iter().take(needed);
    shifts.filter_map(|shift| u8::try_from(shift).ok()).collect()
}

/// The levels of all rows, in the order of the rows.
pub(super) fn together(shifts: &[u8], of_rows: Vec<Vec<LodLevel>>) -> Lod {
    let mut levels: Vec<LodLevel> = shifts
        .iter()
        .map(|shift| LodLevel {
            shift: *shift,
            ..LodLevel::default()
        })
        .collect();
    for of_row in of_rows {
        for (level, of_row) in levels.iter_mut().zip(of_row) {
            level.row.extend(of_row.row);
            level.bucket.extend(of_row.bucket);
            level.event.extend(of_row.event);
            level.duration_ns.extend(of_row.duration_ns);
            level.count.extend(of_row.count);
            level.busy_ns.extend(of_row.busy_ns);
        }
    }
    Lod { levels }
}

/// How many events differ in how many low bits from the event before in their row.
fn differing(columns: &Columns, by_row: &RowMajor) -> [usize; 65] {
    let of_rows = by_row.rows().par_iter().map(|(_, range)| {
        let mut differing = [0_usize; 65];
        let mut before = None;
        for start in by_row
            .positions(range.clone())
            .filter_map(|at| columns.start_ns.get(at))
        {
            let bits = before.map_or(64, |before: u64| 64 - (before ^ start).leading_zeros());
            if let Some(count) = usize::try_from(bits).ok().and_then(|bits| differing.get_mut(bits)) {
                *count += 1;
            }
            before = Some(*start);
        }
        differing
    });
    of_rows.reduce(
        || [0; 65],
        |mut all, row| {
            for (all, row) in all.iter_mut().zip(row) {
                *all += row;
            }
            all
        },
    )
}

/// How many entries the level of each shift would have: two neighbours of a row share a bucket when they differ in lower bits
/// only.
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
pub(super) struct Cover {
    pub(super) covered: u64,
    pub(super) until: u64,
}

impl Cover {
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
    pub(super) event: u32,
    pub(super) duration_ns: u64,
    pub(super) count: u32,
    pub(super) before: Cover,
    pub(super) after: Cover,
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

/// The entries of a row's finest level.
fn finest(columns: &Columns, positions: impl Iterator<Item = usize>, shifts: &[u8]) -> Vec<Entry> {
    let Some(finest) = shifts.first() else {
        return Vec::new();
    };
    let mut cover = Cover::default();
    let mut entries: Vec<Entry> = Vec::new();
    for at in positions {
        let (Some(start), Some(duration)) = (columns.start_ns.get(at), columns.duration_ns.get(at)) else {
            continue;
        };
        let before = cover;
        cover.add(*start, start.saturating_add(*duration));
        let entry = Entry {
            bucket: start >> finest,
            event: u32::try_from(at).unwrap_or(u32::MAX),
            duration_ns: *duration,
            count: 1,
            before,
            after: cover,
        };
        match entries.last_mut() {
            Some(last) if last.bucket == entry.bucket => last.add(&entry),
            _ => entries.push(entry),
        }
    }
    entries
}

/// A row's levels, from the entries of its finest one.
pub(super) fn pyramid(row: u32, mut entries: Vec<Entry>, shifts: &[u8]) -> Vec<LodLevel> {
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
        levels.push(level(row, *shift, &entries));
    }
    levels
}

fn level(row: u32, shift: u8, entries: &[Entry]) -> LodLevel {
    let busy = |entry: &Entry| {
        let from = entry.bucket << shift;
        let to = from.saturating_add(1 << shift);
        entry.after.up_to(to) - entry.before.up_to(from)
    };
    LodLevel {
        shift,
        row: vec![row; entries.len()],
        bucket: entries.iter().map(|entry| entry.bucket).collect(),
        event: entries.iter().map(|entry| entry.event).collect(),
        duration_ns: entries.iter().map(|entry| entry.duration_ns).collect(),
        count: entries.iter().map(|entry| entry.count).collect(),
        busy_ns: entries.iter().map(busy).collect(),
    }
}
