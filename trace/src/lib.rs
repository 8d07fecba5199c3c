//! Files of GPU captures: readers, transform, timeline file.
//!
//! The way of a capture through the crate: [`read`] (or [`open()`], which also tells the session of
//! a timeline file) finds the format by content and lets its reader ([`nsys_report`], [`nsys_hdf`],
//! [`nsys_sqlite`], [`kineto`], [`xplane`], [`ncu`], [`pprof`], [`recorder`], [`tracer`],
//! [`timeline_file`]) fill a [`flopwatch_model::Capture`]; the caller may add
//! [`flopwatch_model::CounterSeries`] of its own (NVML samples); [`transform::transform`] sorts,
//! assigns lanes and joins launches to GPU work; [`timeline_file::write`] publishes the result, and
//! `flopwatch_analysis` makes tables and files for other programs of it.
//!
//! Every format has a module of its own with the same entry:
//! `read(path, &ReadLimits) -> Result<Capture, ReadError>`, where `ReadError` is that module's
//! `Failure` with the path of the file ([`InFile`]). A reader
//! - copies only strings that an event refers to, through [`redact::redact`], and counts the hits
//!   in `Capture::redactions`;
//! - keeps every event whose times can be (by the one rule of `times`), in any order but for those
//!   of one row and time, which stay in the source's; names and rows are in any order and not
//!   necessarily unique;
//! - says in `Capture::captured` what the source recorded, also where there is none of it;
//! - counts in `Capture::losses` what it could not keep unchanged;
//! - puts what is sampled into `Capture::counters`, what repeats the time of other events into
//!   categories that are [`flopwatch_model::Category::is_derived`], a kernel profiler's counters
//!   into `Capture::profiles`, and samples by stack into `Capture::stacks`.
//!
//! # As a library
//!
//! ```
//! use flopwatch_trace::transform::{TransformOptions, transform};
//! use flopwatch_trace::{ReadLimits, open};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.json");
//! # let event = r#"{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 10.5, "dur": 2.25}"#;
//! # std::fs::write(&path, format!(r#"{{"schemaVersion": 1, "traceEvents": [{event}]}}"#))?;
//! let opened = open(&path, &ReadLimits::default())?;
//! let session_id = opened.session_id.unwrap_or_else(|| "local".to_owned());
//! let timeline = transform(opened.capture, TransformOptions { session_id });
//! for (category, events) in &timeline.capture.events {
//!     println!("{}: {} events", category.name(), events.len());
//! }
//! # assert_eq!(timeline.total_events(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! | feature | gives | links |
//! |---|---|---|
//! | none | Chrome traces, XPlane, pages of Nsight Compute, pprof, files of flight recorders and CUDA tracers; the transform on the processor | no C library |
//! | `hdf5` | the timeline file ([`timeline_file`], [`convert()`]), HDF5 exports of Nsight Systems | HDF5, built with CMake |
//! | `sqlite` | SQLite exports of Nsight Systems, whose tables are read as those of `hdf5` are | SQLite, and what `hdf5` links |
//! | `cuda` | the transform on a GPU ([`transform::device`]) | nothing: the driver is loaded at run time |
//!
//! All of them are on unless `default-features = false`. The crate starts no process, opens no
//! socket and writes only files that it is given the names of. Foreign files are best read in a
//! child process with a deadline: HDF5 may crash or hang on a damaged one.
//!
//! Times are integer nanoseconds relative to the session's start, sizes are bytes. The crate knows
//! nothing of Kubernetes.

#[cfg(feature = "hdf5")]
pub mod convert;
mod copy_direction;
#[cfg(feature = "hdf5")]
mod cores;
mod cupti;
mod demangle;
mod detect;
mod gzip;
#[cfg(feature = "hdf5")]
mod hdf5_io;
pub mod hlo;
mod in_file;
pub mod kineto;
mod limits;
pub mod ncu;
#[cfg(feature = "hdf5")]
mod nsys;
#[cfg(feature = "hdf5")]
pub mod nsys_hdf;
pub mod nsys_report;
#[cfg(feature = "sqlite")]
pub mod nsys_sqlite;
mod open;
pub mod pprof;
pub mod recorder;
pub mod redact;
#[cfg(feature = "sqlite")]
mod sqlite_io;
#[cfg(feature = "hdf5")]
pub mod timeline_file;
mod times;
pub mod tracer;
pub mod transform;
mod version;

pub mod xplane;

#[cfg(feature = "hdf5")]
pub use convert::convert;
pub use copy_direction::copy_category;
pub use detect::{FORMATS, Format, detect};
use flopwatch_model::wire;
pub use in_file::InFile;
pub use limits::ReadLimits;
pub use open::{OpenedFile, ReadError, open, open_between, read};
pub use version::Version;
