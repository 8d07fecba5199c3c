//! Puts the parts of a trace together: numbers for names and rows that hold for all of them, ranges from their two halves,
//! samples into series.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::Failure;
use super::batch::Batch;
use super::dictionary::Dictionary;
use super::event::{Arguments, Event, Id};
use super::json::unescape;
use super::part::{Edge, Part, RowKey, no_events};
use super::series::Series;
use crate::limits::ReadLimits;
use crate::model::{Capture, Category, ColumnId, LossReason, Track};
use crate::redact;

/// An [`Id`] that outlives its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum OwnId {
    None,
    Number(i64),
    Text(Vec<u8>),
}

impl From<Id<'_>> for OwnId {
    fn from(id: Id<'_>) -> Self {
        match id {
            Id::None => Self::None,
            Id::Number(number) => Self::Number(number),
            Id::Text(text) => Self::Text(text.to_vec()),
        }
    }
}

impl OwnId {
    fn borrow(&self) -> Id<'_> {
        match self {
            Self::None => Id::None,
            Self::Number(number) => Id::Number(*number),
            Self::Text(text) => Id::Text(text),
        }
    }
}

/// A [`RowKey`] that outlives its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnRow {
    pub(super) track: Track,
    pub(super) process: OwnId,
    pub(super) thread: OwnId,
    pub(super) device: Option<u32>,
    pub(super) context: Option<u64>,
    pub(super) stream: Option<u64>,
}

impl From<RowKey<'_>> for OwnRow {
    fn from(key: RowKey<'_>) -> Self {
        Self {
            track: key.track,
            process: key.process.into(),
            thread: key.thread.into(),
            device: key.device,
            context: key.context,
            stream: key.stream,
        }
    }
}

/// A range that began and has not ended.
#[derive(Debug)]
struct Open {
    category: Vec<u8>,
    name: Vec<u8>,
    process: OwnId,
    thread: OwnId,
    start: i64,
    end: i64,
    arguments: Arguments<'static>,
}

impl Open {
    fn event(&self) -> Event<'_> {
        Event {
            phase: b'X',
            category: &self.category,
            name: &self.name,
            process: self.process.borrow(),
            thread: self.thread.borrow(),
            start: Some(self.start),
            duration: self.end.checked_sub(self.start),
            arguments: self.arguments,
            members: &[],
        }
    }
}

/// Everything that was read so far.
pub(super) struct Gather<'a> {
    pub(super) limits: &'a ReadLimits,
    pub(super) capture: Capture,
    pub(super) rows: Vec<OwnRow>,
    by_row: HashMap<OwnRow, u32>,
    names: BTreeMap<Category, HashMap<Vec<u8>, u32>>,
    pub(super) dictionaries: BTreeMap<(Category, ColumnId), Dictionary>,
    /// Events that were counted and not appended yet.
    batches: Vec<Batch>,
    string_bytes: u64,
    events: u64,
    open: BTreeMap<(OwnId, OwnId), Vec<Open>>,
    open_count: u64,
    /// The last time of a begin or an end, where what had not ended is cut.
    last: i64,
    pub(super) series: Series,
    pub(super) processes: BTreeMap<OwnId, String>,
    pub(super) threads: BTreeMap<(OwnId, OwnId), String>,
    /// What times count from, in ns since the Unix epoch.
    pub(super) base: Option<i64>,
}

impl<'a> Gather<'a> {
    pub(super) fn new(limits: &'a ReadLimits) -> Self {
        Self {
            limits,
            capture: Capture::default(),
            rows: Vec::new(),
            by_row: HashMap::new(),
            names: BTreeMap::new(),
            dictionaries: BTreeMap::new(),
            batches: Vec::new(),
            string_bytes: 0,
            events: 0,
            open: BTreeMap::new(),
            open_count: 0,
            last: i64::MIN,
            series: Series::default(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            base: None,
        }
    }

    /// Whether there is no event and no sample so far.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0 && self.open_count == 0
    }

    /// Counts one loss.
    pub(super) fn lose(&mut self, reason: LossReason, what: &str) {
        self.capture.drops.add(reason, what, 1);
    }

    /// Notes that the text could not be read to its end.
    pub(super) fn broken(&mut self, error: &std::io::Error) {
        let what = format!("rest of the file: {}", error.kind());
        self.lose(LossReason::Truncated, &what);
    }

    /// Appends the events that were added: all that takes long and needs no text. `expected` says of a number of events how many there
    /// will be in the end, where that can be known.
    pub(super) fn append(&mut self, expected: impl Fn(usize) -> Option<usize>) {
        for batch in self.batches.drain(..) {
            let category = batch.category;
            let events = self.capture.events.entry(category);
            let events = events.or_insert_with(|| no_events(category));
            let more = batch.events.len();
            // Memory that grows is copied, and copies are of pages that are touched for the first time.
            if events.start_ns.capacity() - events.len() < more {
                // A file that somebody still writes to is longer than it was.
                let all = expected(events.len() + more).unwrap_or(0);
                events.reserve(all.saturating_sub(events.len()));
            }
            batch.append(events);
        }
    }

    /// Adds the events of a part, which [`Gather::append`] appends; parts come in the order of the text.
    pub(super) fn add(&mut self, part: Part<'_>) -> Result<(), Failure> {
        let rows = part.rows.list.iter().map(|key| self.row(*key));
        let rows = rows.collect::<Result<Vec<u32>, Failure>>()?;
        for (category, columns) in part.columns {
            self.count(columns.events.count())?;
            let names = columns.names.list.iter().map(|raw| self.name(category, raw));
            let names = names.collect::<Result<Vec<u32>, Failure>>()?;
            let sparse = self.sparse(category, columns.sparse)?;
            self.batches.push(Batch {
                category,
                events: columns.events,
                rows: rows.clone(),
                names,
                sparse,
            });
        }
        for drop in part.drops.list() {
            self.capture.drops.add(drop.reason, &drop.what, drop.count);
        }
        for event in &part.descriptions {
            self.describe(event)?;
        }
        for sample in &part.samples {
            self.count(1)?;
            self.sample(sample.at, &sample.event)?;
        }
        self.join(&part.edges)
    }

    fn count(&mut self, events: u64) -> Result<(), Failure> {
        self.events = self.events.saturating_add(events);
        if self.events > self.limits.max_events {
            let limit = self.limits.max_events;
            return Err(Failure::TooMany { what: "events", limit });
        }
        Ok(())
    }

    fn row(&mut self, key: RowKey<'_>) -> Result<u32, Failure> {
        let key = OwnRow::from(key);
        if let Some(row) = self.by_row.get(&key) {
            return Ok(*row);
        }
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if next >= self.limits.max_rows {
            return Err(Failure::TooMany {
                what: "streams and threads",
                limit: u64::from(self.limits.max_rows),
            });
        }
        if let OwnId::Text(text) = &key.thread {
            self.take(text.len())?;
        }
        if let OwnId::Text(text) = &key.process {
            self.take(text.len())?;
        }
        self.by_row.insert(key.clone(), next);
        self.rows.push(key);
        Ok(next)
    }

    fn name(&mut self, category: Category, raw: &[u8]) -> Result<u32, Failure> {
        if let Some(name) = self.names.entry(category).or_default().get(raw) {
            return Ok(*name);
        }
        self.take(raw.len())?;
        let text = self.publishable(&unescape(raw));
        let events = self
            .capture
            .events
            .entry(category)
            .or_insert_with(|| no_events(category));
        let next = u32::try_from(events.names.len()).unwrap_or(u32::MAX);
        events.names.push(text);
        self.names.entry(category).or_default().insert(raw.to_vec(), next);
        Ok(next)
    }

    /// Counts bytes of strings that are kept.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        self.string_bytes = self
            .string_bytes
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.string_bytes > self.limits.max_string_bytes {
            let limit = self.limits.max_string_bytes;
            return Err(Failure::TooMany {
                what: "bytes of strings",
                limit,
            });
        }
        Ok(())
    }

    /// `text` as it may be published: secrets replaced and counted, without NUL, which files cannot hold.
    pub(super) fn publishable(&mut self, text: &str) -> String {
        let (clean, count) = redact::redact(text);
        self.capture.redactions = self.capture.redactions.saturating_add(count);
        clean.replace('\0', "\u{fffd}")
    }

    /// Takes names of processes and threads.
    fn describe(&mut self, event: &Event<'_>) -> Result<(), Failure> {
        let name = event.arguments.name;
        if !matches!(event.name, b"process_name" | b"thread_name") || name.is_empty() {
            return Ok(());
        }
        self.take(name.len())?;
        let text = self.publishable(&unescape(name));
        let process = OwnId::from(event.process);
        if event.name == b"process_name" {
            self.processes.insert(process, text);
        } else {
            self.threads.insert((process, event.thread.into()), text);
        }
        let limit = u64::from(self.limits.max_rows);
        let described = self.processes.len() + self.threads.len();
        if u64::try_from(described).unwrap_or(u64::MAX) > limit {
            return Err(Failure::TooMany {
                what: "named processes and threads",
                limit,
            });
        }
        Ok(())
    }

    /// Makes ranges of begins and ends: on each thread an end belongs to the last begin that has none.
    fn join(&mut self, edges: &[Edge<'_>]) -> Result<(), Failure> {
        let mut closed = Vec::new();
        for edge in edges {
            let Some(at) = edge.event.start else { continue };
            self.last = self.last.max(at);
            let thread = (OwnId::from(edge.event.process), OwnId::from(edge.event.thread));
            if edge.begins {
                self.open_count += 1;
                if self.open_count > u64::from(self.limits.max_rows) {
                    let limit = u64::from(self.limits.max_rows);
                    return Err(Failure::TooMany {
                        what: "ranges that have not ended",
                        limit,
                    });
                }
                self.take(edge.event.name.len() + edge.event.category.len())?;
                self.open.entry(thread.clone()).or_default().push(Open {
                    category: edge.event.category.to_vec(),
                    name: edge.event.name.to_vec(),
                    process: thread.0,
                    thread: thread.1,
                    start: at,
                    end: at,
                    arguments: edge.event.arguments.unnamed(),
                });
            } else if let Some(mut open) = self.open.get_mut(&thread).and_then(Vec::pop) {
                self.open_count -= 1;
                let kept = u64::try_from(open.name.len() + open.category.len()).unwrap_or(0);
                self.string_bytes = self.string_bytes.saturating_sub(kept);
                open.end = at;
                closed.push(open);
            } else {
                self.lose(LossReason::Skipped, "ends of ranges that did not begin");
            }
        }
        self.add_ranges(&closed)
    }

    fn add_ranges(&mut self, ranges: &[Open]) -> Result<(), Failure> {
        if ranges.is_empty() {
            return Ok(());
        }
        let mut part = Part::new(true);
        for open in ranges {
            part.complete(&open.event());
        }
        self.add(part)
    }

    /// Ends what had not ended with the last begin or end of the file.
    pub(super) fn close(&mut self) -> Result<(), Failure> {
        let mut left: Vec<Open> = std::mem::take(&mut self.open).into_values().flatten().collect();
        let count = u64::try_from(left.len()).unwrap_or(u64::MAX);
        self.capture
            .drops
            .add(LossReason::Truncated, "ranges that had not ended", count);
        for open in &mut left {
            open.end = self.last;
        }
        self.add_ranges(&left)
    }
}
