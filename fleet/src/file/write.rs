//! Records into a file. The same records give the same bytes.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, GzipLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::read::{ReadError, read};
use super::{TABLE_KEY, VERSION_KEY};
use crate::capture::CaptureRow;
use crate::column::{Cell, Kind, Presence};
use crate::limits::Limits;
use crate::row::Row;
use crate::table::{Record, SCHEMA_VERSION, schema};

/// How hard deflate tries: files are small, many, and kept long.
const DEFLATE_LEVEL: u32 = 6;

/// Why a file could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A reader would refuse the file: a record makes no sense, or there is more than readers take.
    #[error("what the fleet's table is to hold could not be read again: {0}")]
    Refused(#[from] ReadError),
    /// Parquet could not be written.
    #[error("the fleet's table cannot be written as Parquet: {0}")]
    Parquet(#[from] ParquetError),
}

/// A file of the table `captures`.
pub fn write_captures(captures: &[CaptureRow]) -> Result<Vec<u8>, WriteError> {
    write(captures)
}

/// A file of the table `rows`.
pub fn write_rows(rows: &[Row]) -> Result<Vec<u8>, WriteError> {
    write(rows)
}

fn write<T: Record>(records: &[T]) -> Result<Vec<u8>, WriteError> {
    let bytes = Bytes::from(encode(records, Compression::GZIP(GzipLevel::try_new(DEFLATE_LEVEL)?))?);
    read::<T>(&bytes, &Limits::default())?;
    Ok(bytes.into())
}

/// The file of any records, whether they make sense or not.
pub(super) fn encode<T: Record>(records: &[T], compression: Compression) -> Result<Vec<u8>, ParquetError> {
    let metadata = [
        (TABLE_KEY, T::TABLE.as_str().to_owned()),
        (VERSION_KEY, SCHEMA_VERSION.to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_created_by("flopwatch".to_owned())
        .set_key_value_metadata(Some(metadata.to_vec()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build();
    let schema = Arc::new(parse_message_type(&schema::<T>())?);
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in T::columns() {
        let cells: Vec<Cell> = records.iter().map(|record| (column.get)(record)).collect();
        write_column(&mut group, column.kind, &cells)?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    kind: Kind,
    cells: &[Cell],
) -> Result<(), ParquetError> {
    match kind {
        Kind::Integer(presence) => {
            let leaf = Leaf::of_cells(cells, presence, |cell| match cell {
                Cell::Integer(value) => Some(*value),
                _ => None,
            });
            leaf.write::<Int64Type>(group)
        }
        Kind::Instant => write_column(group, Kind::Integer(Presence::Required), cells),
        Kind::Flag => {
            let leaf = Leaf::of_cells(cells, Presence::Required, |cell| Some(*cell == Cell::Flag(true)));
            leaf.write::<BoolType>(group)
        }
        Kind::Text(presence) => {
            let leaf = Leaf::of_cells(cells, presence, |cell| match cell {
                Cell::Text(text) => Some(text.as_str()),
                _ => None,
            });
            leaf.write_texts(group)
        }
        Kind::Texts => {
            let lists = cells.iter().map(|cell| match cell {
                Cell::Texts(texts) => Some(texts.iter().map(String::as_str).collect()),
                _ => None,
            });
            Leaf::of_lists(lists, 0).write_texts(group)
        }
        Kind::Buckets => {
            let lists = |part: fn(&(i64, i64)) -> i64| {
                cells.iter().map(move |cell| match cell {
                    Cell::Buckets(pairs) => Some(pairs.iter().map(part).collect()),
                    _ => None,
                })
            };
            Leaf::of_lists(lists(|pair| pair.0), 1).write::<Int64Type>(group)?;
            Leaf::of_lists(lists(|pair| pair.1), 1).write::<Int64Type>(group)
        }
    }
}

/// A column of Parquet: values that are there, and where they are missing or begin a list.
struct Leaf<V> {
    values: Vec<V>,
    definitions: Option<Vec<i16>>,
    repetitions: Option<Vec<i16>>,
}

impl<V> Leaf<V> {
    fn of_cells<'a>(cells: &'a [Cell], presence: Presence, value: impl Fn(&'a Cell) -> Option<V>) -> Self {
        let values: Vec<Option<V>> = cells.iter().map(value).collect();
        let levels = || values.iter().map(|value| i16::from(value.is_some())).collect();
        Self {
            definitions: (presence == Presence::Optional).then(levels),
            repetitions: None,
            values: values.into_iter().flatten().collect(),
        }
    }

    /// Lists whose own definition is at `level`: 1 where they may be missing, else 0.
    fn of_lists(lists: impl Iterator<Item = Option<Vec<V>>>, level: i16) -> Self {
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for list in lists {
            let missing = list.is_none();
            let list = list.unwrap_or_default();
            if list.is_empty() {
                definitions.push(if missing { 0 } else { level });
                repetitions.push(0);
            }
            for (position, value) in list.into_iter().enumerate() {
                definitions.push(level + 1);
                repetitions.push(i16::from(position > 0));
                values.push(value);
            }
        }
        Self {
            values,
            definitions: Some(definitions),
            repetitions: Some(repetitions),
        }
    }

    fn write<D: DataType<T = V>>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    ) -> Result<(), ParquetError> {
        if let Some(mut column) = group.next_column()? {
            column
                .typed::<D>()
                .write_batch(&self.values, self.definitions.as_deref(), self.repetitions.as_deref())?;
            column.close()?;
        }
        Ok(())
    }
}

impl Leaf<&str> {
    fn write_texts(self, group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>) -> Result<(), ParquetError> {
        let leaf = Leaf {
            values: self.values.into_iter().map(ByteArray::from).collect(),
            definitions: self.definitions,
            repetitions: self.repetitions,
        };
        leaf.write::<ByteArrayType>(group)
    }
}
