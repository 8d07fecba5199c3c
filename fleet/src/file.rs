//! Tables as Parquet: written whole, and read within limits.

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod memory;
mod pages;
mod read;
mod write;

pub use read::{ReadError, read_captures, read_rows};
pub use write::{WriteError, write_captures, write_rows};

/// Key of a file's metadata that names its table.
const TABLE_KEY: &str = "flopwatch.table";

/// Key of a file's metadata that has the version of its columns.
const VERSION_KEY: &str = "flopwatch.schema_version";
