//! The tables of a fleet.

use crate::column::Column;

/// Version of the columns. One that is added raises it, and readers of this version refuse files of
/// another.
pub const SCHEMA_VERSION: i64 = 1;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// [`crate::CaptureRow`]s.
    Captures,
    /// [`crate::Row`]s.
    Rows,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 2] = [Self::Captures, Self::Rows];

    /// Name of the table in paths and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Captures => "captures",
            Self::Rows => "rows",
        }
    }
}

/// What a table has records of.
pub(crate) trait Record: Default + Clone + 'static {
    /// Table of the record.
    const TABLE: Table;

    /// Columns of the record in the order of files.
    fn columns() -> Vec<Column<Self>>;

    /// What makes no sense about the record.
    fn fault(&self) -> Option<&'static str>;
}

/// The schema of a table's files.
pub(crate) fn schema<T: Record>() -> String {
    let columns: Vec<String> = T::columns().iter().map(Column::schema).collect();
    format!("message {} {{ {} }}", T::TABLE.as_str(), columns.join(" "))
}

/// The columns of those fields, by their names.
macro_rules! columns {
    ($($field:ident),* $(,)?) => {
        vec![$($crate::column::Column::new(stringify!($field), |record: &Self| &record.$field, |record| &mut record.$field)),*]
    };
}
pub(crate) use columns;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaptureRow, Row};

    #[test]
    fn the_document_has_every_column() {
        let document = include_str!("../../docs/fleet.md");
        let captures = CaptureRow::columns().into_iter().map(|column| column.name);
        for name in captures.chain(Row::columns().into_iter().map(|column| column.name)) {
            assert!(document.contains(&format!("`{name}`")), "docs/fleet.md lacks {name}");
        }
    }
}
