//! The order of a category's events.

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;

use super::engine::Columns;
use crate::model::index;

/// The permutation that sorts `columns` by start, length (the longest first), row and name, stable; `None` when they are sorted.
pub fn order(columns: &Columns) -> Option<Vec<u32>> {
    let count = columns.start_ns.len();
    if is_sorted(columns) {
        return None;
    }
    let least = columns.start_ns.par_iter().copied().min().unwrap_or(0);
    let most = columns.start_ns.par_iter().copied().max().unwrap_or(0);
    let index_bits = bits(u64::try_from(count).unwrap_or(u64::MAX));
    let (mut order, ties) = if bits(most - least) + index_bits <= 64 {
        packed(&columns.start_ns, least, index_bits)
    } else {
        paired(&columns.start_ns)
    };
    for run in ties {
        if let Some(run) = order.get_mut(run) {
            run.sort_unstable_by_key(|at| (behind_start(columns, *at), *at));
        }
    }
    Some(order)
}

/// Sorts every column by `order`.
pub(super) fn apply(columns: &mut Columns, order: &[u32]) {
    gather(&mut columns.start_ns, order);
    gather(&mut columns.duration_ns, order);
    gather(&mut columns.row, order);
    gather(&mut columns.name, order);
}

/// Brings the value at `order[i]` to `i`.
pub(super) fn gather<T: Copy + Default + Send + Sync>(values: &mut Vec<T>, order: &[u32]) {
    *values = order
        .par_iter()
        .with_min_len(1 << 14)
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

/// Significant bits.
fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Start and position in one word, which sorts fastest: what any real capture allows.
fn packed(starts: &[u64], least: u64, index_bits: u32) -> (Vec<u32>, Vec<Range<usize>>) {
    let mut keys: Vec<u64> = starts
        .par_iter()
        .enumerate()
        .map(|(at, start)| ((start - least) << index_bits) | u64::try_from(at).unwrap_or(0))
        .collect();
    keys.par_sort_unstable();
    let ties = runs(&keys, |a, b| a >> index_bits == b >> index_bits);
    let mask = (1_u64 << index_bits) - 1;
    let order = keys
        .par_iter()
        .map(|key| u32::try_from(key & mask).unwrap_or(u32::MAX))
        .collect();
    (order, ties)
}

/// Any starts.
fn paired(starts: &[u64]) -> (Vec<u32>, Vec<Range<usize>>) {
    let mut keys: Vec<(u64, u32)> = starts.iter().copied().zip(0_u32..).collect();
    keys.par_sort_unstable();
    let ties = runs(&keys, |a, b| a.0 == b.0);
    (keys.iter().map(|(_, at)| *at).collect(), ties)
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
        assert_eq!(order(&columns(&[])), None);
        assert_eq!(
            order(&columns(&[(1, 9, 0, 0), (1, 5, 0, 0), (1, 5, 1, 0), (2, 0, 0, 0)])),
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
        assert_eq!(order(&columns(&all)), Some(vec![5, 1, 3, 2, 4, 0]));
    }

    #[test]
    fn starts_over_the_whole_range_sort_too() {
        let all = [(u64::MAX, 0, 0, 0), (0, 0, 0, 0), (u64::MAX - 1, 0, 0, 0), (0, 1, 0, 0)];
        assert_eq!(order(&columns(&all)), Some(vec![3, 1, 2, 0]));
    }
}
