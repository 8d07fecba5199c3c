//! Rows of a fleet: what each capture was, and what it holds per device, category and name, in Parquet files that any reader opens; and
//! sums over them that say how sure they are.
//!
//! ```text
//! (identity, timeline, summary) -> CaptureRow, Rows -> bytes of a file, and its path     on the node
//! bytes of files -> CaptureRows, Rows -> Totals -> Report                                in the gateway
//! ```
//!
//! * A [`CaptureRow`] stands for every capture, those that failed too: without them every share has the wrong denominator.
//! * A [`Row`] is one name of a capture: exact figures, and a [`Sketch`] of its durations that merges with others.
//! * [`write_captures`] and [`write_rows`] make files; [`read_captures`] and [`read_rows`] read none but those, within [`Limits`].
//! * [`FilePath`] says where a file lies below the fleet's prefix.
//! * [`Totals`] adds up what captures held, each weighted by one over the probability with which it was drawn.
//!
//! Times are integer nanoseconds. The crate does no I/O. `docs/fleet.md` has the columns and what they mean.

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
pub use measured::{MOST_NAMES, PROFILED_KERNEL, rows};
pub use name::{LONGEST_NAME, OTHER_NAMES, name_hash};
pub use path::{FilePath, PathError};
pub use row::Row;
pub use sketch::Sketch;
pub use table::{SCHEMA_VERSION, Table};
pub use totals::{Bounds, Estimate, Figures, GroupBy, Observed, Query, Report, Totals};
