//! Reads what `nsys export --type hdf` writes (schemas of 2020 to 2023.4 and later, by column name, rows in any order).
//!
//! Only strings that an event refers to are copied: an export also holds the environments and command lines of processes
//! (`StringIds`, `TARGET_INFO_SYSTEM_ENV`, `META_DATA_CAPTURE`), which must not leave the node. HDF5 has no NULL; the exporter
//! writes 0 or an empty string for it.
//!
//! Nothing here panics on a damaged file, but HDF5 itself may crash or never return on one (its 2.2 loops in
//! `H5HG__cache_heap_deserialize` on some damaged string heaps): read foreign files in a child process with a deadline.

mod cpu;
mod gpu;
mod names;
mod target;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use hdf5::{File, LinkType};

pub use crate::hdf5_io::TableError;
use crate::hdf5_io::{Open, StringBudget, Table, TableLimits};
pub use crate::limits::ReadLimits;
use crate::model::{Capture, Category, DropReason, Event, Events, Row};
use names::{NameKey, Names};

/// Why an export cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there, is no HDF5 file, or its first structures are damaged.
    #[error("{path}: cannot be opened as HDF5: {reason}; make it with `nsys export --type hdf`")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the library says.
        reason: String,
    },
    /// It is HDF5, but not an export that nsys finished.
    #[error("{path}: has no table {table}: not an export of nsys, or one that nsys could not finish")]
    NotAnExport {
        /// The file.
        path: PathBuf,
        /// What every finished export has.
        table: &'static str,
    },
    /// A table is damaged, forged, of an unknown schema or too large.
    #[error("{path}: {source}")]
    Table {
        /// The file.
        path: PathBuf,
        /// Which table, and what is wrong.
        source: TableError,
    },
    /// More events or timeline rows than the limits allow.
    #[error("{path}: table {table} brings the number of {what} over the limit of {limit}; capture a shorter window")]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The table that went over.
        table: String,
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Reads the export at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let open_error = |error: hdf5::Error| ReadError::Open {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    // One chunk of the widest table must stay in the cache while its columns are read one after the other.
    let file = File::with_options()
        .with_fapl(|access| access.chunk_cache(521, 16 << 20, 0.75).file_locking(false))
        .open(path)
        .map_err(open_error)?;
    let mut reader = Reader::new(&file, limits);
    reader.read().map_err(|failure| failure.at(path))
}

/// A [`ReadError`] before the path is known.
#[derive(Debug)]
enum Failure {
    Table(TableError),
    NotAnExport(&'static str),
    TooMany {
        table: String,
        what: &'static str,
        limit: u64,
    },
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl Failure {
    fn at(self, path: &Path) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::Table(source) => ReadError::Table { path, source },
            Self::NotAnExport(table) => ReadError::NotAnExport { path, table },
            Self::TooMany { table, what, limit } => ReadError::TooMany {
                path,
                table,
                what,
                limit,
            },
        }
    }
}

/// `globalTid` and `globalPid`: machine in the upper 16 bits, then 24 bits of process and of thread.
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

/// Start and end of an event as stored.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
}

/// An event before its row and name have an index.
struct Found<'a> {
    category: Category,
    span: Span,
    row: Row,
    name: NameKey,
    correlation: u32,
    own: &'a [u64],
}

struct Reader<'a> {
    file: &'a File,
    limits: &'a ReadLimits,
    capture: Capture,
    names: BTreeMap<Category, Names>,
    rows: HashMap<Row, u32>,
    events: u64,
    strings: StringBudget,
}

/// Starts are kept with this added until the smallest one is known: a few may lie before the session's start.
const BIAS: u64 = 1 << 63;

impl<'a> Reader<'a> {
    fn new(file: &'a File, limits: &'a ReadLimits) -> Self {
        Self {
            file,
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
        self.read_copies()?;
        self.read_memsets()?;
        self.read_synchronisations()?;
        self.read_api_calls()?;
        self.read_os_calls()?;
        let domains = self.read_ranges()?;
        self.count_unread_tables();
        self.resolve_names(&domains)?;
        self.label_rows()?;
        self.read_devices()?;
        self.rebase();
        self.read_window()?;
        Ok(std::mem::take(&mut self.capture))
    }

    fn table(&self, name: &str) -> Result<Option<Table>, TableError> {
        let limits = TableLimits {
            rows: self.limits.max_table_rows,
            chunk_bytes: self.limits.max_chunk_bytes,
        };
        Table::open(self.file, name, Open::Compound, limits)
    }

    /// Adds an event, or counts why not.
    fn push(&mut self, table: &Table, found: Found<'_>) -> Result<(), Failure> {
        let Some(duration) = found
            .span
            .end
            .checked_sub(found.span.start)
            .and_then(|length| u64::try_from(length).ok())
        else {
            self.capture
                .drops
                .add(DropReason::Skipped, &format!("{}: end before start", table.name()), 1);
            return Ok(());
        };
        if self.events >= self.limits.max_events {
            let limit = self.limits.max_events;
            return Err(Failure::TooMany {
                table: table.name().to_owned(),
                what: "events",
                limit,
            });
        }
        self.events += 1;
        let row = self.row(table, found.row)?;
        let name = self
            .names
            .entry(found.category)
            .or_default()
            .intern(table, found.name, &mut self.strings)?;
        let event = Event {
            start_ns: found.span.start.cast_unsigned() ^ BIAS,
            duration_ns: duration,
            row,
            name,
            correlation: found.correlation,
        };
        let events = self
            .capture
            .events
            .entry(found.category)
            .or_insert_with(|| Events::new(found.category));
        events.push(event, found.own);
        Ok(())
    }

    fn row(&mut self, table: &Table, row: Row) -> Result<u32, Failure> {
        if let Some(known) = self.rows.get(&row) {
            return Ok(*known);
        }
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if next >= self.limits.max_rows {
            let limit = u64::from(self.limits.max_rows);
            return Err(Failure::TooMany {
                table: table.name().to_owned(),
                what: "streams and threads",
                limit,
            });
        }
        self.rows.insert(row.clone(), next);
        self.capture.rows.push(row);
        Ok(next)
    }

    /// Turns the kept starts into times from the session's start, which moves back where events lie before it.
    fn rebase(&mut self) {
        let starts = self
            .capture
            .events
            .values()
            .flat_map(|events| events.start_ns.iter().copied());
        let origin = starts.min().unwrap_or(BIAS).min(BIAS);
        for events in self.capture.events.values_mut() {
            for start in &mut events.start_ns {
                *start -= origin;
            }
        }
        let moved = BIAS - origin;
        self.capture.session_start_utc_ns = self.capture.session_start_utc_ns.and_then(|utc| utc.checked_sub(moved));
        self.capture.duration_ns = moved;
    }

    /// The end of the last event, known after `rebase`.
    fn last_end(&self) -> u64 {
        let ends = self
            .capture
            .events
            .values()
            .filter_map(|events| (0..events.len()).map(|at| events.end_ns(at)).max());
        ends.max().unwrap_or(0)
    }

    /// Counts the rows of tables that hold events of kinds this version does not show.
    fn count_unread_tables(&mut self) {
        let read = gpu::TABLES.iter().chain(cpu::TABLES);
        let read: Vec<&str> = read.copied().collect();
        let mut others = Vec::new();
        let visited = self.file.iter_visit_default(|name, link| {
            if link.link_type == LinkType::Hard && !read.contains(&name) {
                others.push(name.to_owned());
            }
            Ok(())
        });
        if visited.is_err() {
            return;
        }
        for name in others {
            // A table that cannot even be opened was not going to be shown; those that matter were opened before.
            let Ok(Some(table)) = self.table(&name) else { continue };
            if ["start", "timestamp", "rawTimestamp"]
                .iter()
                .any(|column| table.has(column))
            {
                let rows = u64::try_from(table.rows()).unwrap_or(u64::MAX);
                self.capture
                    .drops
                    .add(DropReason::Unsupported, &format!("table {name}"), rows);
            }
        }
    }
}
