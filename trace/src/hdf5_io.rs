//! Reading foreign HDF5 files with bounds, and writing columns of our own, both beside the
//! library's lock.

mod ahead;
mod chunks;
pub(crate) mod columns;
mod deflate;
mod heap;
mod number;
mod pieces;
mod table;
mod write_chunk;

pub(crate) use number::Number;
pub(crate) use pieces::Piece;
pub use table::TableError;
pub(crate) use table::{StorageLayout, StringBudget, Table, TableLimits};

/// Refuses a file whose strings the library would follow for ever, with the reason.
pub(crate) fn check_strings(file: &std::fs::File) -> Result<(), String> {
    heap::check(file).map_err(|error| match error {
        chunks::ChunkError::Damaged(reason) => reason,
        chunks::ChunkError::Forged(what) => what.to_owned(),
    })
}

/// Whether `name` is an object of the group's own file, not a link to somewhere else.
pub(crate) fn is_hard_link(group: &hdf5::Group, name: &str) -> hdf5::Result<bool> {
    Ok(table::link_type(group, name)? == Some(hdf5::LinkType::Hard))
}
