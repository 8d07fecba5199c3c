//! The one way in which a child opens a file: by its content, and reports of Nsight Compute through its own program.

use std::path::Path;

use flopwatch_trace::{Format, Opened, ReadLimits, detect};

use crate::ncu;

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] flopwatch_trace::ReadError),
    /// A report of Nsight Compute cannot be read.
    #[error(transparent)]
    Ncu(#[from] ncu::Error),
}

/// Reads the file at `path`, whatever it is. Reports of Nsight Systems are exported before, by a child of their own
/// ([`Steps::export`](crate::steps::Steps::export)).
pub fn open(path: &Path, limits: &ReadLimits) -> Result<Opened, Error> {
    if matches!(detect(path), Ok(Some(Format::NcuReport))) {
        return Ok(Opened {
            session_id: None,
            capture: ncu::read(path, limits)?,
        });
    }
    Ok(flopwatch_trace::open(path, limits)?)
}
