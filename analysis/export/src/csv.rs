//! A line per event, or per sample, for spreadsheets and scripts. A cell that does not apply is
//! empty, and no text is a formula.

use std::io::{BufWriter, Write};

use flopwatch_measures::record::{Cells, Kind};
use flopwatch_model::spreadsheet::inert;
use flopwatch_model::{CounterSeries, Timeline};

use crate::{ExportCounts, ExportError};

/// Columns of the table of samples.
pub(super) const SAMPLE_FIELDS: [&str; 6] = ["source", "device", "metric", "unit", "t_ns", "value"];

/// Writes a line per event.
pub fn events<W: Write>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(out));
    let exported = event_lines(timeline, &mut writer)?;
    writer.flush()?;
    Ok(exported)
}

/// Writes a line per sample of a series.
pub fn samples<W: Write>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(out));
    let exported = sample_lines(&timeline.capture.counters, &mut writer)?;
    writer.flush()?;
    Ok(exported)
}

fn event_lines<W: Write>(timeline: &Timeline, writer: &mut csv::Writer<W>) -> Result<ExportCounts, ExportError> {
    let fields = flopwatch_measures::record::fields(timeline);
    writer.write_record(fields.iter().map(|field| field.name()))?;
    let mut exported = ExportCounts::default();
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
                    writer.write_field(inert(cells.text(field, at)).as_bytes())?;
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

fn sample_lines<W: Write>(
    counters: &[CounterSeries],
    writer: &mut csv::Writer<W>,
) -> Result<ExportCounts, ExportError> {
    writer.write_record(SAMPLE_FIELDS)?;
    let mut exported = ExportCounts::default();
    for series in counters {
        for (t_ns, value) in series.t_ns.iter().zip(&series.value) {
            let words = [&series.source, &series.device, &series.metric, &series.unit];
            for word in words {
                writer.write_field(inert(word).as_bytes())?;
            }
            // The shortest text that reads back as the same number.
            writer.write_record([t_ns.to_string(), value.to_string()])?;
            exported.samples += 1;
        }
    }
    Ok(exported)
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Capture, Category, Event, Events};

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<ExportCounts, ExportError>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_and_units_are_no_formulas_and_numbers_are_as_they_were() {
        let mut ranges = Events::new(Category::NvtxRange);
        ranges.names = vec!["=HYPERLINK(\"http://a\")".to_owned()];
        ranges.push(Event::default(), &[]);
        let series = CounterSeries {
            source: "nvml".to_owned(),
            device: "-gpu0".to_owned(),
            metric: "power".to_owned(),
            unit: "@W".to_owned(),
            t_ns: vec![1],
            value: vec![-1.5],
        };
        let timeline = Timeline {
            capture: Capture {
                events: [(Category::NvtxRange, ranges)].into(),
                counters: vec![series],
                ..Capture::default()
            },
            ..Timeline::default()
        };
        let lines = text(|out| events(&timeline, out));
        assert!(lines.contains("\"'=HYPERLINK(\"\"http://a\"\")\""), "{lines}");
        let lines = text(|out| samples(&timeline, out));
        assert!(lines.ends_with("\nnvml,'-gpu0,power,'@W,1,-1.5\n"), "{lines}");
    }
}
