//! The order of a category's events.

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;

use super::engine::Columns;
use crate::model::index;

/// Sorts `columns` by start, length (the longest first), row and name, stable; gives where each event was, `None` when they were
/// sorted.
pub fn sort(columns: &mut Columns) -> Option<Vec<u32>> {
    let count = columns.start_ns.len();
    if is_sorted(columns) {
        return None;
    }
    let least = columns.start_ns.par_iter().copied().min().unwrap_or(0);
    let most = columns.start_ns.par_iter().copied().max().unwrap_or(0);
    let index_bits = bits(u64::try_from(count).unwrap_or(u64::MAX));
    let starts = std::mem::take(&mut columns.start_ns);
    let (mut order, ties) = if bits(most - least) + index_bits <= 64 {
        let mut keys = packed(&starts, least, bits(most - least), index_bits);
        drop(starts);
        let ties = runs(&keys, |a, b| a >> index_bits == b >> index_bits);
        let mask = (1_u64 << index_bits) - 1;
        let order: Vec<u32> = keys
            .par_iter()
            .map(|key| u32::try_from(key & mask).unwrap_or(u32::MAX))
            .collect();
        // What is left of a key is its start.
        keys.par_iter_mut().for_each(|key| *key = least + (*key >> index_bits));
        columns.start_ns = keys;
        (order, ties)
    } else {
        let keys = paired(&starts);
        columns.start_ns = keys.iter().map(|(start, _)| *start).collect();
        let ties = runs(&keys, |a, b| a.0 == b.0);
        (keys.iter().map(|(_, at)| *at).collect(), ties)
    };
    for run in ties {
        if let Some(run) = order.get_mut(run) {
            run.sort_unstable_by_key(|at| (behind_start(columns, *at), *at));
        }
    }
    gather_together(columns, &order);
    Some(order)
}

/// Events of a piece of work.
const PIECE: usize = 1 << 14;

/// Sorts the other columns by `order`, an event at a time: a place far away in memory is looked up once, not once per column.
fn gather_together(columns: &mut Columns, order: &[u32]) {
    let durations = columns.duration_ns.par_iter().with_min_len(PIECE);
    let others = columns.row.par_iter().zip(&columns.name);
    let events: Vec<(u64, u32, u32)> = durations
        .zip(others)
        .map(|(duration, (row, name))| (*duration, *row, *name))
        .collect();
    let durations = columns.duration_ns.par_chunks_mut(PIECE);
    let others = columns
        .row
        .par_chunks_mut(PIECE)
        .zip(columns.name.par_chunks_mut(PIECE));
    durations
        .zip(others)
        .zip(order.par_chunks(PIECE))
        .for_each(|((durations, (rows, names)), order)| {
            let slots = durations.iter_mut().zip(rows).zip(names);
            for (((duration, row), name), at) in slots.zip(order) {
                (*duration, *row, *name) = events.get(index(*at)).copied().unwrap_or_default();
            }
        });
}

/// Brings the value at `order[i]` to `i`.
pub(super) fn gather<T: Copy + Default + PartialEq + Send + Sync>(values: &mut Vec<T>, order: &[u32]) {
    // Many columns hold one value.
    if values.windows(2).all(|pair| pair.first() == pair.last()) {
        return;
    }
    *values = order
        .par_iter()
        .with_min_len(PIECE)
        .map(|at| values.get(index(*at)).copied().unwrap_or_default())
        .collect();
}

fn behind_start(columns: &Columns, at: u32) -> (Reverse<Option<u64>>, Option<u32>, Option<u32>) {
    let at = index(at);
    (
        Reverse(columns.duration_ns.get(at).copied()),
        columns.row.get(at).copied(),
        columns.name.get(at).copied(),
    )
}

fn is_sorted(columns: &Columns) -> bool {
    let lengths = columns.duration_ns.iter().map(|duration| Reverse(*duration));
    columns
        .start_ns
        .iter()
        .zip(lengths)
        .zip(columns.row.iter().zip(&columns.name))
        .is_sorted()
}

/// Number of significant bits.
fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Fewer keys are sorted as they are.
const LEAST_PARTED: usize = 1 << 14;
/// How many of the upper bits tell the parts of many keys apart: a part of ten million keys fits into a core's cache.
const PART_BITS: u32 = 10;
/// A larger part, of starts that crowd together, is work for every core.
const LARGE_PART: usize = 1 << 18;

/// Start (from `least` on, of `span_bits` bits) and position in one word, sorted: what any real capture allows, and sorts fastest.
fn packed(starts: &[u64], least: u64, span_bits: u32, index_bits: u32) -> Vec<u64> {
    let key = |at: u64, start: &u64| ((start - least) << index_bits) | at;
    if starts.len() < LEAST_PARTED {
        let mut keys: Vec<u64> = (0..).zip(starts).map(|(at, start)| key(at, start)).collect();
        keys.sort_unstable();
        return keys;
    }
    let shift = span_bits.saturating_sub(PART_BITS);
    let part = |start: &u64| usize::try_from((start - least) >> shift).unwrap_or(usize::MAX);
    let mut places = vec![0_usize; 1 << PART_BITS];
    for start in starts {
        if let Some(count) = places.get_mut(part(start)) {
            *count += 1;
        }
    }
    let mut next = 0;
    for place in &mut places {
        let first = next;
        next += *place;
        *place = first;
    }
    let mut keys = vec![0_u64; starts.len()];
    for (at, start) in (0..).zip(starts) {
        let Some(place) = places.get_mut(part(start)) else {
            continue;
        };
        if let Some(slot) = keys.get_mut(*place) {
            *slot = key(at, start);
        }
        *place += 1;
    }
    // Each place is the end of its part now.
    let mut parts = Vec::with_capacity(places.len());
    let (mut rest, mut from) = (&mut keys[..], 0);
    for end in places {
        let (part, behind) = rest.split_at_mut(end.saturating_sub(from).min(rest.len()));
        parts.push(part);
        rest = behind;
        from = end;
    }
    parts.into_par_iter().for_each(|part| {
        if part.len() > LARGE_PART {
            part.par_sort_unstable();
        } else {
            part.sort_unstable();
        }
    });
    keys
}

/// Pairs starts with positions, whatever the starts are.
fn paired(starts: &[u64]) -> Vec<(u64, u32)> {
    let mut keys: Vec<(u64, u32)> = starts.iter().copied().zip(0_u32..).collect();
    keys.par_sort_unstable();
    keys
}

/// Where neighbours are the same: the ranges of at least two.
pub(super) fn runs<T>(items: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut runs = Vec::new();
    for group in items.chunk_by(same) {
        if group.len() > 1 {
            runs.push(start..start + group.len());
        }
        start += group.len();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(rows: &[(u64, u64, u32, u32)]) -> Columns {
        Columns {
            start_ns: rows.iter().map(|row| row.0).collect(),
            duration_ns: rows.iter().map(|row| row.1).collect(),
            row: rows.iter().map(|row| row.2).collect(),
            name: rows.iter().map(|row| row.3).collect(),
            names: 10,
        }
    }

    #[test]
    fn what_is_sorted_needs_no_order() {
        assert_eq!(sort(&mut columns(&[])), None);
        assert_eq!(
            sort(&mut columns(&[(1, 9, 0, 0), (1, 5, 0, 0), (1, 5, 1, 0), (2, 0, 0, 0)])),
            None
        );
    }

    #[test]
    fn ties_are_settled_by_length_then_row_then_name_then_place() {
        let all = [
            (5, 1, 1, 1),
            (5, 2, 9, 9),
            (5, 1, 1, 0),
            (5, 1, 0, 7),
            (5, 1, 1, 0),
            (0, 0, 0, 0),
        ];
        assert_eq!(sort(&mut columns(&all)), Some(vec![5, 1, 3, 2, 4, 0]));
    }

    #[test]
    fn starts_over_the_whole_range_sort_too() {
        let all = [(u64::MAX, 0, 0, 0), (0, 0, 0, 0), (u64::MAX - 1, 0, 0, 0), (0, 1, 0, 0)];
        let mut sorted = columns(&all);
        assert_eq!(sort(&mut sorted), Some(vec![3, 1, 2, 0]));
        assert_eq!(sorted.start_ns, [0, 0, u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn many_starts_sort_as_few_do_also_where_they_crowd_together() {
        for spread in [1_u64, 1000, 1 << 40] {
            let count = u64::try_from(3 * LEAST_PARTED).unwrap();
            // One far start puts all others into one part.
            let start = |at: u64| {
                if at == 7 {
                    u64::from(u32::MAX) << 8
                } else {
                    (at * 48_271) % 65_537 * spread
                }
            };
            let all: Vec<_> = (0..count).map(|at| (start(at), at % 3, 0, 0)).collect();
            let mut expected: Vec<usize> = (0..all.len()).collect();
            expected.sort_by_key(|at| (all[*at].0, Reverse(all[*at].1)));
            let mut sorted = columns(&all);
            let order = sort(&mut sorted).unwrap();
            assert!(
                order.iter().map(|at| index(*at)).eq(expected.iter().copied()),
                "{spread}"
            );
            assert!(
                sorted.start_ns.iter().copied().eq(expected.iter().map(|at| all[*at].0)),
                "{spread}"
            );
        }
    }
}
