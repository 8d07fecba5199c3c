//! The tables in columns. A group of rows holds one category or one series, so that a reader skips
//! what it does not ask for.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use flopwatch_measures::record::{Cells, Field, Kind};
use flopwatch_model::{CounterSeries, Timeline};
use parquet::basic::{Compression, GzipLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::{ExportCounts, ExportError, SCHEMA_VERSION};

/// Rows per group.
const GROUP_ROWS: usize = 1 << 20;

/// How hard deflate tries, as in the timeline file.
const DEFLATE_LEVEL: u32 = 1;

const SAMPLES_SCHEMA: &str = "message samples { required binary source (UTF8); required binary device (UTF8); \
    required binary metric (UTF8); required binary unit (UTF8); required int64 t_ns (INTEGER(64,false)); required double value; }";

/// Writes a row per event.
pub fn events<W: Write + Send>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let fields = flopwatch_measures::record::fields(timeline);
    let mut writer = writer(timeline, &events_schema(&fields), out)?;
    let exported = event_rows(timeline, &fields, &mut writer)?;
    writer.close()?;
    Ok(exported)
}

/// Writes a row per sample of a series.
pub fn samples<W: Write + Send>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let mut writer = writer(timeline, SAMPLES_SCHEMA, out)?;
    let exported = sample_rows(&timeline.capture.counters, &mut writer)?;
    writer.close()?;
    Ok(exported)
}

fn writer<W: Write + Send>(timeline: &Timeline, schema: &str, out: W) -> Result<SerializedFileWriter<W>, ExportError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::try_new(DEFLATE_LEVEL)?))
        .set_created_by("flopwatch".to_owned())
        .set_key_value_metadata(Some(metadata(timeline)?))
        .build();
    let schema = Arc::new(parse_message_type(schema)?);
    Ok(SerializedFileWriter::new(out, schema, Arc::new(properties))?)
}

/// What stands beside the table.
fn metadata(timeline: &Timeline) -> Result<Vec<KeyValue>, ExportError> {
    let capture = &timeline.capture;
    let captured: Vec<&str> = capture.captured.iter().map(|category| category.name()).collect();
    let pairs = [
        ("schema_version", SCHEMA_VERSION.to_string()),
        ("session_id", timeline.session_id.clone()),
        ("total_duration_ns", capture.duration_ns.to_string()),
        (
            "session_start_utc_ns",
            capture
                .session_start_utc_ns
                .map_or_else(String::new, |ns| ns.to_string()),
        ),
        ("captured", captured.join(",")),
        ("source", serde_json::to_string(&capture.source)?),
        ("drops", serde_json::to_string(&capture.losses.list())?),
        ("redactions", capture.redactions.to_string()),
    ];
    let pairs = pairs.map(|(key, value)| KeyValue::new(format!("flopwatch.{key}"), value));
    Ok(pairs.to_vec())
}

fn events_schema(fields: &[Field]) -> String {
    let fields = fields.iter().map(|field| {
        let kind = match field.kind() {
            Kind::Text => ("binary", "UTF8"),
            Kind::U32 => ("int32", "INTEGER(32,false)"),
            Kind::U64 => ("int64", "INTEGER(64,false)"),
        };
        let presence = if field.is_optional() { "optional" } else { "required" };
        format!("{presence} {} {} ({});", kind.0, field.name(), kind.1)
    });
    format!("message events {{ {} }}", fields.collect::<Vec<String>>().join(" "))
}

fn groups(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count)
        .step_by(GROUP_ROWS)
        .map(move |first| first..first.saturating_add(GROUP_ROWS).min(count))
}

fn event_rows<W: Write + Send>(
    timeline: &Timeline,
    fields: &[Field],
    writer: &mut SerializedFileWriter<W>,
) -> Result<ExportCounts, ExportError> {
    let mut exported = ExportCounts::default();
    for (category, events) in &timeline.capture.events {
        let cells = Cells {
            category: *category,
            events,
            rows: &timeline.capture.rows,
        };
        for range in groups(events.len()) {
            let mut group = writer.next_row_group()?;
            for field in fields.iter().copied() {
                column(&mut group, cells, field, range.clone())?;
            }
            group.close()?;
        }
        exported.events += events.count();
    }
    Ok(exported)
}

/// Writes one column of a group.
fn column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: Cells<'_>,
    field: Field,
    range: Range<usize>,
) -> Result<(), ExportError> {
    let Some(mut column) = group.next_column()? else {
        return Ok(());
    };
    let levels = |values: &[Option<u64>]| -> Option<Vec<i16>> {
        field
            .is_optional()
            .then(|| values.iter().map(|value| i16::from(value.is_some())).collect())
    };
    match field.kind() {
        Kind::Text => {
            // One copy per different text.
            let mut known: BTreeMap<&str, ByteArray> = BTreeMap::new();
            let texts = range.map(|at| {
                let text = cells.text(field, at);
                known.entry(text).or_insert_with(|| text.into()).clone()
            });
            let texts: Vec<ByteArray> = texts.collect();
            if field.is_optional() {
                let levels: Vec<i16> = texts.iter().map(|text| i16::from(!text.is_empty())).collect();
                let present: Vec<ByteArray> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&present, Some(&levels), None)?;
            } else {
                column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            }
        }
        Kind::U32 => {
            let values: Vec<Option<u64>> = range.map(|at| cells.number(field, at)).collect();
            let present = values.iter().flatten();
            let present: Vec<i32> = present
                .map(|value| u32::try_from(*value).unwrap_or(u32::MAX).cast_signed())
                .collect();
            let levels = levels(&values);
            column
                .typed::<Int32Type>()
                .write_batch(&present, levels.as_deref(), None)?;
        }
        Kind::U64 => {
            let values: Vec<Option<u64>> = range.map(|at| cells.number(field, at)).collect();
            let present: Vec<i64> = values.iter().flatten().map(|value| value.cast_signed()).collect();
            let levels = levels(&values);
            column
                .typed::<Int64Type>()
                .write_batch(&present, levels.as_deref(), None)?;
        }
    }
    column.close()?;
    Ok(())
}

fn sample_rows<W: Write + Send>(
    counters: &[CounterSeries],
    writer: &mut SerializedFileWriter<W>,
) -> Result<ExportCounts, ExportError> {
    let mut exported = ExportCounts::default();
    for series in counters {
        for range in groups(series.value.len().min(series.t_ns.len())) {
            let mut group = writer.next_row_group()?;
            for word in [&series.source, &series.device, &series.metric, &series.unit] {
                if let Some(mut column) = group.next_column()? {
                    let words = vec![ByteArray::from(word.as_str()); range.len()];
                    column.typed::<ByteArrayType>().write_batch(&words, None, None)?;
                    column.close()?;
                }
            }
            if let Some(mut column) = group.next_column()? {
                let times = series.t_ns.get(range.clone()).unwrap_or_default();
                let times: Vec<i64> = times.iter().map(|ns| ns.cast_signed()).collect();
                column.typed::<Int64Type>().write_batch(&times, None, None)?;
                column.close()?;
            }
            if let Some(mut column) = group.next_column()? {
                let values = series.value.get(range.clone()).unwrap_or_default();
                column.typed::<DoubleType>().write_batch(values, None, None)?;
                column.close()?;
            }
            group.close()?;
            exported.samples += u64::try_from(range.len()).unwrap_or(u64::MAX);
        }
    }
    Ok(exported)
}
