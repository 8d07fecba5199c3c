//! Reads what `nsys export --type sqlite` and `nsys profile --export sqlite` write (schemas of 2020
//! to 2026, by column name, rows in any order).
//!
//! The same report gives the same capture as its HDF5 export. The file is foreign: it is opened
//! read-only and immutable, with nothing of it trusted to run (no extension, trigger, view, virtual
//! table or computed column), values and statements of bounded length, and
//! [`ReadLimits::max_query_time`] for all of its queries.

use std::path::Path;

pub use crate::limits::ReadLimits;
use crate::nsys::{self, Tables};
pub use crate::nsys::{Failure, ReadError};
use crate::sqlite_io::{Database, OpenError};
use flopwatch_model::Capture;

/// Reads the export at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let database = Database::open(path, limits.max_query_time).map_err(|error| match error {
        OpenError::NotADatabase(reason) => Failure::OpenSqlite(reason),
        OpenError::Unfinished(log) => Failure::WriteAheadLog { log: log.into() },
    })?;
    nsys::read(&Tables::Sqlite(database), limits)
}
