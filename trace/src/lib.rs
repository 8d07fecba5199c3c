//! Files of GPU captures: readers, transform, timeline file.
//!
//! The way of a capture through the crate: [`read`] (or [`open()`], which also tells the session of a timeline file) finds the format by content and lets its reader ([`nsys_hdf`],
//! [`nsys_sqlite`], [`kineto`], [`xplane`], [`ncu`], [`timeline_file`]) fill a [`model::Capture`]; the caller may
//! add [`model::CounterSeries`] of its own (NVML samples); [`transform::transform`] sorts, assigns lanes and joins launches to
//! GPU work; [`timeline_file::write`] publishes the result, and `flopwatch_analysis` makes tables and files for other programs of it.
//!
//! Every format has a module of its own with the same entry: `read(path, &ReadLimits) -> Result<Capture, ReadError>`, where
//! `ReadError` is that module's enum and each of its messages names the file. A reader
//! - copies only strings that an event refers to, through [`redact::redact`], and counts the hits in `Capture::redactions`;
//! - keeps every event, in any order, with names and rows in any order and not necessarily unique;
//! - says in `Capture::captured` what the source recorded, also where there is none of it;
//! - counts in `Capture::drops` what it could not keep unchanged;
//! - puts what is sampled into `Capture::counters`, what repeats the time of other events into categories that are
//!   [`model::Category::is_derived`], and a kernel profiler's counters into `Capture::profiles`.
//!
//! Times are integer nanoseconds relative to the session's start, sizes are bytes. The crate knows nothing of Kubernetes.

pub mod convert;
mod detect;
mod hdf5_io;
pub mod kineto;
mod limits;
pub mod ncu;
mod nsys;
pub mod nsys_hdf;
pub mod nsys_report;
pub mod nsys_sqlite;
mod open;
pub mod redact;
mod sqlite_io;
pub mod timeline_file;
pub mod transform;
mod version;
pub mod xplane;

pub use convert::convert;
pub use detect::{Format, detect};
pub use flopwatch_model as model;
pub use limits::ReadLimits;
pub use nsys::copy_category;
pub use open::{Opened, ReadError, open, read};
pub use version::Version;
