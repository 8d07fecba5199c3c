//! The timeline file: a [`Timeline`](crate::model::Timeline) as HDF5 that h5py, h5wasm and h5dump read.
//!
//! ```text
//! /meta             attributes; `categories`, `devices/` below
//! /<category>/      start_ns, duration_ns, stream, name_idx, row, lane, correlation and the category's own columns
//! /names/<category> string[], which name_idx refers to
//! /rows/            a column per field of a row; a missing number is the largest of its type
//! /counters/<source>/<device>/<metric>/  t_ns, value; attribute unit
//! /profiles/         a launch per element: id, name, process, device, context, stream, grid and block; metrics/ name and unit;
//!                   values/ profile, metric and value
//! /summary          the summary artifact, JSON
//! ```
//!
//! Filters are shuffle and deflate, in chunks of 64 Ki events. Columns are as narrow as their values allow, never narrower
//! than documented. There are no object times: equal timelines give equal bytes.

mod read;
mod write;

pub use read::{OpenError, read};
pub use write::{WriteError, write};

/// Version of the layout, attribute `schema_version` of `/meta`. Additions do not change it.
pub const SCHEMA_VERSION: u32 = 1;

/// Events per chunk.
const CHUNK: usize = 1 << 16;

/// Stands for a missing device or thread in `/rows`.
const NONE_U32: u32 = u32::MAX;

/// Stands for a missing context or stream in `/rows`.
const NONE_U64: u64 = u64::MAX;
