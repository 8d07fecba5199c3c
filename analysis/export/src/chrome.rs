//! The JSON of chrome://tracing: "Trace Event Format",
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.
//!
//! Complete events (`X`) on numbered tracks; a track's `M` event names it. Series are counters
//! (`C`) of process 0.
//!
//! What the format has no place for stands where viewers pass over it: in `otherData` what the
//! capture says of itself ([`TraceAbout`]), and beside the name of a track the [`Row`] that it
//! shows. So our own reader gives the capture back.

use std::io::{BufWriter, Write};

use flopwatch_model::{CounterSeries, LossReason, Row, Timeline, TraceAbout};

use super::json::Microseconds;
use super::nesting::{ByRow, PlacedEvent, TrackStep};
use super::tracks::{self, ProcessKey};
use crate::{ExportCounts, ExportError};

/// Writes `timeline` to `out`, which holds a part of it after an error.
pub fn write<W: Write>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let mut writer = Writer {
        out: BufWriter::new(out),
        exported: ExportCounts::default(),
        first: true,
    };
    let capture = &timeline.capture;
    let about = TraceAbout {
        writer: TraceAbout::WRITER.to_owned(),
        schema_version: super::SCHEMA_VERSION,
        session_id: timeline.session_id.clone(),
        session_start_utc_ns: capture.session_start_utc_ns.map(|ns| ns.to_string()),
        total_duration_ns: capture.duration_ns,
        source: capture.source.clone(),
        captured: capture.captured.clone(),
        devices: capture.devices.clone(),
        drops: capture.losses.list(),
        redactions: capture.redactions,
    };
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
    serde_json::to_writer(&mut writer.out, &about)?;
    writer.out.write_all(b",\"traceEvents\":[")?;
    let numbers = tracks::processes(&capture.rows);
    for (key, number) in &numbers {
        writer.named(*number, &key.name())?;
    }
    let by_row = ByRow::new(timeline);
    // Tracks are numbered through, so that none of two processes are taken for one.
    let mut next = 1_u32;
    for id in by_row.rows() {
        let Some(row) = timeline.row(id) else {
            continue;
        };
        let process = numbers.get(&ProcessKey::of(row)).copied().unwrap_or(tracks::SERIES);
        let mut known: Vec<(u32, u32)> = Vec::new();
        by_row.walk(id, |step| {
            let TrackStep::Begin(placed) = step else { return Ok(()) };
            let known_as = known.iter().find(|(track, _)| *track == placed.track);
            let track = if let Some((_, number)) = known_as {
                *number
            } else {
                let number = next;
                next = next.saturating_add(1);
                known.push((placed.track, number));
                writer.track(process, number, &tracks::name(row, placed.track), row)?;
                number
            };
            writer.event(process, track, row, placed)
        })?;
    }
    if !capture.counters.is_empty() {
        writer.named(tracks::SERIES, "series")?;
    }
    for series in &capture.counters {
        writer.series(series)?;
    }
    writer.out.write_all(b"\n]}\n")?;
    writer.out.flush()?;
    Ok(writer.exported)
}

struct Writer<W: Write> {
    out: BufWriter<W>,
    exported: ExportCounts,
    first: bool,
}

impl<W: Write> Writer<W> {
    fn next(&mut self) -> Result<(), ExportError> {
        let separator = if self.first { "\n" } else { ",\n" };
        self.first = false;
        Ok(self.out.write_all(separator.as_bytes())?)
    }

    fn text(&mut self, text: &str) -> Result<(), ExportError> {
        Ok(serde_json::to_writer(&mut self.out, text)?)
    }

    /// Says the name of a process.
    fn named(&mut self, process: u32, name: &str) -> Result<(), ExportError> {
        self.describe("process_name", process, 0, name)?;
        Ok(self.out.write_all(b"}}")?)
    }

    /// Says the name of a track, and which row it shows.
    fn track(&mut self, process: u32, track: u32, name: &str, row: &Row) -> Result<(), ExportError> {
        self.describe("thread_name", process, track, name)?;
        self.out.write_all(b",\"row\":")?;
        serde_json::to_writer(&mut self.out, row)?;
        Ok(self.out.write_all(b"}}")?)
    }

    /// Begins the name of a process or a track, in arguments that are still open.
    fn describe(&mut self, what: &str, process: u32, track: u32, name: &str) -> Result<(), ExportError> {
        self.next()?;
        write!(
            self.out,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{process},\"tid\":{track},\"args\":{{\"name\":"
        )?;
        self.text(name)
    }

    fn event(&mut self, process: u32, track: u32, row: &Row, placed: PlacedEvent<'_>) -> Result<(), ExportError> {
        self.next()?;
        self.out.write_all(b"{\"ph\":\"X\",\"name\":")?;
        self.text(placed.events.name_of(placed.at))?;
        write!(
            self.out,
            ",\"cat\":\"{}\",\"pid\":{process},\"tid\":{track},\"ts\":{},\"dur\":{}",
            placed.category.name(),
            Microseconds(placed.start_ns),
            Microseconds(placed.duration_ns)
        )?;
        let correlation = placed.events.correlation.get(placed.at).copied().unwrap_or(0);
        let ids = [
            ("correlation", (correlation != 0).then_some(u64::from(correlation))),
            ("thread", row.thread),
            ("device", row.device.map(u64::from)),
            ("context", row.context),
            ("stream", row.stream),
        ];
        let own = placed.events.columns.iter().map(|column| {
            let value = flopwatch_measures::record::own(placed.events, column.id, placed.at);
            (column.id.name(), value)
        });
        let mut separator = ",\"args\":{";
        for (name, value) in ids.into_iter().chain(own) {
            if let Some(value) = value {
                write!(self.out, "{separator}\"{name}\":{value}")?;
                separator = ",";
            }
        }
        let texts = placed.events.columns.iter().map(|column| column.id);
        for id in texts.filter(|id| id.is_text()) {
            if let Some(text) = placed.events.text(id, placed.at) {
                write!(self.out, "{separator}\"{}\":", id.name())?;
                self.text(text)?;
                separator = ",";
            }
        }
        if separator == "," {
            self.out.write_all(b"}")?;
        }
        self.out.write_all(b"}")?;
        self.exported.events += 1;
        Ok(())
    }

    fn series(&mut self, series: &CounterSeries) -> Result<(), ExportError> {
        let name = format!("{} {} {}", series.source, series.device, series.metric);
        let unit = if series.unit.is_empty() { "value" } else { &series.unit };
        for (t_ns, value) in series.t_ns.iter().zip(&series.value) {
            // JSON has no text for these.
            if !value.is_finite() {
                let left_out = &mut self.exported.left_out;
                left_out.add(LossReason::Unsupported, "samples that are no finite numbers", 1);
                continue;
            }
            self.next()?;
            self.out.write_all(b"{\"ph\":\"C\",\"name\":")?;
            self.text(&name)?;
            let (process, time) = (tracks::SERIES, Microseconds(*t_ns));
            write!(self.out, ",\"pid\":{process},\"tid\":0,\"ts\":{time},\"args\":{{")?;
            self.text(unit)?;
            self.out.write_all(b":")?;
            serde_json::to_writer(&mut self.out, value)?;
            self.out.write_all(b"}}")?;
            self.exported.samples += 1;
        }
        Ok(())
    }
}
