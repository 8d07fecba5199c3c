//! The events of a category, row by row.

use std::ops::Range;

use super::{Groups, index};

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
        let groups = Groups::count(row, index(rows), |row| index(*row));
        let ranges = (0_u32..).zip(groups.ranges());
        let rows: Vec<(u32, Range<usize>)> = ranges.filter(|(_, range)| !range.is_empty()).collect();
        let positions = if rows.len() <= 1 {
            Vec::new()
        } else {
            groups.scatter(|at, _| u32::try_from(at).unwrap_or(u32::MAX))
        };
        Self { rows, positions }
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
