//! The tables of an export, whichever container it came in. Both give the same values: what is NULL in SQLite is 0 or an
//! empty string in HDF5.

use std::ops::Range;

use hdf5::{File, LinkType};

use crate::hdf5_io::{self, Number, Open, TableError, TableLimits};
use crate::sqlite_io::{self, Cell, Database};

/// Tables of a file that are looked at, those of kinds that this version does not show included. nsys has 180.
const MOST_TABLES: usize = 4096;

/// An open export.
pub(crate) enum Tables {
    /// `nsys export --type hdf`.
    Hdf(File),
    /// `nsys export --type sqlite`.
    Sqlite(Database),
}

impl Tables {
    /// A table; `None` when there is none.
    pub(super) fn open(&self, name: &str, limits: TableLimits) -> Result<Option<Table>, TableError> {
        match self {
            Self::Hdf(file) => Ok(hdf5_io::Table::open(file, name, Open::Compound, limits)?.map(Table::Hdf)),
            Self::Sqlite(database) => Ok(database.table(name, limits)?.map(Table::Sqlite)),
        }
    }

    /// Names of what may be tables; none where the file does not give them.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Hdf(file) => {
                let mut names = Vec::new();
                let visited = file.iter_visit_default(|name, link| {
                    if link.link_type == LinkType::Hard && names.len() < MOST_TABLES {
                        names.push(name.to_owned());
                    }
                    Ok(())
                });
                visited.map(|()| names).unwrap_or_default()
            }
            Self::Sqlite(database) => database.names(MOST_TABLES).unwrap_or_default(),
        }
    }
}

/// An open table.
pub(super) enum Table {
    Hdf(hdf5_io::Table),
    Sqlite(sqlite_io::Table),
}

impl Table {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Hdf(table) => table.name(),
            Self::Sqlite(table) => table.name(),
        }
    }

    /// How many rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Hdf(table) => table.rows(),
            Self::Sqlite(table) => table.rows(),
        }
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        match self {
            Self::Hdf(table) => table.has(column),
            Self::Sqlite(table) => table.has(column),
        }
    }

    /// The rows in pieces of bounded size, to be read in this order.
    pub(super) fn slabs(&self) -> Box<dyn Iterator<Item = Range<usize>>> {
        match self {
            Self::Hdf(table) => Box::new(table.slabs()),
            Self::Sqlite(table) => Box::new(table.slabs()),
        }
    }

    /// Numbers of a column that must be there.
    pub(super) fn required<T: Number + Cell>(
        &self,
        column: &'static str,
        rows: &Range<usize>,
    ) -> Result<Vec<T>, TableError> {
        if let Self::Hdf(table) = self {
            return table.required(column, rows);
        }
        self.must_have(column)?;
        self.optional(column, rows)
    }

    /// Numbers of a column that some schemas lack; zeros then.
    pub(super) fn optional<T: Number + Cell>(&self, column: &str, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        match self {
            Self::Hdf(table) => table.optional(column, rows),
            Self::Sqlite(table) if table.has(column) => table.numbers(column, rows),
            Self::Sqlite(_) => Ok(vec![T::default(); rows.len()]),
        }
    }

    /// The same for `globalPid` and `globalTid`, which use all 64 bits.
    pub(super) fn optional_ids(&self, column: &str, rows: &Range<usize>) -> Result<Vec<u64>, TableError> {
        match self {
            Self::Sqlite(table) if table.has(column) => table.bits(column, rows),
            _ => self.optional(column, rows),
        }
    }

    /// The same for a column that must be there.
    pub(super) fn required_ids(&self, column: &'static str, rows: &Range<usize>) -> Result<Vec<u64>, TableError> {
        self.must_have(column)?;
        self.optional_ids(column, rows)
    }

    /// Strings of a column; empty ones where the schema lacks it.
    pub(super) fn strings(&self, column: &str, rows: &Range<usize>) -> Result<Vec<String>, TableError> {
        match self {
            Self::Hdf(table) => table.strings(column, rows),
            Self::Sqlite(table) if table.has(column) => table.strings(column, rows),
            Self::Sqlite(_) => Ok(vec![String::new(); rows.len()]),
        }
    }

    fn must_have(&self, column: &'static str) -> Result<(), TableError> {
        if self.has(column) {
            return Ok(());
        }
        Err(TableError::MissingColumn {
            table: self.name().to_owned(),
            column,
        })
    }
}
