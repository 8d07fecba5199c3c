//! The events of a category, row by row.

use std::ops::Range;

use super::index;

/// Positions of a category's events by row, in their order within the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowMajor {
    rows: Vec<(u32, Range<usize>)>,
    /// Empty where there is one row only: then a position is its own.
    positions: Vec<u32>,
}

impl RowMajor {
    /// Of the column `row`, whose values are below `rows`.
    pub fn new(row: &[u32], rows: u32) -> Self {
        let mut ends = vec![0_usize; index(rows)];
        for row in row {
            if let Some(count) = ends.get_mut(index(*row)) {
                *count += 1;
            }
        }
        let mut used = Vec::new();
        let mut next = 0;
        for (row, end) in (0_u32..).zip(&mut ends) {
            let first = next;
            next += *end;
            if next > first {
                used.push((row, first..next));
            }
            *end = first;
        }
        if used.len() <= 1 {
            return Self {
                rows: used,
                positions: Vec::new(),
            };
        }
        let mut positions = vec![0_u32; next];
        for (at, row) in (0_u32..).zip(row) {
            let Some(place) = ends.get_mut(index(*row)) else {
                continue;
            };
            if let Some(position) = positions.get_mut(*place) {
                *position = at;
            }
            *place += 1;
        }
        Self { rows: used, positions }
    }

    /// `values` of the category's events, row by row.
    pub fn gather(&self, values: &[u32]) -> Vec<u32> {
        let all = 0..values.len();
        self.positions(all).filter_map(|at| values.get(at)).copied().collect()
    }

    /// The other way: values that lie row by row, in the order of the events, whose rows are `row`.
    pub fn in_order(&self, row: &[u32], values: Vec<u32>) -> Vec<u32> {
        if self.positions.is_empty() {
            return values;
        }
        let rows = self.rows.last().map_or(0, |(row, _)| index(*row) + 1);
        let mut next = vec![0_usize; rows];
        for (row, range) in &self.rows {
            if let Some(next) = next.get_mut(index(*row)) {
                *next = range.start;
            }
        }
        let of_event = |row: &u32| {
            let place = next.get_mut(index(*row))?;
            *place += 1;
            values.get(*place - 1).copied()
        };
        row.iter().filter_map(of_event).collect()
    }

    /// The rows that hold events, each with where its positions are.
    pub fn rows(&self) -> &[(u32, Range<usize>)] {
        &self.rows
    }

    /// Positions in the category's columns, of a range that [`RowMajor::rows`] gave.
    pub fn positions(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let listed = self.positions.get(range.clone()).unwrap_or_default();
        let plain = if self.positions.is_empty() { range } else { 0..0 };
        listed.iter().map(|at| index(*at)).chain(plain)
    }
}
