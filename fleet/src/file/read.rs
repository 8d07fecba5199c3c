//! A file into records, within limits: an error for everything that was not written here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::pages::Pages;
use super::{TABLE_KEY, VERSION_KEY};
use crate::capture::CaptureRow;
use crate::column::{Cell, Kind, Presence};
use crate::limits::Limits;
use crate::row::Row;
use crate::table::{Record, SCHEMA_VERSION, schema};

/// Rows that are read at once.
const BATCH_ROWS: usize = 4_096;

/// Bytes of what a file says of itself, at its end. Written are some ten thousand; each group takes
/// more memory than it takes to say that it is there.
const MAX_FOOTER: usize = 256 << 10;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is larger than is read.
    #[error("the file has {bytes} bytes; at most {max} are read")]
    File {
        /// How many it has.
        bytes: usize,
        /// [`Limits::file_bytes`].
        max: usize,
    },
    /// The file is no table of the fleet, or another one.
    #[error("the file is no table {table} of the fleet's version {SCHEMA_VERSION}")]
    Table {
        /// The table that was asked for.
        table: &'static str,
    },
    /// The file holds more than is read.
    #[error("the file has more {what} than the {max} that are read")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are read.
        max: usize,
    },
    /// A column is not as it is written.
    #[error("the column {column} is not as Flopwatch writes it")]
    Column {
        /// Name of the column.
        column: &'static str,
    },
    /// A record that contradicts itself or the table.
    #[error("record {position}: {fault}")]
    Record {
        /// Position of the record in the file, counted from 0.
        position: usize,
        /// What is wrong with the record.
        fault: &'static str,
    },
    /// The file is not Parquet, or damaged.
    #[error("the file cannot be read as Parquet: {0}")]
    Parquet(#[from] ParquetError),
    /// The file is damaged so that its reader gave up.
    #[error("the file is damaged: Parquet's reader gave up on it")]
    GaveUp,
}

/// The captures of a file.
pub fn read_captures(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Vec<CaptureRow>, ReadError> {
    read(&bytes.into(), limits)
}

/// The rows of a file.
pub fn read_rows(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Vec<Row>, ReadError> {
    read(&bytes.into(), limits)
}

pub(super) fn read<T: Record>(bytes: &Bytes, limits: &Limits) -> Result<Vec<T>, ReadError> {
    if bytes.len() > limits.file_bytes {
        let (bytes, max) = (bytes.len(), limits.file_bytes);
        return Err(ReadError::File { bytes, max });
    }
    // The library asserts some of what a file says. What it leaves behind is dropped with the
    // reader.
    catch_unwind(AssertUnwindSafe(|| Reader::new(bytes, limits).records())).unwrap_or(Err(ReadError::GaveUp))
}

fn too_many(what: &'static str, max: usize) -> ReadError {
    ReadError::TooMany { what, max }
}

struct Reader<'a> {
    file: &'a Bytes,
    limits: &'a Limits,
    /// What is left of [`Limits::inflated_bytes`], for pages and for texts.
    pages: usize,
    texts: usize,
}

impl<'a> Reader<'a> {
    fn new(file: &'a Bytes, limits: &'a Limits) -> Self {
        Self {
            file,
            limits,
            pages: limits.inflated_bytes,
            texts: limits.inflated_bytes,
        }
    }

    fn records<T: Record>(mut self) -> Result<Vec<T>, ReadError> {
        let metadata = metadata::<T>(self.file)?;
        let mut records = Vec::new();
        for group in metadata.row_groups() {
            let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
            let first = records.len();
            if rows > self.limits.rows.saturating_sub(first) {
                return Err(too_many("rows", self.limits.rows));
            }
            records.resize(first + rows, T::default());
            let added = records.get_mut(first..).unwrap_or_default();
            let mut leaf = 0;
            for column in T::columns() {
                let cells = self.column(group, column.name, column.kind, leaf)?;
                leaf += column.kind.leaves();
                if cells.len() != rows {
                    return Err(ReadError::Column { column: column.name });
                }
                for (record, cell) in added.iter_mut().zip(cells) {
                    if !(column.set)(record, cell) {
                        return Err(ReadError::Column { column: column.name });
                    }
                }
            }
        }
        let fault = |(position, record): (usize, &T)| record.fault().map(|fault| (position, fault));
        match records.iter().enumerate().find_map(fault) {
            Some((position, fault)) => Err(ReadError::Record { position, fault }),
            None => Ok(records),
        }
    }

    /// The cells of a column whose first column of Parquet is that one.
    fn column(
        &mut self,
        group: &RowGroupMetaData,
        name: &'static str,
        kind: Kind,
        leaf: usize,
    ) -> Result<Vec<Cell>, ReadError> {
        let wrong = || ReadError::Column { column: name };
        match kind {
            Kind::Integer(Presence::Required) | Kind::Instant => {
                let values = self.values::<Int64Type>(group, leaf)?.values;
                Ok(values.into_iter().map(Cell::Integer).collect())
            }
            Kind::Integer(Presence::Optional) => {
                let leaf = self.values::<Int64Type>(group, leaf)?;
                let values = leaf.optional().ok_or_else(wrong)?;
                Ok(values
                    .into_iter()
                    .map(|value| value.map_or(Cell::Nothing, Cell::Integer))
                    .collect())
            }
            Kind::Flag => {
                let values = self.values::<BoolType>(group, leaf)?.values;
                Ok(values.into_iter().map(Cell::Flag).collect())
            }
            Kind::Text(Presence::Required) => {
                let values = self.texts(group, name, leaf)?.values;
                Ok(values.into_iter().map(Cell::Text).collect())
            }
            Kind::Text(Presence::Optional) => {
                let values = self.texts(group, name, leaf)?.optional().ok_or_else(wrong)?;
                Ok(values
                    .into_iter()
                    .map(|value| value.map_or(Cell::Nothing, Cell::Text))
                    .collect())
            }
            Kind::Texts => {
                let lists = self.texts(group, name, leaf)?.lists(0).ok_or_else(wrong)?;
                lists
                    .into_iter()
                    .map(|list| list.map(Cell::Texts).ok_or_else(wrong))
                    .collect()
            }
            Kind::Buckets => {
                let buckets = self.values::<Int64Type>(group, leaf)?.lists(1).ok_or_else(wrong)?;
                let counts = self.values::<Int64Type>(group, leaf + 1)?.lists(1).ok_or_else(wrong)?;
                let pair = |pair| match pair {
                    (None, None) => Ok(Cell::Nothing),
                    (Some(buckets), Some(counts)) if Vec::len(&buckets) == Vec::len(&counts) => {
                        Ok(Cell::Buckets(buckets.into_iter().zip(counts).collect()))
                    }
                    _ => Err(wrong()),
                };
                if buckets.len() != counts.len() {
                    return Err(wrong());
                }
                buckets.into_iter().zip(counts).map(pair).collect()
            }
        }
    }

    /// A column of texts as such, each within its bound.
    fn texts(
        &mut self,
        group: &RowGroupMetaData,
        column: &'static str,
        leaf: usize,
    ) -> Result<Leaf<String>, ReadError> {
        let leaf = self.values::<ByteArrayType>(group, leaf)?;
        let mut texts = Vec::with_capacity(leaf.values.len());
        for text in &leaf.values {
            let text: &ByteArray = text;
            let bytes = text.data();
            if bytes.len() > self.limits.text_bytes {
                return Err(too_many("bytes in a text", self.limits.text_bytes));
            }
            let Some(left) = self.texts.checked_sub(bytes.len()) else {
                return Err(too_many("bytes of text", self.limits.inflated_bytes));
            };
            self.texts = left;
            let text = std::str::from_utf8(bytes).map_err(|_not_utf8| ReadError::Column { column })?;
            texts.push(text.to_owned());
        }
        Ok(Leaf {
            values: texts,
            definitions: leaf.definitions,
            repetitions: leaf.repetitions,
        })
    }

    /// All values of a column of Parquet.
    fn values<D: DataType>(&mut self, group: &RowGroupMetaData, leaf: usize) -> Result<Leaf<D::T>, ReadError> {
        let Some(chunk) = group.columns().get(leaf) else {
            return Err(ParquetError::General("a column is missing".to_owned()).into());
        };
        let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
        let descriptor = chunk.column_descr_ptr();
        let bound = if descriptor.max_rep_level() > 0 {
            self.limits.elements
        } else {
            rows
        };
        let max_elements = u64::try_from(bound).unwrap_or(u64::MAX);
        let pages = Pages::new(self.file, chunk, rows, max_elements, &mut self.pages)?;
        let mut reader: ColumnReaderImpl<D> =
            get_typed_column_reader(get_column_reader(descriptor.clone(), Box::new(pages)));
        let mut found = Leaf {
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
        };
        let mut read = 0;
        while read < rows {
            let definitions = (descriptor.max_def_level() > 0).then_some(&mut found.definitions);
            let repetitions = (descriptor.max_rep_level() > 0).then_some(&mut found.repetitions);
            let (records, _, _) =
                reader.read_records(BATCH_ROWS.min(rows - read), definitions, repetitions, &mut found.values)?;
            if records == 0 {
                break;
            }
            read += records;
            if found.values.len().max(found.definitions.len()) > bound {
                return Err(too_many("elements of lists", bound));
            }
        }
        Ok(found)
    }
}

/// What the file says of itself, where it says that it is such a table. Its columns are taken to be
/// those of the table: what they are said to be is not read, as a foreign schema has no bound to
/// its depth.
fn metadata<T: Record>(file: &Bytes) -> Result<ParquetMetaData, ReadError> {
    let schema = Arc::new(parse_message_type(&schema::<T>())?);
    let options = ParquetMetaDataOptions::new()
        .with_schema(Arc::new(SchemaDescriptor::new(schema)))
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let table = T::TABLE.as_str();
    if footer(file).is_some_and(|length| length > MAX_FOOTER) {
        return Err(too_many("bytes at its end", MAX_FOOTER));
    }
    let reader = ParquetMetaDataReader::new().with_metadata_options(Some(options));
    let metadata = reader.parse_and_finish(file)?;
    let key_value = |key: &str| {
        let pairs = metadata.file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    };
    let ours =
        key_value(TABLE_KEY) == Some(table) && key_value(VERSION_KEY) == Some(SCHEMA_VERSION.to_string().as_str());
    if ours {
        Ok(metadata)
    } else {
        Err(ReadError::Table { table })
    }
}

/// How long the file says that its description is: four bytes before the last four.
fn footer(file: &Bytes) -> Option<usize> {
    let (rest, _magic) = file.split_last_chunk::<4>()?;
    let (_, length) = rest.split_last_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

/// A column of Parquet: values that are there, and where they are missing or begin a list.
struct Leaf<V> {
    values: Vec<V>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<V> Leaf<V> {
    /// A value or none for each row.
    fn optional(self) -> Option<Vec<Option<V>>> {
        let mut values = self.values.into_iter();
        let row = |level| match level {
            0 => Some(None),
            _ => values.next().map(Some),
        };
        self.definitions.into_iter().map(row).collect()
    }

    /// A list or none for each row; the lists' own definition is at `level`: 1 where they may be
    /// missing, else 0.
    fn lists(self, level: i16) -> Option<Vec<Option<Vec<V>>>> {
        let mut values = self.values.into_iter();
        let mut lists: Vec<Option<Vec<V>>> = Vec::new();
        for (definition, repetition) in self.definitions.into_iter().zip(self.repetitions) {
            if repetition == 0 {
                lists.push((definition >= level).then(Vec::new));
            }
            if definition > level {
                lists.last_mut()?.as_mut()?.push(values.next()?);
            }
        }
        Some(lists)
    }
}
