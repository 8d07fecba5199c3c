//! The tables of an export, whichever container it came in, or of a report. All give the same
//! values: what is NULL in SQLite is 0 or an empty string in HDF5, and an absent field in a report.

use std::ops::Range;

use hdf5::{File, LinkType};

use super::chains::Chains;
use super::{Failure, report};
use crate::hdf5_io::{self, Number, StorageLayout, TableError, TableLimits};
#[cfg(feature = "sqlite")]
use crate::sqlite_io::{self, Cell, Database};

/// A value of a column, in every container that is built in.
#[cfg(feature = "sqlite")]
pub(super) trait Value: Number + Cell {}
#[cfg(feature = "sqlite")]
impl<T: Number + Cell> Value for T {}
/// A value of a column, in every container that is built in.
#[cfg(not(feature = "sqlite"))]
pub(super) trait Value: Number {}
#[cfg(not(feature = "sqlite"))]
impl<T: Number> Value for T {}

/// Tables of a file that are looked at, those of kinds that this version does not show included.
/// nsys has 180.
const MAX_TABLES: usize = 4096;

/// An open export, or a report that was read.
pub(crate) enum Tables {
    /// A report as it lies on the disk.
    Report(report::Report),
    /// `nsys export --type hdf`.
    Hdf(File),
    /// `nsys export --type sqlite`.
    #[cfg(feature = "sqlite")]
    Sqlite(Database),
}

impl Tables {
    /// A table; `None` when there is none.
    pub(super) fn open(&self, name: &str, limits: TableLimits) -> Result<Option<Table>, TableError> {
        match self {
            Self::Report(report) => Ok(report.table(name).map(Table::Report)),
            Self::Hdf(file) => Ok(hdf5_io::Table::open(file, name, StorageLayout::Compound, limits)?.map(Table::Hdf)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(database) => Ok(database.table(name, limits)?.map(Table::Sqlite)),
        }
    }

    /// The stacks of samples, where they lie apart from the tables: a column `stack` of the samples
    /// has their numbers. They are given out once.
    pub(super) fn chains(&self) -> Option<Chains> {
        match self {
            Self::Report(report) => Some(report.chains()),
            Self::Hdf(_) => None,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => None,
        }
    }

    /// Names of what may be tables; none where the file does not give them.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Report(report) => report.names(),
            Self::Hdf(file) => {
                let mut names = Vec::new();
                let visited = file.iter_visit_default(|name, link| {
                    if link.link_type == LinkType::Hard && names.len() < MAX_TABLES {
                        names.push(name.to_owned());
                    }
                    Ok(())
                });
                visited.map(|()| names).unwrap_or_default()
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(database) => database.names(MAX_TABLES).unwrap_or_default(),
        }
    }
}

/// An open table.
pub(super) enum Table {
    Report(report::Table),
    Hdf(hdf5_io::Table),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite_io::Table),
}

impl Table {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Report(table) => table.name(),
            Self::Hdf(table) => table.name(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) => table.name(),
        }
    }

    /// How many rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Report(table) => table.rows(),
            Self::Hdf(table) => table.rows(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) => table.rows(),
        }
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        match self {
            Self::Report(table) => table.has(column),
            Self::Hdf(table) => table.has(column),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) => table.has(column),
        }
    }

    /// Tells which columns of numbers and of strings will be read of each piece, where there are
    /// such.
    pub(super) fn expect(&self, numbers: &[&str], texts: &[&str]) {
        match self {
            // Columns lie by themselves.
            Self::Report(_) | Self::Hdf(_) => {}
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) => table.expect(numbers, texts),
        }
    }

    /// The rows in pieces of bounded size, to be read in this order.
    pub(super) fn slabs(&self) -> Box<dyn Iterator<Item = Range<usize>>> {
        match self {
            Self::Report(table) => Box::new(table.slabs()),
            Self::Hdf(table) => Box::new(table.slabs()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) => Box::new(table.slabs()),
        }
    }

    /// Numbers of a column that must be there.
    pub(super) fn required<T: Value>(&self, column: &'static str, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        if let Self::Hdf(table) = self {
            return table.required(column, rows);
        }
        self.must_have(column)?;
        self.optional(column, rows)
    }

    /// Numbers of a column that some schemas lack; zeros then.
    pub(super) fn optional<T: Value>(&self, column: &str, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        match self {
            Self::Report(table) => {
                let mut out = vec![T::default(); rows.len()];
                table.piece(rows).read(column, &mut out);
                Ok(out)
            }
            Self::Hdf(table) => table.optional(column, rows),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) if table.has(column) => table.numbers(column, rows),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Ok(vec![T::default(); rows.len()]),
        }
    }

    /// The same for `globalPid` and `globalTid`, which use all 64 bits.
    pub(super) fn optional_ids(&self, column: &str, rows: &Range<usize>) -> Result<Vec<u64>, TableError> {
        match self {
            Self::Report(table) => {
                let mut out = vec![0; rows.len()];
                table.piece(rows).read_ids(column, &mut out);
                Ok(out)
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) if table.has(column) => table.bits(column, rows),
            _ => self.optional(column, rows),
        }
    }

    /// Strings of a column; empty ones where the schema lacks it.
    pub(super) fn strings(&self, column: &str, rows: &Range<usize>) -> Result<Vec<String>, TableError> {
        match self {
            Self::Report(table) => Ok(table.strings(column, rows)),
            Self::Hdf(table) => table.strings(column, rows),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) if table.has(column) => table.strings(column, rows),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Ok(vec![String::new(); rows.len()]),
        }
    }

    /// Rows of each piece but for the last one.
    pub(super) fn piece_rows(&self) -> usize {
        match self {
            Self::Report(_) => report::Table::piece_rows(),
            Self::Hdf(table) => table.piece_rows(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => sqlite_io::Table::slab_rows(),
        }
    }

    /// Does `job` with each piece and its item, from piece `first` on, on every core where the
    /// container allows it; `state` is made once per core. Gives what it made of each piece in
    /// their order, or the first error.
    pub(super) fn for_each_piece<S: Send, I: Send, R: Send>(
        &self,
        first: usize,
        items: Vec<I>,
        state: impl Fn(usize) -> S + Sync,
        job: impl Fn(&mut S, &mut Piece<'_, '_>, I) -> Result<R, Failure> + Sync,
    ) -> Result<(Vec<S>, Vec<R>), Failure> {
        match self {
            Self::Report(table) => table.for_each_piece(first, items, state, |state, piece, item| {
                job(state, &mut Piece::Report(piece), item)
            }),
            Self::Hdf(table) => table.for_each_piece(first, items, state, |state, piece, item| {
                job(state, &mut Piece::Hdf(piece), item)
            }),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(table) => table.for_each_slab(first, items, state, |state, table, rows, item| {
                let texts = sqlite_io::Texts::default();
                job(state, &mut Piece::Sqlite { table, rows, texts }, item)
            }),
        }
    }

    pub(super) fn must_have(&self, column: &'static str) -> Result<(), TableError> {
        if self.has(column) {
            return Ok(());
        }
        Err(TableError::MissingColumn {
            table: self.name().to_owned(),
            column,
        })
    }
}

/// Some rows of a table, at hand.
pub(super) enum Piece<'p, 't> {
    Report(&'p mut report::Piece<'t>),
    Hdf(&'p mut hdf5_io::Piece<'t>),
    #[cfg(feature = "sqlite")]
    Sqlite {
        table: &'p sqlite_io::Table,
        rows: Range<usize>,
        texts: sqlite_io::Texts,
    },
}

impl Piece<'_, '_> {
    /// Reads a column over all of `out`, which has a value per row; zeros where the schema lacks
    /// it.
    pub(super) fn read<T: Value>(&mut self, column: &str, out: &mut [T]) -> Result<(), TableError> {
        match self {
            Self::Report(piece) => {
                piece.read(column, out);
                Ok(())
            }
            Self::Hdf(piece) => piece.read(column, out),
            #[cfg(feature = "sqlite")]
            Self::Sqlite { table, rows, .. } if table.has(column) => table.read(column, rows, out, T::from_cell),
            #[cfg(feature = "sqlite")]
            Self::Sqlite { .. } => {
                out.fill(T::default());
                Ok(())
            }
        }
    }

    /// The same for `globalPid` and `globalTid`, which use all 64 bits.
    pub(super) fn read_ids(&mut self, column: &str, out: &mut [u64]) -> Result<(), TableError> {
        match self {
            Self::Report(piece) => {
                piece.read_ids(column, out);
                Ok(())
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite { table, rows, .. } if table.has(column) => table.read(column, rows, out, i64::cast_unsigned),
            _ => self.read(column, out),
        }
    }

    /// Makes the strings of a column those that [`Piece::text`] gives; empty ones where the schema
    /// lacks it.
    pub(super) fn texts(&mut self, column: &str) -> Result<(), TableError> {
        match self {
            Self::Report(piece) => {
                piece.texts(column);
                Ok(())
            }
            Self::Hdf(piece) => piece.texts(column),
            #[cfg(feature = "sqlite")]
            Self::Sqlite { table, rows, texts } => {
                *texts = if table.has(column) {
                    table.texts(column, rows)?
                } else {
                    sqlite_io::Texts::default()
                };
                Ok(())
            }
        }
    }

    /// The bytes of the string of a row.
    pub(super) fn text(&mut self, row: usize) -> Result<&[u8], TableError> {
        match self {
            Self::Report(piece) => Ok(piece.text(row)),
            Self::Hdf(piece) => piece.text(row),
            #[cfg(feature = "sqlite")]
            Self::Sqlite { texts, .. } => Ok(texts.get(row)),
        }
    }
}
