//! What the exports of Nsight Systems have in common, whichever container they come in, and its
//! reports: tables by name, columns by name, rows in any order.
//!
//! Only strings that an event refers to are copied: a source also holds the environments and
//! command lines of processes (`StringIds`, `TARGET_INFO_SYSTEM_ENV`, `META_DATA_CAPTURE`), which
//! must not leave the node.

mod chains;
mod cpu;
mod gather;
mod gpu;
mod keys;
mod memory;
mod metrics;
mod names;
mod peaks;
mod report;
mod samples;
mod scheduling;
mod sync;
mod tables;
mod target;
mod waits;

use std::collections::BTreeMap;
use std::path::PathBuf;

use hashbrown::HashMap;
use rayon::prelude::*;

use crate::cupti::NO_STREAM;
use crate::hdf5_io::{StringBudget, TableError, TableLimits};
use crate::in_file::InFile;
use crate::limits::ReadLimits;
use crate::times;
use flopwatch_model::{Capture, Category, Events, LossReason, Row, RowId, Track};
use names::Names;
pub(crate) use report::Report;
pub use report::ReportError;
use tables::Table;
pub(crate) use tables::Tables;

/// Why an export or a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there, is no HDF5 file, or its first structures are damaged.
    #[error("cannot be opened as HDF5: {0}; make it with `nsys export --type hdf`")]
    Open(String),
    /// The file is not there, is no SQLite database, or its first structures are damaged.
    #[error("cannot be opened as SQLite: {0}; make it with `nsys export --type sqlite`")]
    OpenSqlite(String),
    /// The file is not there, is no report, or is damaged, forged or too large.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Another program has changed the database and not finished: a part of it lies in its
    /// write-ahead log, which is not read.
    #[error(
        "a part of it lies in {log}; close the program that has it open, or have sqlite3 run `PRAGMA journal_mode=DELETE` \
         on it"
    )]
    WriteAheadLog {
        /// The log beside it.
        log: PathBuf,
    },
    /// It can be opened, but is not an export that nsys finished: it lacks a table that every
    /// finished export has.
    #[error("has no table {0}: not an export of nsys, or one that nsys could not finish")]
    NotAnExport(&'static str),
    /// A table is damaged, forged, of an unknown schema or too large.
    #[error(transparent)]
    Table(#[from] TableError),
    /// More events or timeline rows than the limits allow.
    #[error("table {table} brings the number of {what} over the limit of {limit}; capture a shorter window")]
    TooMany {
        /// The table that went over.
        table: String,
        /// What there are too many of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

/// A [`Failure`] with the path of the export or report.
pub type ReadError = InFile<Failure>;

/// Reads an export or a report.
pub(crate) fn read(tables: &Tables, limits: &ReadLimits) -> Result<Capture, Failure> {
    let mut reader = Reader::new(tables, limits);
    if let Tables::Report(report) = tables {
        reader.capture.losses = report.losses().clone();
    }
    reader.read()
}

/// `globalTid` and `globalPid`: machine in the upper 16 bits, then 24 bits of process and of
/// thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct GlobalId(u64);

impl GlobalId {
    fn part(self, shift: u32, bits: u32) -> u32 {
        u32::try_from((self.0 >> shift) & ((1_u64 << bits) - 1)).unwrap_or(0)
    }

    fn machine(self) -> u32 {
        self.part(48, 16)
    }

    fn process(self) -> u32 {
        self.part(24, 24)
    }

    fn thread(self) -> u32 {
        self.part(0, 24)
    }
}

/// What a row of the timeline is told apart by, before it has an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RowKey {
    /// A stream or what waits for one.
    Gpu {
        track: Track,
        process: GlobalId,
        device: u32,
        context: u64,
        stream: u64,
    },
    /// Row of a thread.
    Thread { track: Track, thread: GlobalId },
}

impl RowKey {
    fn row(self) -> Row {
        match self {
            Self::Gpu {
                track,
                process,
                device,
                context,
                stream,
            } => Row {
                capture: 0,
                machine: process.machine(),
                process: process.process(),
                track,
                device: Some(device),
                context: Some(context),
                stream: (stream < NO_STREAM).then_some(stream),
                thread: None,
                label: String::new(),
            },
            Self::Thread { track, thread } => Row {
                capture: 0,
                machine: thread.machine(),
                process: thread.process(),
                track,
                device: None,
                context: None,
                stream: None,
                thread: Some(u64::from(thread.thread())),
                label: String::new(),
            },
        }
    }
}

/// The tables whose events are read.
fn event_tables() -> impl Iterator<Item = &'static str> {
    let tables = [
        gpu::TABLES,
        cpu::TABLES,
        samples::TABLES,
        scheduling::TABLES,
        metrics::TABLES,
        memory::TABLES,
        waits::TABLES,
    ];
    tables.into_iter().flatten().copied()
}

struct Reader<'a> {
    tables: &'a Tables,
    limits: &'a ReadLimits,
    capture: Capture,
    names: BTreeMap<Category, Names>,
    rows: HashMap<RowKey, RowId>,
    events: u64,
    strings: StringBudget,
}

/// Starts are kept with this added until the smallest one is known: a few may lie before the
/// session's start.
const TIME_BIAS: u64 = 1 << 63;

impl<'a> Reader<'a> {
    fn new(tables: &'a Tables, limits: &'a ReadLimits) -> Self {
        Self {
            tables,
            limits,
            capture: Capture::default(),
            names: BTreeMap::new(),
            rows: HashMap::new(),
            events: 0,
            strings: StringBudget::new(limits.max_string_bytes),
        }
    }

    fn read(&mut self) -> Result<Capture, Failure> {
        self.read_source()?;
        self.read_kernels()?;
        self.read_graphs()?;
        self.read_copies()?;
        self.read_memsets()?;
        self.read_synchronisations()?;
        self.place_synchronisations();
        self.read_api_calls()?;
        self.read_os_calls()?;
        self.read_library_calls()?;
        let described = self.read_ranges()?;
        self.read_samples()?;
        self.read_scheduling()?;
        self.count_unread_tables();
        self.resolve_names(&described)?;
        for (category, events) in &mut self.capture.events {
            events.drop_unsaid_columns(*category);
        }
        self.label_rows()?;
        self.read_devices()?;
        let window = self.window()?.map(|length| TIME_BIAS..TIME_BIAS.saturating_add(length));
        let emptied = times::remove_impossible_times(&mut self.capture, TIME_BIAS, window);
        self.rebase();
        self.read_gpu_metrics()?;
        self.read_memory_usage()?;
        self.read_window()?;
        self.capture.captured.retain(|category| !emptied.contains(category));
        Ok(std::mem::take(&mut self.capture))
    }

    fn table(&self, name: &str) -> Result<Option<Table>, TableError> {
        let limits = TableLimits {
            rows: self.limits.max_table_rows,
            chunk_bytes: self.limits.max_chunk_bytes,
        };
        self.tables.open(name, limits)
    }

    /// Notes that these categories were recorded. Exports that are not lazy, and those of 2022 and
    /// before, have every table: only one with rows says that there was something to fill it.
    fn captured(&mut self, table: &Table, categories: impl IntoIterator<Item = Category>) {
        if table.rows() > 0 {
            self.capture.captured.extend(categories);
        }
    }

    /// The id of a row of the timeline.
    fn row(&mut self, table: &Table, key: RowKey) -> Result<RowId, Failure> {
        match self.rows.get(&key) {
            Some(known) => Ok(*known),
            None => self.new_row(table, key),
        }
    }

    fn new_row(&mut self, table: &Table, key: RowKey) -> Result<RowId, Failure> {
        let limit = self.limits.max_rows;
        let next = RowId::from_index(self.rows.len()).filter(|row| row.number() < limit);
        let next = next.ok_or_else(|| gather::too_many_rows(table.name(), limit))?;
        self.rows.insert(key, next);
        self.capture.rows.push(key.row());
        Ok(next)
    }

    /// Turns the kept starts into times from the session's start, which moves back where events lie
    /// before it.
    fn rebase(&mut self) {
        let starts = |events: &Events| events.start_ns.par_iter().copied().min();
        let origin = self.capture.events.values().filter_map(starts).min();
        let origin = origin.unwrap_or(TIME_BIAS).min(TIME_BIAS);
        for events in self.capture.events.values_mut() {
            events.start_ns.par_iter_mut().for_each(|start| *start -= origin);
        }
        let moved = TIME_BIAS - origin;
        self.capture.session_start_utc_ns = self.capture.session_start_utc_ns.and_then(|utc| utc.checked_sub(moved));
        self.capture.duration_ns = moved;
    }

    /// Counts the rows of tables that hold events of kinds this version does not show.
    fn count_unread_tables(&mut self) {
        let read: Vec<&str> = event_tables().collect();
        let others = self
            .tables
            .names()
            .into_iter()
            .filter(|name| !read.contains(&name.as_str()));
        for name in others {
            // A table that cannot even be opened was not going to be shown; those that matter were
            // opened before.
            let Ok(Some(table)) = self.table(&name) else { continue };
            if ["start", "timestamp", "rawTimestamp"]
                .iter()
                .any(|column| table.has(column))
            {
                let rows = u64::try_from(table.rows()).unwrap_or(u64::MAX);
                self.capture
                    .losses
                    .add(LossReason::Unsupported, &format!("table {name}"), rows);
            }
        }
    }
}
