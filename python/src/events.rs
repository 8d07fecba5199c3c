//! Events of a category as Arrow columns. The numbers are those of the timeline, in place; only
//! names, which are few, are copied.

use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;
use flopwatch_model::{Category, Column, Events, NameId, Row, RowId, Timeline, Values};

/// What picks a column of numbers out of events.
type ColumnPicker<T> = fn(&Events, usize) -> &[T];

/// A column of a timeline as bytes, which it keeps alive.
struct Owner<T: 'static> {
    timeline: Arc<Timeline>,
    category: Category,
    /// Of the category's own columns.
    column: usize,
    pick: ColumnPicker<T>,
}

impl<T: bytemuck::NoUninit> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        let events = self.timeline.capture.events.get(&self.category);
        bytemuck::cast_slice(events.map_or(&[][..], |events| (self.pick)(events, self.column)))
    }
}

/// The events of a category, one per row.
pub(crate) fn of(timeline: &Arc<Timeline>, category: Category) -> Result<RecordBatch, ArrowError> {
    let none = Events::new(category);
    let events = timeline.capture.events.get(&category).unwrap_or(&none);
    let count = events.len();
    let words = |column, pick| shared::<u32>(timeline, category, (column, pick), count);
    let longs = |column, pick| shared::<u64>(timeline, category, (column, pick), count);
    let number = |values| -> ArrayRef { Arc::new(UInt32Array::new(values, None)) };
    let name = dictionary(words(0, |events, _| NameId::numbers(&events.name)), &events.names)?;
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "start_ns",
            Arc::new(UInt64Array::new(longs(0, |events, _| &events.start_ns), None)),
        ),
        (
            "duration_ns",
            Arc::new(UInt64Array::new(longs(0, |events, _| &events.duration_ns), None)),
        ),
        ("name", name),
        ("row", number(words(0, |events, _| RowId::numbers(&events.row)))),
        ("lane", number(words(0, |events, _| &events.lane))),
        ("correlation", number(words(0, |events, _| &events.correlation))),
    ];
    for (at, column) in events.columns.iter().enumerate() {
        let array: ArrayRef = match &column.values {
            Values::U32(_) if column.id.is_text() => dictionary(words(at, own_words), &column.texts)?,
            Values::U32(values) => {
                let validity = validity(column, values.iter().copied().map(u64::from));
                Arc::new(UInt32Array::new(words(at, own_words), validity))
            }
            Values::U64(values) => {
                let validity = validity(column, values.iter().copied());
                Arc::new(UInt64Array::new(longs(at, own_longs), validity))
            }
        };
        columns.push((column.id.name(), array));
    }
    RecordBatch::try_from_iter(columns)
}

/// A column in place.
fn shared<T: bytemuck::NoUninit + ArrowNativeType>(
    timeline: &Arc<Timeline>,
    category: Category,
    (column, pick): (usize, ColumnPicker<T>),
    count: usize,
) -> ScalarBuffer<T> {
    let owner = Owner {
        timeline: Arc::clone(timeline),
        category,
        column,
        pick,
    };
    ScalarBuffer::new(Buffer::from(Bytes::from_owner(owner)), 0, count)
}

fn own_words(events: &Events, at: usize) -> &[u32] {
    match events.columns.get(at).map(|column| &column.values) {
        Some(Values::U32(values)) => values,
        _ => &[],
    }
}

fn own_longs(events: &Events, at: usize) -> &[u64] {
    match events.columns.get(at).map(|column| &column.values) {
        Some(Values::U64(values)) => values,
        _ => &[],
    }
}

/// Which values say something, of a column whose largest number stands for none.
fn validity(column: &Column, values: impl Iterator<Item = u64>) -> Option<NullBuffer> {
    let missing = column.id.missing();
    // 0 is a number of most columns.
    (missing != 0).then(|| values.map(|value| value != missing).collect())
}

fn dictionary(keys: ScalarBuffer<u32>, texts: &[String]) -> Result<ArrayRef, ArrowError> {
    let texts: StringArray = texts.iter().map(Some).collect();
    let keys = UInt32Array::new(keys, None);
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, Arc::new(texts))?))
}

/// The rows, in the order that the column `row` counts them.
pub(crate) fn rows(timeline: &Timeline) -> Result<RecordBatch, ArrowError> {
    let rows = &timeline.capture.rows;
    let words =
        |field: fn(&Row) -> Option<u32>| -> ArrayRef { Arc::new(rows.iter().map(field).collect::<UInt32Array>()) };
    let longs =
        |field: fn(&Row) -> Option<u64>| -> ArrayRef { Arc::new(rows.iter().map(field).collect::<UInt64Array>()) };
    let texts = |field: fn(&Row) -> &str| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(field(row))).collect::<StringArray>())
    };
    let numbers: ArrayRef = Arc::new((0_u32..).take(rows.len()).map(Some).collect::<UInt32Array>());
    RecordBatch::try_from_iter_with_nullable([
        ("row", numbers, false),
        ("track", texts(|row| row.track.name()), false),
        ("label", texts(|row| &row.label), false),
        ("process", words(|row| Some(row.process)), false),
        ("thread", longs(|row| row.thread), true),
        ("device", words(|row| row.device), true),
        ("context", longs(|row| row.context), true),
        ("stream", longs(|row| row.stream), true),
    ])
}
