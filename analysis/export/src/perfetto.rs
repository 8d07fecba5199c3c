//! The protobuf of Perfetto, for its UI and its trace processor: track events with interned names,
//! <https://perfetto.dev/docs/reference/synthetic-track-event>.
//!
//! A process is a track, a row of it a track below, an overlap within a row one more. An arrow
//! leads from a launching call to its work on the GPU. Series are counter tracks. Times count from
//! the session's start.

mod fields;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use flopwatch_model::wire::write::Message;
use flopwatch_model::{Category, ColumnId, CounterSeries, Events, Row, Timeline};

use self::fields::{annotation, counter, event, interned, packet, process, trace, track};
use super::nesting::{ByRow, PlacedEvent, TrackStep};
use super::tracks::{self, ProcessKey};
use crate::{ExportCounts, ExportError};

/// All packets are of one sequence, which a writer of a trace numbers as it likes.
const SEQUENCE: u64 = 1;

/// Interned names per packet, so that none is large.
const NAMES_PER_PACKET: usize = 1024;

/// What every event says of itself and of its row, where it is known: annotations, as its own
/// columns are.
const CORRELATION: &str = "correlation";
const THREAD: &str = "thread";
const DEVICE: &str = "device";
const CONTEXT: &str = "context";
const STREAM: &str = "stream";

/// Writes `timeline` to `out`, which holds a part of it after an error.
pub fn write<W: Write>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let capture = &timeline.capture;
    let mut writer = Writer {
        out: BufWriter::new(out),
        exported: ExportCounts::default(),
        names: StringInterner::default(),
        annotations: StringInterner::default(),
        launching: launching(timeline),
        next_track: 1,
    };
    writer.intern(timeline)?;
    let mut processes: BTreeMap<ProcessKey, u64> = BTreeMap::new();
    for (key, number) in tracks::processes(&capture.rows) {
        let uuid = writer.process(key, number)?;
        processes.insert(key, uuid);
    }
    let by_row = ByRow::new(timeline);
    for id in by_row.rows() {
        let Some(row) = timeline.row(id) else {
            continue;
        };
        let parent = processes.get(&ProcessKey::of(row)).copied().unwrap_or(0);
        let mut known: BTreeMap<u32, u64> = BTreeMap::new();
        by_row.walk(id, |step| match step {
            TrackStep::Begin(placed) => {
                let uuid = if let Some(uuid) = known.get(&placed.track) {
                    *uuid
                } else {
                    let uuid = writer.track(&tracks::name(row, placed.track), parent)?;
                    known.insert(placed.track, uuid);
                    uuid
                };
                writer.begin(uuid, row, placed)
            }
            TrackStep::End { track, at_ns } => {
                let uuid = known.get(&track).copied().unwrap_or(0);
                writer.event(at_ns, uuid, event::END, Message::new())
            }
        })?;
    }
    for series in &capture.counters {
        writer.series(series)?;
    }
    writer.out.flush()?;
    Ok(writer.exported)
}

/// Which calls launched something, by their index among the calls.
fn launching(timeline: &Timeline) -> Vec<bool> {
    let events = &timeline.capture.events;
    let calls = events.get(&Category::CudaApi).map_or(0, Events::len);
    let mut launching = vec![false; calls];
    for events in events.values() {
        for at in 0..events.len() {
            if let Some(call) = launch(events, at)
                && let Some(slot) = launching.get_mut(call)
            {
                *slot = true;
            }
        }
    }
    launching
}

/// The call that launched an event.
fn launch(events: &Events, at: usize) -> Option<usize> {
    usize::try_from(flopwatch_measures::record::own(events, ColumnId::Launch, at)?).ok()
}

/// Numbers of strings, from 1 on.
#[derive(Debug, Default)]
struct StringInterner<'a>(BTreeMap<&'a str, u64>);

impl<'a> StringInterner<'a> {
    fn add(&mut self, text: &'a str) {
        let next = u64::try_from(self.0.len()).unwrap_or(u64::MAX).saturating_add(1);
        self.0.entry(text).or_insert(next);
    }

    fn get(&self, text: &str) -> u64 {
        self.0.get(text).copied().unwrap_or(0)
    }
}

struct Writer<'a, W: Write> {
    out: BufWriter<W>,
    exported: ExportCounts,
    names: StringInterner<'a>,
    annotations: StringInterner<'a>,
    launching: Vec<bool>,
    next_track: u64,
}

impl<'a, W: Write> Writer<'a, W> {
    /// A packet goes out with what every packet has.
    fn packet(&mut self, message: Message, flags: u64) -> Result<(), ExportError> {
        let message = message
            .number(packet::SEQUENCE_ID, SEQUENCE)
            .number(packet::SEQUENCE_FLAGS, flags);
        let whole = Message::new().message(trace::PACKET, &message);
        Ok(self.out.write_all(whole.encoded())?)
    }

    /// Numbers all strings that events refer to, before the first event.
    fn intern(&mut self, timeline: &'a Timeline) -> Result<(), ExportError> {
        let mut entries: Vec<(u32, u64, &'a str)> = Vec::new();
        for name in [CORRELATION, THREAD, DEVICE, CONTEXT, STREAM] {
            self.annotations.add(name);
        }
        for (category, events) in &timeline.capture.events {
            entries.push((interned::CATEGORIES, category_number(*category), category.name()));
            for name in &events.names {
                self.names.add(name);
            }
            for column in &events.columns {
                self.annotations.add(column.id.name());
            }
        }
        let named = |field: u32, all: &StringInterner<'a>| -> Vec<(u32, u64, &'a str)> {
            all.0.iter().map(|(text, number)| (field, *number, *text)).collect()
        };
        entries.extend(named(interned::ANNOTATION_NAMES, &self.annotations));
        entries.extend(named(interned::NAMES, &self.names));
        let mut flags = packet::STATE_CLEARED | packet::NEEDS_STATE;
        for entries in entries.chunks(NAMES_PER_PACKET) {
            let data = entries.iter().fold(Message::new(), |data, (field, number, text)| {
                let entry = Message::new().number(interned::IID, *number).text(interned::NAME, text);
                data.message(*field, &entry)
            });
            self.packet(Message::new().message(packet::INTERNED_DATA, &data), flags)?;
            flags = packet::NEEDS_STATE;
        }
        Ok(())
    }

    fn describe(&mut self, describe: impl FnOnce(Message) -> Message) -> Result<u64, ExportError> {
        let uuid = self.next_track;
        self.next_track = uuid.saturating_add(1);
        let descriptor = describe(Message::new().number(track::UUID, uuid));
        let message = Message::new().message(packet::TRACK_DESCRIPTOR, &descriptor);
        self.packet(message, packet::NEEDS_STATE)?;
        Ok(uuid)
    }

    fn process(&mut self, key: ProcessKey, number: u32) -> Result<u64, ExportError> {
        let name = key.name();
        self.describe(|descriptor| {
            let process = Message::new()
                .number(process::PID, number.into())
                .text(process::NAME, &name);
            descriptor
                .message(track::PROCESS, &process)
                .number(track::CHILD_ORDERING, track::EXPLICIT)
        })
    }

    fn track(&mut self, name: &str, parent: u64) -> Result<u64, ExportError> {
        let rank = self.next_track;
        self.describe(|descriptor| {
            descriptor
                .text(track::NAME, name)
                .number(track::PARENT, parent)
                .number(track::SIBLING_RANK, rank)
                .number(track::SIBLING_MERGE, track::MERGE_NONE)
        })
    }

    fn event(&mut self, at_ns: u64, uuid: u64, kind: u64, message: Message) -> Result<(), ExportError> {
        let message = message.number(event::TYPE, kind).number(event::TRACK, uuid);
        let packet = Message::new()
            .number(packet::TIMESTAMP, at_ns)
            .message(packet::TRACK_EVENT, &message);
        self.packet(packet, packet::NEEDS_STATE)
    }

    fn begin(&mut self, uuid: u64, row: &Row, placed: PlacedEvent<'_>) -> Result<(), ExportError> {
        let PlacedEvent { events, at, .. } = placed;
        let mut message = Message::new()
            .number(event::CATEGORY, category_number(placed.category))
            .number(event::NAME, self.names.get(events.name_of(at)));
        let correlation = events.correlation.get(at).copied().unwrap_or(0);
        let ids = [
            (CORRELATION, (correlation != 0).then_some(u64::from(correlation))),
            (THREAD, row.thread),
            (DEVICE, row.device.map(u64::from)),
            (CONTEXT, row.context),
            (STREAM, row.stream),
        ];
        let ids = ids.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let own = events.columns.iter().filter_map(|column| {
            let value = flopwatch_measures::record::own(events, column.id, at)?;
            Some((column.id.name(), value))
        });
        for (name, value) in ids.chain(own) {
            let reply = Message::new()
                .number(annotation::NAME, self.annotations.get(name))
                .number(annotation::UINT, value);
            message = message.message(event::ANNOTATION, &reply);
        }
        let texts = events.columns.iter().filter(|column| column.id.is_text());
        for id in texts.map(|column| column.id) {
            if let Some(text) = events.text(id, at) {
                let reply = Message::new()
                    .number(annotation::NAME, self.annotations.get(id.name()))
                    .text(annotation::STRING, text);
                message = message.message(event::ANNOTATION, &reply);
            }
        }
        // A flow has the number of its call, from 1 on.
        let flow = |call: usize| u64::try_from(call).unwrap_or(u64::MAX).saturating_add(1);
        if placed.category == Category::CudaApi && self.launching.get(at).copied().unwrap_or(false) {
            message = message.fixed(event::FLOW, flow(at));
        }
        if let Some(call) = launch(events, at) {
            message = message.fixed(event::LAST_OF_FLOW, flow(call));
        }
        self.event(placed.start_ns, uuid, event::BEGIN, message)?;
        self.exported.events += 1;
        Ok(())
    }

    fn series(&mut self, series: &CounterSeries) -> Result<(), ExportError> {
        let name = format!("{} {} {}", series.source, series.device, series.metric);
        let unit = Message::new().text(counter::UNIT_NAME, &series.unit);
        let uuid = self.describe(|descriptor| descriptor.text(track::NAME, &name).message(track::COUNTER, &unit))?;
        for (t_ns, value) in series.t_ns.iter().zip(&series.value) {
            let message = Message::new().double(event::DOUBLE_VALUE, *value);
            self.event(*t_ns, uuid, event::COUNTER, message)?;
            self.exported.samples += 1;
        }
        Ok(())
    }
}

/// Number of an interned category: its place in the published list, from 1 on.
fn category_number(category: Category) -> u64 {
    let at = Category::ALL.iter().position(|known| *known == category);
    at.and_then(|at| u64::try_from(at).ok()).map_or(0, |at| at + 1)
}
