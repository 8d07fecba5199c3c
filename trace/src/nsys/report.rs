//! Reads a report of Nsight Systems (`.nsys-rep`, `.qdrep`) as it lies on the disk, without Nsight
//! Systems.
//!
//! It becomes the tables that `nsys export` would make of it, with the same names, columns and
//! values, so that whatever reads an export reads a report. Only the columns that are read are
//! made.
//!
//! A report is sections and a list of them. One section holds the events in chunks, each compressed
//! by itself and one protocol buffer inside. Every number of a field below was found by holding
//! reports of 2020.3 to 2026.1 against exports of the same reports; whatever has another number is
//! passed over, and events of kinds that are not known are counted.
//!
//! The environment of the profiled programs, their output, their command lines and the profiler's
//! own are passed over unread.

mod checks;
mod chunks;
mod clock;
mod container;
mod counters;
mod event;
mod events;
mod layout;
mod numbers;
mod options;
mod rows;
mod segments;
mod session;
mod strings;
mod system;
mod table;
mod texts;
mod unread;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use container::Container;
use segments::SegmentedTable;
pub(super) use table::{Piece, Table};

use super::chains::Chains;
use super::event_tables;
use crate::limits::ReadLimits;
use crate::wire::Damage;
use flopwatch_model::Losses;

/// Why a report cannot be read. The caller adds the file's path.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[from] io::Error),
    /// The file does not begin as reports do, or does not end as a finished one does.
    #[error("is no finished report of Nsight Systems: {0}; was it copied while it was being written?")]
    Unfinished(&'static str),
    /// A section that every report has is not there.
    #[error("is a report of Nsight Systems without the section {0}")]
    NoSection(&'static str),
    /// A section, or something in one, reaches out of what holds it.
    #[error("is a damaged report of Nsight Systems: {what} at byte {offset} reaches out of {of}")]
    Outside {
        /// What reaches out.
        what: &'static str,
        /// What should hold it.
        of: &'static str,
        /// Offset in the file at which the part begins that reaches out, in bytes.
        offset: u64,
    },
    /// A message is damaged.
    #[error("is a damaged report of Nsight Systems: {part} at byte {offset}")]
    Damaged {
        /// What is damaged.
        part: &'static str,
        /// Where in the file, or where in the file the chunk begins that it is in.
        offset: u64,
    },
    /// A chunk is not what its header says.
    #[error("is a damaged report of Nsight Systems: the chunk at byte {offset} {what}")]
    Chunk {
        /// What is wrong with it.
        what: &'static str,
        /// Offset in the file at which the chunk begins, in bytes.
        offset: u64,
    },
    /// The chunks are compressed in a way that is not known.
    #[error(
        "is compressed by {0:?}, which is not read: run `nsys export --type sqlite` of the Nsight Systems that made it"
    )]
    Compression(String),
    /// The report has more than the limits allow.
    #[error("holds more than {limit} {what}; raise the limit or capture a shorter window")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// Limit that was passed.
        limit: u64,
    },
}

impl ReportError {
    /// Says which part a message's damage is in.
    fn of(part: &'static str) -> impl Fn(Damage) -> Self {
        move |damage| Self::Damaged {
            part,
            offset: u64::try_from(damage.0).unwrap_or(u64::MAX),
        }
    }
}

/// A report that was read: the tables that an export would have.
#[derive(Debug)]
pub(crate) struct Report {
    tables: RefCell<BTreeMap<&'static str, Arc<SegmentedTable>>>,
    /// Stacks of the samples of the CPU.
    chains: RefCell<Chains>,
    losses: Losses,
}

impl Report {
    /// Reads the report at `path`.
    pub(crate) fn open(path: &Path, limits: &ReadLimits) -> Result<Self, ReportError> {
        let container = Container::open(path, limits)?;
        let session = session::Session::read(&container, limits)?;
        let strings = strings::Strings::read(&container, &session, limits)?;
        let counters = counters::Counters::new(&session, &strings.texts);
        let mut read = events::read(&container, &session, &counters, limits)?;
        let version = options::Version::read(&container)?;
        let mut losses = read.unread.losses();
        checks::check_counts(&mut losses, &session, &strings, &read, version.recorded);

        let chains = std::mem::take(&mut read.chains);
        let mut described = vec![
            counters.names(),
            options::of_capture(&container)?,
            version.rows(),
            session.details(),
            system::gpus(&strings.system.0, strings.system.1)?,
            strings.threads,
            strings.texts,
        ];
        described.extend(clock::session_start(&container, &session)?);
        let described = described.into_iter().map(SegmentedTable::from);
        let all = read.into_tables().into_iter().chain(described);
        let tables = all.map(|table| (table.name(), Arc::new(table)));
        Ok(Self {
            tables: RefCell::new(tables.collect()),
            chains: RefCell::new(chains),
            losses,
        })
    }

    /// What is missing, and what does not fit together.
    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// A table; `None` when there is none. A table of events is given out once, so that its memory
    /// is free when it was read.
    pub(super) fn table(&self, name: &str) -> Option<Table> {
        let mut tables = self.tables.borrow_mut();
        let rows = if event_tables().any(|of_events| of_events == name) {
            tables.remove(name)
        } else {
            tables.get(name).cloned()
        };
        rows.map(Table::new)
    }

    /// The stacks of the samples of the CPU, which are given out once.
    pub(super) fn chains(&self) -> Chains {
        self.chains.take()
    }

    /// The names of the tables.
    pub(super) fn names(&self) -> Vec<String> {
        self.tables.borrow().keys().map(|name| (*name).to_owned()).collect()
    }
}
