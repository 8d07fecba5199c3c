//! A line per event, or per sample, for spreadsheets and scripts. A cell that does not apply is empty.

use std::io::{BufWriter, Write};

use flopwatch_measures::record::{Cells, Kind};
use flopwatch_model::{CounterSeries, Timeline};

use crate::{ExportError, Exported};

/// Columns of the table of samples.
pub(super) const SAMPLE_FIELDS: [&str; 6] = ["source", "device", "metric", "unit", "t_ns", "value"];

/// Writes a line per event.
pub fn events<W: Write>(timeline: &Timeline, out: W) -> Result<Exported, ExportError> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(out));
    let exported = event_lines(timeline, &mut writer)?;
    writer.flush()?;
    Ok(exported)
}

/// Writes a line per sample of a series.
pub fn samples<W: Write>(timeline: &Timeline, out: W) -> Result<Exported, ExportError> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(out));
    let exported = sample_lines(&timeline.capture.counters, &mut writer)?;
    writer.flush()?;
    Ok(exported)
}

fn event_lines<W: Write>(timeline: &Timeline, writer: &mut csv::Writer<W>) -> Result<Exported, ExportError> {
    let fields = flopwatch_measures::record::fields(timeline);
    writer.write_record(fields.iter().map(|field| field.name()))?;
    let mut exported = Exported::default();
    let mut number = String::new();
    for (category, events) in &timeline.capture.events {
        let cells = Cells {
            category: *category,
            events,
            rows: &timeline.capture.rows,
        };
        for at in 0..events.len() {
            for field in fields.iter().copied() {
                if field.kind() == Kind::Text {
                    writer.write_field(cells.text(field, at))?;
                    continue;
                }
                number.clear();
                if let Some(value) = cells.number(field, at) {
                    number.push_str(&value.to_string());
                }
                writer.write_field(&number)?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        exported.events += events.count();
    }
    Ok(exported)
}

fn sample_lines<W: Write>(counters: &[CounterSeries], writer: &mut csv::Writer<W>) -> Result<Exported, ExportError> {
    writer.write_record(SAMPLE_FIELDS)?;
    let mut exported = Exported::default();
    for series in counters {
        for (t_ns, value) in series.t_ns.iter().zip(&series.value) {
            let words = [&series.source, &series.device, &series.metric, &series.unit];
            for word in words {
                writer.write_field(word)?;
            }
            // The shortest text that reads back as the same number.
            writer.write_record([t_ns.to_string(), value.to_string()])?;
            exported.samples += 1;
        }
    }
    Ok(exported)
}
