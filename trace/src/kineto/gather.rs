//! Puts the parts of a trace together: numbers for names and rows that hold for all of them, ranges
//! from their two halves, samples into series.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::Failure;
use super::batch::Batch;
use super::dictionary::Dictionary;
use super::event::{Event, Id};
use super::interner::Interner;
use super::json::unescape;
use super::pairs::OwnFlow;
use super::part::{Part, RowKey, is_of_gpu, no_events};
use super::ranges::OwnedEdge;
use super::series::Series;
use super::writer_metadata::{self, WriterMetadata};
use crate::limits::ReadLimits;
use crate::redact;
use flopwatch_model::{Capture, Category, ColumnId, LossReason, NameId, RowId, Track, count};

/// An [`Id`] that outlives its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum OwnedId {
    None,
    Number(i64),
    Text(Vec<u8>),
}

impl From<Id<'_>> for OwnedId {
    fn from(id: Id<'_>) -> Self {
        match id {
            Id::None => Self::None,
            Id::Number(number) => Self::Number(number),
            Id::Text(text) => Self::Text(text.to_vec()),
        }
    }
}

impl OwnedId {
    pub(super) fn borrow(&self) -> Id<'_> {
        match self {
            Self::None => Id::None,
            Self::Number(number) => Id::Number(*number),
            Self::Text(text) => Id::Text(text),
        }
    }

    /// Bytes of its text.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::None | Self::Number(_) => 0,
            Self::Text(text) => text.len(),
        }
    }
}

/// A [`RowKey`] that outlives its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnedRow {
    pub(super) track: Track,
    pub(super) process: OwnedId,
    pub(super) thread: OwnedId,
    pub(super) device: Option<u32>,
    pub(super) context: Option<u64>,
    pub(super) stream: Option<u64>,
    pub(super) behind: OwnedId,
    /// Of GPU work: the process that it belongs to, once that is decided.
    pub(super) owner: OwnedId,
}

impl From<RowKey<'_>> for OwnedRow {
    fn from(key: RowKey<'_>) -> Self {
        Self {
            track: key.track,
            process: key.process.into(),
            thread: key.thread.into(),
            device: key.device,
            context: key.context,
            stream: key.stream,
            behind: key.behind.into(),
            owner: OwnedId::None,
        }
    }
}

/// The id of the row behind so many; fails where the limit allows no more.
pub(super) fn next_row(rows: usize, limits: &ReadLimits) -> Result<RowId, Failure> {
    let limit = limits.max_rows;
    let next = RowId::from_index(rows).filter(|row| row.number() < limit);
    next.ok_or(Failure::TooMany {
        what: "streams and threads",
        limit: u64::from(limit),
    })
}

/// Everything that was read so far.
pub(super) struct Gather<'a> {
    pub(super) limits: &'a ReadLimits,
    pub(super) capture: Capture,
    pub(super) rows: Vec<OwnedRow>,
    by_row: HashMap<OwnedRow, RowId>,
    names: BTreeMap<Category, HashMap<Vec<u8>, NameId>>,
    pub(super) dictionaries: BTreeMap<(Category, ColumnId), Dictionary>,
    /// Events that were counted and not appended yet.
    batches: Vec<Batch>,
    string_bytes: u64,
    events: u64,
    /// Events of each category, with those that were not appended yet.
    so_far: BTreeMap<Category, usize>,
    /// Begins and ends of ranges, in the order of the text.
    pub(super) edges: Vec<OwnedEdge>,
    /// Names that these say.
    pub(super) edge_names: Interner<Vec<u8>>,
    /// Arrows from calls to their work, as long as none of the work says its call itself.
    pub(super) flows: Vec<OwnFlow>,
    /// Whether GPU work says which call launched it.
    pub(super) correlated: bool,
    /// Threads of ranges and arrows.
    pub(super) marked: Interner<(OwnedId, OwnedId)>,
    /// Processes of allocations, which name theirs by the number here.
    pub(super) allocating: Interner<OwnedId>,
    visited: BTreeSet<OwnedId>,
    last: OwnedId,
    /// Whether calls or operators of a process stand before and behind those of another one: then
    /// where an event stands does not tell whose it is.
    pub(super) returned: bool,
    pub(super) series: Series,
    pub(super) processes: BTreeMap<OwnedId, String>,
    pub(super) threads: BTreeMap<(OwnedId, OwnedId), String>,
    /// What times count from, in ns since the Unix epoch.
    pub(super) base: Option<i64>,
    /// What a trace of ours says.
    pub(super) writer_metadata: Option<WriterMetadata>,
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
            so_far: BTreeMap::new(),
            edges: Vec::new(),
            edge_names: Interner::default(),
            flows: Vec::new(),
            correlated: false,
            marked: Interner::default(),
            allocating: Interner::default(),
            visited: BTreeSet::new(),
            last: OwnedId::None,
            returned: false,
            series: Series::default(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            base: None,
            writer_metadata: None,
        }
    }

    /// Whether there is no event and no sample so far.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Counts one loss.
    pub(super) fn count_loss(&mut self, reason: LossReason, what: &str) {
        self.capture.losses.add(reason, what, 1);
    }

    /// Notes that the text could not be read to its end.
    pub(super) fn count_read_error(&mut self, error: &std::io::Error) {
        let what = format!("rest of the file: {}", error.kind());
        self.count_loss(LossReason::Truncated, &what);
    }

    /// Appends the events that were added: all that takes long and needs no text. `expected` says
    /// of a number of events how many there will be in the end, where that can be known.
    pub(super) fn append(&mut self, expected: impl Fn(usize) -> Option<usize>) {
        for batch in self.batches.drain(..) {
            let category = batch.category;
            let events = self.capture.events.entry(category);
            let events = events.or_insert_with(|| no_events(category));
            let more = batch.events.len();
            // Memory that grows is copied, and copies are of pages that are touched for the first
            // time.
            if events.start_ns.capacity() - events.len() < more {
                // A file that somebody still writes to is longer than it was.
                let all = expected(events.len() + more).unwrap_or(0);
                events.reserve(all.saturating_sub(events.len()));
            }
            batch.append(events);
        }
    }

    /// Adds the events of a part, which [`Gather::append`] appends; parts come in the order of the
    /// text.
    pub(super) fn add(&mut self, part: Part<'_>) -> Result<(), Failure> {
        let rows = part.rows.list.iter().map(|key| self.row(*key));
        let rows = rows.collect::<Result<Vec<RowId>, Failure>>()?;
        self.follow(&part);
        self.take_flows(part.correlated, &part.flows)?;
        let before = self.so_far.clone();
        for (category, columns) in part.columns {
            self.count(columns.events.count())?;
            *self.so_far.entry(category).or_default() += columns.events.len();
            let names = columns.names.list.iter().map(|raw| self.name(category, raw));
            let names = names.collect::<Result<Vec<NameId>, Failure>>()?;
            let sparse = self.sparse(category, columns.sparse)?;
            self.batches.push(Batch {
                category,
                events: columns.events,
                rows: rows.clone(),
                names,
                sparse,
            });
        }
        for drop in part.losses.list() {
            self.capture.losses.add(drop.reason, &drop.what, drop.count);
        }
        for event in &part.descriptions {
            self.describe(event)?;
        }
        for sample in &part.samples {
            self.count(1)?;
            self.sample(sample.at, &sample.event)?;
        }
        self.take_edges(&part.edges, &before)
    }

    /// Notes whose calls and operators a part holds.
    fn follow(&mut self, part: &Part<'_>) {
        for process in &part.visited.list {
            let process = OwnedId::from(*process);
            if process != self.last {
                self.returned |= !self.visited.insert(process.clone());
                self.last = process;
            }
        }
        self.returned |= part.returned;
        if part.last != Id::None {
            self.last = part.last.into();
        }
    }

    pub(super) fn count(&mut self, events: u64) -> Result<(), Failure> {
        self.events = self.events.saturating_add(events);
        if self.events > self.limits.max_events {
            let limit = self.limits.max_events;
            return Err(Failure::TooMany { what: "events", limit });
        }
        Ok(())
    }

    fn row(&mut self, key: RowKey<'_>) -> Result<RowId, Failure> {
        let mut key = OwnedRow::from(key);
        if is_of_gpu(key.track) && key.behind == OwnedId::None {
            key.behind = self.last.clone();
        }
        if let Some(row) = self.by_row.get(&key) {
            return Ok(*row);
        }
        let next = next_row(self.rows.len(), self.limits)?;
        for id in [&key.process, &key.thread, &key.behind] {
            self.take(id.bytes())?;
        }
        self.by_row.insert(key.clone(), next);
        self.rows.push(key);
        Ok(next)
    }

    fn name(&mut self, category: Category, raw: &[u8]) -> Result<NameId, Failure> {
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
        let next = NameId::from_index(events.names.len()).ok_or(Failure::TooMany {
            what: "names",
            limit: u64::from(u32::MAX),
        })?;
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

    /// `text` as it may be published: secrets replaced and counted, without NUL, which files cannot
    /// hold.
    pub(super) fn publishable(&mut self, text: &str) -> String {
        let (clean, count) = redact::redact(text);
        self.capture.redactions = self.capture.redactions.saturating_add(count);
        clean.replace('\0', "\u{fffd}")
    }

    /// The text of a name that a description gives; `None` where it is empty.
    fn described(&mut self, name: &[u8]) -> Result<Option<String>, Failure> {
        if name.is_empty() {
            return Ok(None);
        }
        self.take(name.len())?;
        Ok(Some(self.publishable(&unescape(name))))
    }

    /// Takes names of processes and threads.
    fn describe(&mut self, event: &Event<'_>) -> Result<(), Failure> {
        let name = event.arguments.name;
        let process = OwnedId::from(event.process);
        if event.name == b"process_name" {
            if let Some(text) = self.described(name)? {
                self.processes.insert(process, text);
            }
        } else if event.name == b"thread_name" {
            let thread = (process, OwnedId::from(event.thread));
            if self.writer_metadata.is_some()
                && let Some(row) = writer_metadata::row(event.members)
            {
                self.take(event.members.len())?;
                self.writer_metadata
                    .get_or_insert_default()
                    .rows
                    .insert(thread.clone(), row);
            }
            if let Some(text) = self.described(name)? {
                self.threads.insert(thread, text);
            }
        }
        let limit = u64::from(self.limits.max_rows);
        if count(self.processes.len() + self.threads.len()) > limit {
            return Err(Failure::TooMany {
                what: "named processes and threads",
                limit,
            });
        }
        Ok(())
    }

    /// The number of a thread that has a range or an arrow.
    pub(super) fn mark(&mut self, process: Id<'_>, thread: Id<'_>) -> Result<u32, Failure> {
        let (process, thread) = (OwnedId::from(process), OwnedId::from(thread));
        let bytes = process.bytes() + thread.bytes();
        let (number, is_new) = self.marked.take((process, thread));
        if is_new {
            self.take(bytes)?;
        }
        Ok(number)
    }
}
