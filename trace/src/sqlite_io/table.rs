//! A table of a foreign database, read by column and in pieces of bounded size.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::database::DatabaseFile;
use super::texts::Texts;
use crate::hdf5_io::{TableError, TableLimits};

/// Rows read at once.
const SLAB_ROWS: usize = 1 << 14;
/// Memory that the strings of one slab may take.
const SLAB_STRING_BYTES: usize = 64 << 20;

/// Numbers that a column can be read as. As in HDF5's conversions, what does not fit saturates.
pub(crate) trait Cell: Copy + Default {
    fn from_cell(value: i64) -> Self;
}

impl Cell for i64 {
    fn from_cell(value: i64) -> Self {
        value
    }
}

impl Cell for u64 {
    fn from_cell(value: i64) -> Self {
        Self::try_from(value).unwrap_or(0)
    }
}

impl Cell for u32 {
    fn from_cell(value: i64) -> Self {
        Self::try_from(value.max(0)).unwrap_or(Self::MAX)
    }
}

/// What a column is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Number,
    Text,
}

/// A column of a slab.
#[derive(Debug)]
enum Values {
    Numbers(Vec<i64>),
    Texts(Texts),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }
}

/// What was read last, and what is known for the next slab.
#[derive(Debug, Default)]
struct ReadState {
    /// The slab that `values` are of.
    slab: Range<usize>,
    values: BTreeMap<(String, Kind), Values>,
    /// Every column that is expected or was ever asked for: a slab's are read in one go.
    wanted: Vec<(String, Kind)>,
    /// By first row of a slab, the rowid of the row before it.
    before: BTreeMap<usize, i64>,
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    connection: Rc<Connection>,
    file: Arc<DatabaseFile>,
    name: String,
    rows: usize,
    columns: Vec<String>,
    reading: RefCell<ReadState>,
}

/// What is known of an open table, whatever thread it is read on.
#[derive(Debug)]
pub(super) struct KnownTable<'a> {
    file: &'a Arc<DatabaseFile>,
    name: &'a str,
    rows: usize,
    columns: &'a [String],
    wanted: Vec<(String, Kind)>,
}

impl Table {
    /// Opens the table `name`; `None` when there is none. Views, virtual tables and computed
    /// columns are refused: they would run what the file says.
    pub(super) fn open(
        connection: &Rc<Connection>,
        file: &Arc<DatabaseFile>,
        name: &str,
        limits: TableLimits,
    ) -> Result<Option<Self>, TableError> {
        let failed = |error: rusqlite::Error| failed(name, &error);
        let forged = |what| TableError::Forged {
            table: name.to_owned(),
            what,
        };
        let kind: Option<(String, i64)> = connection
            .query_row(
                "SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1",
                [name],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(failed)?;
        match kind
            .as_ref()
            .map(|(kind, without_rowid)| (kind.as_str(), *without_rowid))
        {
            None => return Ok(None),
            Some(("table", 0)) => {}
            Some(("table", _)) => return Err(forged("stored without row numbers")),
            Some(_) => return Err(forged("a view or a virtual table")),
        }
        let mut columns = Vec::new();
        let mut statement = connection
            .prepare("SELECT name, hidden FROM pragma_table_xinfo(?1)")
            .map_err(failed)?;
        let mut found = statement.query([name]).map_err(failed)?;
        while let Some(row) = found.next().map_err(failed)? {
            let (column, hidden): (String, i64) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
            // A column of that name would hide the number by which slabs are found.
            if hidden != 0 || column.eq_ignore_ascii_case("_rowid_") {
                return Err(forged("holding a computed column"));
            }
            columns.push(column);
        }
        let rows: i64 = connection
            .query_row(
                &format!("SELECT count(*) FROM {} NOT INDEXED", quoted(name)),
                (),
                |row| row.get(0),
            )
            .map_err(failed)?;
        let rows = u64::try_from(rows).unwrap_or(0);
        if rows > limits.rows {
            return Err(TableError::TooLarge {
                table: name.to_owned(),
                size: rows,
                unit: "rows",
                limit: limits.rows,
            });
        }
        Ok(Some(Self {
            connection: Rc::clone(connection),
            file: Arc::clone(file),
            name: name.to_owned(),
            rows: usize::try_from(rows).unwrap_or(usize::MAX),
            columns,
            reading: RefCell::default(),
        }))
    }

    /// The number of the first row where all rows are numbered one behind the other, as a program
    /// that only adds rows leaves them.
    pub(super) fn first_number(&self) -> Result<Option<i64>, TableError> {
        // Each by itself is found at an end of the table; both in one query would read it all.
        let sql = format!(
            "SELECT (SELECT min(_rowid_) FROM {0} NOT INDEXED), (SELECT max(_rowid_) FROM {0} NOT INDEXED)",
            quoted(&self.name)
        );
        let ends: (Option<i64>, Option<i64>) = self
            .connection
            .query_row(&sql, (), |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(|error| failed(&self.name, &error))?;
        let (Some(first), Some(last)) = ends else {
            return Ok(None);
        };
        let numbers = last.checked_sub(first).and_then(|rest| usize::try_from(rest).ok());
        Ok((numbers.and_then(|rest| rest.checked_add(1)) == Some(self.rows)).then_some(first))
    }

    /// The same table through a connection of the calling thread, to be read from `slab` on;
    /// `first` is [`first_number`](Self::first_number).
    pub(super) fn reopen(known: &KnownTable<'_>, first: i64, slab: &Range<usize>) -> Result<Self, TableError> {
        let failed = |error: rusqlite::Error| failed(known.name, &error);
        let mut reading = ReadState {
            wanted: known.wanted.clone(),
            ..ReadState::default()
        };
        if let Some(before) = i64::try_from(slab.start)
            .ok()
            .and_then(|rows| first.checked_add(rows - 1))
        {
            reading.before.insert(slab.start, before);
        }
        Ok(Self {
            connection: Rc::new(known.file.connect().map_err(failed)?),
            file: Arc::clone(known.file),
            name: known.name.to_owned(),
            rows: known.rows,
            columns: known.columns.to_vec(),
            reading: RefCell::new(reading),
        })
    }

    /// What other threads need for [`reopen`](Self::reopen).
    pub(super) fn known(&self) -> KnownTable<'_> {
        KnownTable {
            file: &self.file,
            name: &self.name,
            rows: self.rows,
            columns: &self.columns,
            wanted: self.reading.borrow().wanted.clone(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|known| known == column)
    }

    /// Rows of each slab but for the last one.
    pub(crate) const fn slab_rows() -> usize {
        SLAB_ROWS
    }

    /// The rows in pieces of bounded size.
    pub(crate) fn slabs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows;
        (0..rows)
            .step_by(SLAB_ROWS)
            .map(move |start| start..start.saturating_add(SLAB_ROWS).min(rows))
    }

    /// Has these columns read together, where there are such: a query per column would read the
    /// pages of a slab once for each.
    pub(crate) fn expect(&self, numbers: &[&str], texts: &[&str]) {
        let numbers = numbers.iter().map(|column| (*column, Kind::Number));
        let texts = texts.iter().map(|column| (*column, Kind::Text));
        let wanted = numbers.chain(texts).filter(|(column, _)| self.has(column));
        self.reading.borrow_mut().wanted = wanted.map(|(column, kind)| (column.to_owned(), kind)).collect();
    }

    /// Numbers of a column; NULL is 0, as HDF5 exports have it.
    pub(crate) fn numbers<T: Cell>(&self, column: &str, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        let mut out = vec![T::default(); rows.len()];
        self.read(column, rows, &mut out, T::from_cell)?;
        Ok(out)
    }

    /// Writes numbers of a column, made by `convert`, to `out`, which has a value per row.
    pub(crate) fn read<T>(
        &self,
        column: &str,
        rows: &Range<usize>,
        out: &mut [T],
        convert: fn(i64) -> T,
    ) -> Result<(), TableError> {
        self.with(column, Kind::Number, rows, |values| {
            if let Values::Numbers(numbers) = values {
                for (out, number) in out.iter_mut().zip(numbers) {
                    *out = convert(*number);
                }
            }
        })
    }

    /// Ids that use all 64 bits, which SQLite holds as signed.
    pub(crate) fn bits(&self, column: &str, rows: &Range<usize>) -> Result<Vec<u64>, TableError> {
        let mut out = vec![0; rows.len()];
        self.read(column, rows, &mut out, i64::cast_unsigned)?;
        Ok(out)
    }

    /// Strings of a column; NULL is the empty one. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn strings(&self, column: &str, rows: &Range<usize>) -> Result<Vec<String>, TableError> {
        let texts = self.texts(column, rows)?;
        let text = |row| String::from_utf8_lossy(texts.get(row)).into_owned();
        Ok((0..rows.len()).map(text).collect())
    }

    /// Strings of a column as the file has them; NULL is the empty one.
    pub(crate) fn texts(&self, column: &str, rows: &Range<usize>) -> Result<Texts, TableError> {
        self.with(column, Kind::Text, rows, |values| match values {
            Values::Texts(texts) => std::mem::take(texts),
            Values::Numbers(_) => Texts::default(),
        })
    }

    /// A column of a slab, which is read when it is not at hand.
    fn with<T>(
        &self,
        column: &str,
        kind: Kind,
        rows: &Range<usize>,
        take: impl FnOnce(&mut Values) -> T,
    ) -> Result<T, TableError> {
        let mut reading = self.reading.borrow_mut();
        let key = (column.to_owned(), kind);
        let known = reading.wanted.contains(&key);
        if !known {
            reading.wanted.push(key.clone());
        }
        if reading.slab != *rows {
            reading.slab = rows.clone();
            reading.values.clear();
            let wanted = reading.wanted.clone();
            self.fill(&mut reading, &wanted)?;
        } else if !reading.values.contains_key(&key) {
            self.fill(&mut reading, std::slice::from_ref(&key))?;
        }
        let values = reading.values.get_mut(&key).filter(|values| values.len() == rows.len());
        let values = values.ok_or_else(|| self.damaged("has fewer rows than it counts".to_owned()))?;
        let taken = take(values);
        // Strings are handed out and so gone: who asks twice has them read twice.
        if kind == Kind::Text {
            reading.values.remove(&key);
        }
        Ok(taken)
    }

    /// Reads columns of the slab that `reading` is at.
    fn fill(&self, reading: &mut ReadState, wanted: &[(String, Kind)]) -> Result<(), TableError> {
        let failed = |error: rusqlite::Error| failed(&self.name, &error);
        let columns: Vec<String> = wanted.iter().map(|(column, _)| quoted(column)).collect();
        let before = reading.before.get(&reading.slab.start).copied().unwrap_or(i64::MIN);
        // The first row has any number, negative ones too; those behind it follow the last one that
        // was read.
        let from = if reading.before.contains_key(&reading.slab.start) {
            "WHERE _rowid_ > ?1"
        } else if reading.slab.start == 0 {
            "WHERE ?1 = ?1"
        } else {
            return Err(self.damaged("was not read in order".to_owned()));
        };
        let sql = format!(
            "SELECT _rowid_, {} FROM {} NOT INDEXED {from} ORDER BY _rowid_ LIMIT {}",
            columns.join(", "),
            quoted(&self.name),
            reading.slab.len()
        );
        let mut out: Vec<Values> = wanted
            .iter()
            .map(|(_, kind)| match kind {
                Kind::Number => Values::Numbers(Vec::with_capacity(reading.slab.len())),
                Kind::Text => Values::Texts(Texts::with_capacity(reading.slab.len())),
            })
            .collect();
        let mut left = SLAB_STRING_BYTES;
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
        let mut rows = statement.query([before]).map_err(failed)?;
        let mut last = before;
        while let Some(row) = rows.next().map_err(failed)? {
            last = row.get(0).map_err(failed)?;
            for ((at, values), (column, _)) in (1..).zip(&mut out).zip(wanted) {
                let value = row.get_ref(at).map_err(failed)?;
                self.push(values, column, value, &mut left)?;
            }
        }
        reading.before.insert(reading.slab.end, last);
        reading.values.extend(wanted.iter().cloned().zip(out));
        Ok(())
    }

    fn push(&self, values: &mut Values, column: &str, value: ValueRef<'_>, left: &mut usize) -> Result<(), TableError> {
        match (values, value) {
            (Values::Numbers(numbers), ValueRef::Null) => numbers.push(0),
            (Values::Numbers(numbers), ValueRef::Integer(number)) => numbers.push(number),
            (Values::Texts(texts), ValueRef::Null) => texts.push(&[]),
            (Values::Texts(texts), ValueRef::Text(bytes)) => {
                // What an empty string takes counts too, so that a flood of them has a bound.
                let cost = bytes.len().saturating_add(size_of::<String>());
                *left = left.checked_sub(cost).ok_or_else(|| TableError::Strings {
                    table: self.name.clone(),
                    limit: u64::try_from(SLAB_STRING_BYTES).unwrap_or(u64::MAX),
                })?;
                texts.push(bytes);
            }
            (_, value) => {
                let kind = value.data_type();
                return Err(self.damaged(format!("column {column} holds a value of type {kind}")));
            }
        }
        Ok(())
    }

    fn damaged(&self, reason: String) -> TableError {
        TableError::Damaged {
            table: self.name.clone(),
            reason,
        }
    }
}

fn failed(table: &str, error: &rusqlite::Error) -> TableError {
    let table = table.to_owned();
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return TableError::Late { table };
    }
    TableError::Damaged {
        table,
        reason: error.to_string(),
    }
}

/// A name as SQL takes it, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
