//! The order of a category's events.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::engine::Columns;
use super::spans::{halves, whole};
use flopwatch_model::{Groups, index};

/// Sorts `columns` by start, length (the longest first) and row, stable; gives where each event
/// was, `None` when they were sorted.
///
/// What is equal in all three stays in the order of the source: of operators of one time the source
/// has the outer one first.
///
/// Events first go to their part of the time, in their order, and then each part is sorted in a
/// core's cache: a place far away in memory is written once, and never read. `memory` gets what
/// that needs, for another use.
pub(super) fn sort(columns: &mut Columns, memory: &mut Vec<u32>) -> Option<Vec<u32>> {
    if is_sorted(columns) {
        return None;
    }
    let both = |a: (u64, u64), b: (u64, u64)| (a.0.min(b.0), a.1.max(b.1));
    let starts = columns.start_ns.par_iter().map(|start| (*start, *start));
    let (min, max) = starts.reduce(|| (u64::MAX, 0), both);
    let parts = columns.start_ns.len() / PART_EVENTS;
    let part_bits = bits(u64::try_from(parts).unwrap_or(u64::MAX)).min(MAX_PART_BITS);
    let shift = bits(max - min).saturating_sub(part_bits);
    let part = |start: &u64| {
        let upper = (*start - min).checked_shr(shift).unwrap_or(0);
        usize::try_from(upper).unwrap_or(usize::MAX)
    };
    let groups = Groups::count(&columns.start_ns, 1 << part_bits, part);
    *memory = vec![0; columns.start_ns.len().saturating_mul(RECORD_WORDS)];
    let events = memory.as_chunks_mut().0;
    groups.scatter_into(events, |at, start| SortRecord::of(columns, at, *start).0);
    let ranges = groups.ranges();
    let mut order = vec![0; columns.start_ns.len()];
    let mut rest = (events, Slots::of(columns, &mut order));
    let parts: Vec<(&mut [[u32; RECORD_WORDS]], Slots<'_>)> = ranges
        .into_iter()
        .map(|range| {
            let events = rest.0.split_off_mut(..range.len()).unwrap_or_default();
            (events, rest.1.split_off(range.len()))
        })
        .collect();
    parts
        .into_par_iter()
        .for_each_init(Vec::new, |keys, (events, slots)| sort_part(keys, events, slots));
    Some(order)
}

/// Events of a part that fit into a core's cache together.
const PART_EVENTS: usize = 1 << 13;
/// More parts than this are written to slowly, as a core keeps track of so many pages only.
const MAX_PART_BITS: u32 = 10;
/// A larger part, of starts that crowd together, is work for every core.
const LARGE_PART: usize = 1 << 18;

/// Sorts the events of a part into their slots. `keys` is memory of before.
fn sort_part(keys: &mut Vec<u64>, events: &mut [[u32; RECORD_WORDS]], slots: Slots<'_>) {
    let min = events.iter().map(|event| SortRecord(*event).start()).min().unwrap_or(0);
    let max = events.iter().map(|event| SortRecord(*event).start()).max().unwrap_or(0);
    let position_bits = bits(u64::try_from(events.len()).unwrap_or(u64::MAX));
    let event = |position: u64| {
        SortRecord(
            usize::try_from(position)
                .ok()
                .and_then(|at| events.get(at))
                .copied()
                .unwrap_or_default(),
        )
    };
    if bits(max - min) + position_bits > u64::BITS {
        // Starts that lie centuries apart.
        let mut positions: Vec<u64> = (0..).zip(&*events).map(|(position, _)| position).collect();
        positions.par_sort_unstable_by_key(|position| {
            (event(*position).start(), event(*position).behind_start(), *position)
        });
        return slots.fill(positions.into_iter().map(event));
    }
    let mask = (1_u64 << position_bits) - 1;
    keys.clear();
    keys.extend(
        (0_u64..)
            .zip(&*events)
            .map(|(position, event)| ((SortRecord(*event).start() - min) << position_bits) | position),
    );
    if keys.len() > LARGE_PART {
        keys.par_sort_unstable();
    } else {
        keys.sort_unstable();
    }
    for ties in keys.chunk_by_mut(|a, b| *a >> position_bits == *b >> position_bits) {
        if ties.len() > 1 {
            ties.sort_unstable_by_key(|key| (event(*key & mask).behind_start(), *key));
        }
    }
    slots.fill(keys.iter().map(|key| event(*key & mask)));
}

/// Words of [`SortRecord`].
const RECORD_WORDS: usize = 7;

/// An event on its way to its place: the halves of its start and its length, row, name, and where
/// it was.
#[derive(Clone, Copy)]
struct SortRecord([u32; RECORD_WORDS]);

impl SortRecord {
    fn of(columns: &Columns, at: usize, start: u64) -> Self {
        let duration = columns.duration_ns.get(at).copied().unwrap_or_default();
        let [row, name] = [&columns.row, &columns.name].map(|column| column.get(at).copied().unwrap_or_default());
        let ([start, start_upper], [duration, duration_upper]) = (halves(start), halves(duration));
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        Self([start, start_upper, duration, duration_upper, row, name, at])
    }

    fn start(self) -> u64 {
        let [start, upper, ..] = self.0;
        whole(start, upper)
    }

    fn duration(self) -> u64 {
        let [_, _, duration, upper, ..] = self.0;
        whole(duration, upper)
    }

    /// What decides between events of one start, before their order in the source does.
    fn behind_start(self) -> (Reverse<u64>, u32) {
        let [.., row, _, _] = self.0;
        (Reverse(self.duration()), row)
    }
}

/// Where the events of a part go.
struct Slots<'a> {
    start: &'a mut [u64],
    duration: &'a mut [u64],
    row: &'a mut [u32],
    name: &'a mut [u32],
    order: &'a mut [u32],
}

impl<'a> Slots<'a> {
    fn of(columns: &'a mut Columns, order: &'a mut [u32]) -> Self {
        Self {
            start: &mut columns.start_ns,
            duration: &mut columns.duration_ns,
            row: &mut columns.row,
            name: &mut columns.name,
            order,
        }
    }

    /// The first of them, which leave it.
    fn split_off(&mut self, count: usize) -> Self {
        Self {
            start: self.start.split_off_mut(..count).unwrap_or_default(),
            duration: self.duration.split_off_mut(..count).unwrap_or_default(),
            row: self.row.split_off_mut(..count).unwrap_or_default(),
            name: self.name.split_off_mut(..count).unwrap_or_default(),
            order: self.order.split_off_mut(..count).unwrap_or_default(),
        }
    }

    fn fill(self, events: impl Iterator<Item = SortRecord>) {
        let times = self.start.iter_mut().zip(self.duration);
        let others = self.row.iter_mut().zip(self.name).zip(self.order);
        for (((start, duration), ((row, name), order)), event) in times.zip(others).zip(events) {
            (*start, *duration) = (event.start(), event.duration());
            [.., *row, *name, *order] = event.0;
        }
    }
}

/// Events that a core takes at a time, at least.
pub(super) const MIN_PIECE_EVENTS: usize = 1 << 14;

/// Brings the value at `order[i]` to `i`.
pub(super) fn gather<T: Copy + Default + PartialEq + Send + Sync>(values: &mut Vec<T>, order: &[u32]) {
    // Many columns hold one value.
    if values.par_windows(2).all(|pair| pair.first() == pair.last()) {
        return;
    }
    *values = order
        .par_iter()
        .with_min_len(MIN_PIECE_EVENTS)
        .map(|at| values.get(index(*at)).copied().unwrap_or_default())
        .collect();
}

fn is_sorted(columns: &Columns) -> bool {
    let lengths = columns.duration_ns.iter().map(|duration| Reverse(*duration));
    columns.start_ns.iter().zip(lengths).zip(&columns.row).is_sorted()
}

/// Number of significant bits.
fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
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
        assert_eq!(sort(&mut columns(&[]), &mut Vec::new()), None);
        assert_eq!(
            sort(
                &mut columns(&[(1, 9, 0, 0), (1, 5, 0, 4), (1, 5, 0, 3), (1, 5, 1, 0), (2, 0, 0, 0)]),
                &mut Vec::new()
            ),
            None
        );
    }

    #[test]
    fn ties_are_settled_by_length_then_row_then_place_and_never_by_name() {
        let all = [
            (5, 1, 1, 1),
            (5, 2, 9, 9),
            (5, 1, 1, 0),
            (5, 1, 0, 7),
            (5, 1, 1, 0),
            (0, 0, 0, 0),
        ];
        let mut sorted = columns(&all);
        assert_eq!(sort(&mut sorted, &mut Vec::new()), Some(vec![5, 1, 3, 0, 2, 4]));
        assert_eq!(sorted.name, [0, 9, 7, 1, 0, 0]);
    }

    #[test]
    fn starts_over_the_whole_range_sort_too() {
        let all = [(u64::MAX, 0, 0, 0), (0, 0, 0, 0), (u64::MAX - 1, 0, 0, 0), (0, 1, 0, 0)];
        let mut sorted = columns(&all);
        assert_eq!(sort(&mut sorted, &mut Vec::new()), Some(vec![3, 1, 2, 0]));
        assert_eq!(sorted.start_ns, [0, 0, u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn many_starts_sort_as_few_do_also_where_they_crowd_together() {
        for spread in [1_u64, 1000, 1 << 40] {
            let count = u64::try_from(6 * PART_EVENTS).unwrap();
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
            let order = sort(&mut sorted, &mut Vec::new()).unwrap();
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
