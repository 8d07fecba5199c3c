//! The events of a category, row by row.

use std::ops::Range;

use crate::model::index;

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
