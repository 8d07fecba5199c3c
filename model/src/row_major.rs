//! The events of a category, row by row.

use std::ops::Range;

use super::{Groups, RowId, index};

/// Positions of a category's events by row, in their order within the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowMajor {
    rows: Vec<(RowId, Range<usize>)>,
    /// Empty where there is one row only: then a position is its own.
    positions: Vec<u32>,
}

impl RowMajor {
    /// Of the column `row`, whose values are below `rows`.
    pub fn new(row: &[RowId], rows: usize) -> Self {
        let groups = Groups::count(row, rows, |row| row.index());
        let ranges = RowId::all().zip(groups.ranges());
        let rows: Vec<(RowId, Range<usize>)> = ranges.filter(|(_, range)| !range.is_empty()).collect();
        let positions = if rows.len() <= 1 {
            Vec::new()
        } else {
            groups.scatter(|at, _| u32::try_from(at).unwrap_or(u32::MAX))
        };
        Self { rows, positions }
    }

    /// The rows that hold events, each with where its positions are.
    pub fn rows(&self) -> &[(RowId, Range<usize>)] {
        &self.rows
    }

    /// Positions in the category's columns, of a range that [`RowMajor::rows`] gave.
    pub fn positions(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let listed = self.positions.get(range.clone()).unwrap_or_default();
        let plain = if self.positions.is_empty() { range } else { 0..0 };
        listed.iter().map(|at| index(*at)).chain(plain)
    }
}
