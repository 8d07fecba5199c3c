//! Reads what `nsys export --type hdf` writes (schemas of 2020 to 2026, by column name, rows in any
//! order).
//!
//! HDF5 has no NULL; the exporter writes 0 or an empty string for it.
//!
//! Nothing here panics on a damaged file, but HDF5 itself may crash or never return on one (its 2.2
//! loops in `H5HG__cache_heap_deserialize` on some damaged string heaps): read foreign files in a
//! child process with a deadline.

use std::path::Path;

use hdf5::File;

pub use crate::hdf5_io::TableError;
pub use crate::limits::ReadLimits;
use crate::nsys::{self, Tables};
pub use crate::nsys::{Failure, ReadError};
use flopwatch_model::Capture;

/// Reads the export at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    // One chunk of the widest table must stay in the cache while its columns are read one after the
    // other.
    let file = File::with_options()
        .with_fapl(|access| access.chunk_cache(521, 16 << 20, 0.75).file_locking(false))
        .open(path)
        .map_err(|error| Failure::Open(error.to_string()))?;
    nsys::read(&Tables::Hdf(file), limits)
}
