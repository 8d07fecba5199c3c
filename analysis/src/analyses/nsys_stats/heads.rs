//! The heads of a table as nsys's CSV has them.

use flopwatch_report::page::{Cell, Table, TableColumn};

use super::rounding::tenths;

/// A column: its head, and the digits behind the point of its numbers.
pub(super) type Head = (&'static str, Option<u8>);

/// A column of integers or texts.
pub(super) const fn plain(title: &'static str) -> Head {
    (title, None)
}

/// A column of numbers with one digit behind the point.
pub(super) const fn tenth(title: &'static str) -> Head {
    (title, Some(1))
}

/// A column of megabytes, which have three.
pub(super) const fn thousandth(title: &'static str) -> Head {
    (title, Some(3))
}

/// A table without rows, of which `left_out` do not fit. The heads name the units, so that cells are shown as they are.
pub(super) fn table(heads: &[Head], left_out: u64) -> Table {
    let column = |(title, decimals): &Head| TableColumn {
        title: (*title).to_owned(),
        decimals: *decimals,
        ..TableColumn::default()
    };
    Table {
        columns: heads.iter().map(column).collect(),
        left_out,
        ..Table::default()
    }
}

/// Says what a column of `table` holds.
pub(super) fn describe(table: &mut Table, title: &str, about: &str) {
    if let Some(column) = table.columns.iter_mut().find(|column| column.title == title) {
        about.clone_into(&mut column.about);
    }
}

/// A number with one digit.
pub(super) fn rounded(value: f64) -> Cell {
    tenths(value).into()
}

/// Dimensions as nsys writes them: `512  256    1`, each in four places.
pub(super) fn dimensions([x, y, z]: [u32; 3]) -> Cell {
    format!("{x:4} {y:4} {z:4}").into()
}
