//! Columnar model of GPU captures: readers, transform, timeline file, summary.
//!
//! The way of a capture through the crate: a reader (so far [`nsys_hdf`], for what `nsys export --type hdf` writes) fills a
//! [`model::Capture`]; the caller may add [`model::CounterSeries`] of its own (NVML samples); [`transform::transform`] sorts,
//! assigns lanes and joins launches to GPU work; [`timeline_file::write`] and [`summary::summarise`] publish the result.
//!
//! Times are integer nanoseconds relative to the session's start, sizes are bytes. The crate knows nothing of Kubernetes.

mod hdf5_io;
mod limits;
pub mod model;
pub mod nsys_hdf;
pub mod redact;
pub mod render;
pub mod summary;
pub mod timeline_file;
pub mod transform;

pub use limits::ReadLimits;
