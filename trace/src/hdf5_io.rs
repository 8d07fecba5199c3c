//! Reading foreign HDF5 files with bounds, and writing columns of our own, both beside the library's lock.

mod chunks;
pub(crate) mod columns;
mod heap;
mod table;
mod write_chunk;

pub use table::TableError;
pub(crate) use table::{Number, Open, StringBudget, Table, TableLimits};

/// Whether `name` is an object of the group's own file, not a link to somewhere else.
pub(crate) fn is_hard_link(group: &hdf5::Group, name: &str) -> hdf5::Result<bool> {
    Ok(table::link_type(group, name)? == Some(hdf5::LinkType::Hard))
}
