//! A dataset of a foreign file, checked before anything of it is read.

use std::collections::BTreeMap;
use std::ops::Range;

use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, Group, LinkType};

use super::raw::{self, Number, RawError};

/// Why a table cannot be read. The caller adds the file's path.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The library refuses the table: the file is truncated or damaged there.
    #[error("table {table}: {reason}; the file is truncated or damaged")]
    Damaged {
        /// The table.
        table: String,
        /// What the library says.
        reason: String,
    },
    /// The table is not stored as the profiler stores it (a link or storage outside the file, a shape that is no table), which
    /// only a forged file does.
    #[error("table {table} is {what}, which is not read from a foreign file")]
    Forged {
        /// The table.
        table: String,
        /// How it is stored instead.
        what: &'static str,
    },
    /// A column that the table cannot do without is missing.
    #[error("table {table} has no column {column}; this export's schema is not known")]
    MissingColumn {
        /// The table.
        table: String,
        /// The column.
        column: &'static str,
    },
    /// The table is larger than the limits allow.
    #[error("table {table} has {size} {unit}, over the limit of {limit}; raise the limit or capture a shorter window")]
    TooLarge {
        /// The table.
        table: String,
        /// Its size.
        size: u64,
        /// Of what: rows, bytes per row, bytes per chunk.
        unit: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The strings need more memory than the limits allow.
    #[error(
        "strings of table {table} need more than the limit of {limit} bytes; raise the limit or capture a shorter window"
    )]
    Strings {
        /// The table.
        table: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Reading takes longer than the limits allow.
    #[error(
        "table {table} could not be read within the time that the limits allow; the file is damaged or forged, or the limit is too low"
    )]
    Late {
        /// The table.
        table: String,
    },
}

/// Bounds on one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLimits {
    /// Rows.
    pub(crate) rows: u64,
    /// Bytes of one uncompressed chunk, the least that HDF5 must hold at once.
    pub(crate) chunk_bytes: u64,
}

/// Bytes of strings that may still be kept.
#[derive(Debug)]
pub(crate) struct StringBudget {
    limit: u64,
    left: u64,
}

impl StringBudget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, left: limit }
    }

    /// Takes what keeping `text` costs.
    pub(crate) fn take(&mut self, table: &str, text: &str) -> Result<(), TableError> {
        let cost = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let error = || TableError::Strings {
            table: table.to_owned(),
            limit: self.limit,
        };
        self.left = self.left.checked_sub(cost).ok_or_else(error)?;
        Ok(())
    }
}

/// How a dataset must be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// A compound per row, as exports of nsys have.
    Compound,
    /// A plain value per row, as the timeline file has.
    Plain,
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    dataset: Dataset,
    rows: usize,
    slab: usize,
    columns: BTreeMap<String, TypeDescriptor>,
    plain: Option<TypeDescriptor>,
}

/// Rows read at once when chunks are small.
const LEAST_SLAB: usize = 4096;
/// Rows read at once when chunks are large.
const MOST_SLAB: usize = 1 << 16;
/// Memory that the strings of one slab may take.
const SLAB_STRING_BYTES: usize = 64 << 20;

impl Table {
    /// Opens the dataset `name` of `group`; `None` when there is none.
    pub(crate) fn open(group: &Group, name: &str, kind: Open, limits: TableLimits) -> Result<Option<Self>, TableError> {
        let damaged = |error: hdf5::Error| TableError::Damaged {
            table: name.to_owned(),
            reason: error.to_string(),
        };
        let forged = |what| TableError::Forged {
            table: name.to_owned(),
            what,
        };
        let too_large = |size, unit, limit| TableError::TooLarge {
            table: name.to_owned(),
            size,
            unit,
            limit,
        };
        match link_type(group, name).map_err(damaged)? {
            None => return Ok(None),
            Some(LinkType::Hard) => {}
            Some(_) => return Err(forged("a link to somewhere else")),
        }
        let dataset = group.dataset(name).map_err(damaged)?;
        let storage = dataset.create_plist().map_err(damaged)?;
        if !storage.get_external().map_err(damaged)?.is_empty() {
            return Err(forged("stored in another file"));
        }
        let shape = dataset.get_shape().map_err(damaged)?;
        let [rows] = shape[..] else {
            return Err(forged("not a list of rows"));
        };
        let count = wide(rows);
        if count > limits.rows {
            return Err(too_large(count, "rows", limits.rows));
        }
        let chunk = match storage.get_layout().map_err(damaged)? {
            hdf5::dataset::Layout::Chunked => storage.get_chunk().map_err(damaged)?,
            // An empty or tiny dataset of our own is stored without chunks.
            hdf5::dataset::Layout::Contiguous | hdf5::dataset::Layout::Compact if kind == Open::Plain => None,
            _ => return Err(forged("not stored in chunks")),
        };
        let stored = dataset.dtype().map_err(damaged)?;
        let chunk_rows = chunk.and_then(|dims| dims.first().copied()).unwrap_or(LEAST_SLAB);
        let chunk_bytes = wide(chunk_rows).saturating_mul(wide(stored.size()));
        if chunk_bytes > limits.chunk_bytes {
            return Err(too_large(chunk_bytes, "bytes per chunk", limits.chunk_bytes));
        }
        let (columns, plain) = match (kind, stored.to_descriptor().map_err(damaged)?) {
            (Open::Compound, TypeDescriptor::Compound(compound)) => (
                compound
                    .fields
                    .into_iter()
                    .map(|field| (field.name, field.ty))
                    .collect(),
                None,
            ),
            (Open::Plain, plain) => (BTreeMap::new(), Some(plain)),
            (Open::Compound, _) => return Err(forged("not a table of columns")),
        };
        let slab = chunk_rows.clamp(LEAST_SLAB, MOST_SLAB);
        Ok(Some(Self {
            name: name.to_owned(),
            dataset,
            rows,
            slab,
            columns,
            plain,
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there is such a column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// The rows in pieces of bounded size that fall on chunk borders where chunks are of a usual size.
    pub(crate) fn slabs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, slab) = (self.rows, self.slab);
        (0..rows)
            .step_by(slab)
            .map(move |start| start..start.saturating_add(slab).min(rows))
    }

    /// Numbers of a column that must be there.
    pub(crate) fn required<T: Number>(&self, column: &'static str, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        if !self.has(column) {
            return Err(TableError::MissingColumn {
                table: self.name.clone(),
                column,
            });
        }
        self.numbers(Some(column), rows)
    }

    /// Numbers of a column that some schemas lack; zeros then.
    pub(crate) fn optional<T: Number>(&self, column: &str, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        if !self.has(column) {
            return Ok(vec![T::default(); rows.len()]);
        }
        self.numbers(Some(column), rows)
    }

    /// All numbers of a plain dataset.
    pub(crate) fn all<T: Number>(&self) -> Result<Vec<T>, TableError> {
        self.numbers(None, &(0..self.rows))
    }

    /// Strings of a column; empty ones where the schema lacks it.
    pub(crate) fn strings(&self, column: &str, rows: &Range<usize>) -> Result<Vec<String>, TableError> {
        match self.columns.get(column) {
            None => Ok(vec![String::new(); rows.len()]),
            Some(kind) => self.text(Some(column), kind.clone(), rows),
        }
    }

    /// All strings of a plain dataset, within `budget`.
    pub(crate) fn all_strings(&self, budget: &mut StringBudget) -> Result<Vec<String>, TableError> {
        let Some(kind) = &self.plain else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for slab in self.slabs() {
            for text in self.text(None, kind.clone(), &slab)? {
                budget.take(&self.name, &text)?;
                all.push(text);
            }
        }
        Ok(all)
    }

    fn numbers<T: Number>(&self, member: Option<&str>, rows: &Range<usize>) -> Result<Vec<T>, TableError> {
        raw::read_numbers(&self.dataset, member, rows).map_err(|error| self.failed(error))
    }

    fn text(&self, member: Option<&str>, kind: TypeDescriptor, rows: &Range<usize>) -> Result<Vec<String>, TableError> {
        if !matches!(kind, TypeDescriptor::VarLenAscii | TypeDescriptor::VarLenUnicode) {
            return Err(TableError::Forged {
                table: self.name.clone(),
                what: "holding text of an unusual type",
            });
        }
        raw::read_strings(&self.dataset, member, kind, rows, SLAB_STRING_BYTES).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: RawError) -> TableError {
        match error {
            RawError::Hdf5(error) => TableError::Damaged {
                table: self.name.clone(),
                reason: error.to_string(),
            },
            RawError::Budget => TableError::Strings {
                table: self.name.clone(),
                limit: wide(SLAB_STRING_BYTES),
            },
        }
    }
}

pub(super) fn link_type(group: &Group, name: &str) -> hdf5::Result<Option<LinkType>> {
    let mut found = None;
    group.iter_visit_default(|link, info| {
        if link == name {
            found = Some(info.link_type);
        }
        Ok(())
    })?;
    Ok(found)
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
