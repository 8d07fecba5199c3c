//! Tables of a fleet: what each capture was, and what it holds per device, category and name, in
//! Parquet files that any reader opens; and estimates for the whole fleet, with their confidence.
//!
//! ```text
//! (identity, timeline, summary) -> CaptureRow, Rows -> bytes of a file, its path     on the node
//! bytes of files -> CaptureRows, Rows -> Totals -> Report                       in the gateway
//! ```
//!
//! - A [`CaptureRow`] stands for every capture, those that failed too: without them every share has
//!   the wrong denominator.
//! - A [`Row`] is one name of a capture: exact figures, and a [`Sketch`] of its durations that can
//!   be merged with others. A device and category have at most [`MAX_NAMES`] rows; the rest is one
//!   row, [`OTHER_NAMES`].
//! - [`write_captures`] and [`write_rows`] make files; [`read_captures`] and [`read_rows`] read
//!   only files of these, within [`Limits`].
//! - [`FilePath`] is the path of a file below the fleet's prefix.
//! - [`Totals`] adds up what captures hold, each weighted by one over the probability with which it
//!   was drawn, and makes a [`Report`].
//!
//! Invariants and limits:
//!
//! - Times are integer nanoseconds. A quantile of a [`Sketch`] is within 2 % of the exact one.
//! - A file has at most 8 MiB and 50,000 rows, a text in it 4 KiB ([`Limits`]); the memory of
//!   reading a file is bounded by these, whatever the file claims.
//! - A file of another [`SCHEMA_VERSION`] is refused.
//! - The crate does no I/O. `docs/fleet.md` has the columns and what they mean.
//!
//! ```
//! use flopwatch_fleet::Sketch;
//!
//! let mut morning = Sketch::default();
//! morning.add(1_000);
//! let mut evening = Sketch::default();
//! evening.add(3_000);
//! morning.merge(&evening);
//! assert_eq!(morning.count(), 2);
//! ```

mod capture;
mod column;
mod file;
mod limits;
mod measured;
mod name;
mod path;
mod row;
mod sketch;
mod table;
mod totals;

pub use capture::{CERTAIN_PER_BILLION, CaptureRow, Trigger};
pub use file::{ReadError, WriteError, read_captures, read_rows, write_captures, write_rows};
pub use limits::Limits;
pub use measured::{MAX_NAMES, PROFILED_KERNEL, rows};
pub use name::{LONGEST_NAME, OTHER_NAMES, name_hash};
pub use path::{FilePath, PathError};
pub use row::Row;
pub use sketch::Sketch;
pub use table::{SCHEMA_VERSION, Table};
pub use totals::{Bounds, Estimate, Figures, GroupBy, ObservedSums, Query, Report, Totals};
