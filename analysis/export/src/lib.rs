//! Writers of timelines in formats of other programs. `docs/formats.md` describes each.
//!
//! | module | format | for |
//! |---|---|---|
//! | [`chrome`] | Chrome trace JSON | `chrome://tracing`, Perfetto, `flopwatch` itself |
//! | [`perfetto`] | Perfetto's protocol buffers | Perfetto |
//! | [`csv`] | a line per event or sample | spreadsheets, scripts |
//! | `parquet` (feature `parquet`) | a row per event or sample | pandas, DuckDB, Polars |
//! | [`events`] | the earliest events as plain JSON, at most [`MAX_EVENTS`] | REST clients |
//!
//! Invariants:
//!
//! - Every event of the timeline is in each file but the last, in integer nanoseconds. What a
//!   format cannot hold is counted in [`ExportCounts::left_out`].
//! - Strings are those of the timeline, which readers redacted.
//! - The crate depends on the event model and its measures. Which of these files the catalogue has,
//!   under which name, is in `flopwatch-analysis`.
//!
//! ```
//! use flopwatch_model::Timeline;
//!
//! let mut file = Vec::new();
//! let counts = flopwatch_export::csv::events(&Timeline::default(), &mut file).unwrap();
//! assert_eq!(counts.events, 0);
//! ```

pub mod chrome;
pub mod csv;
pub mod events;
mod json;
mod nesting;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
mod tracks;

use std::io;

use flopwatch_model::Losses;

/// Most events in the document of the earliest events: a client holds it whole.
pub const MAX_EVENTS: u64 = 100_000;

/// Version of the tables' columns and of the tracks' numbering. Columns are added behind the
/// others without a new version.
pub const SCHEMA_VERSION: u32 = 1;

/// Counts of what a file holds, and of what it cannot hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Events that were written.
    pub events: u64,
    /// Samples of series.
    pub samples: u64,
    /// Launches that a kernel profiler measured.
    pub profiles: u64,
    /// What the timeline holds and this format, or this table, does not.
    pub left_out: Losses,
}

/// Why nothing whole was written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The Parquet writer refuses.
    #[cfg(feature = "parquet")]
    #[error("the Parquet file cannot be written: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The JSON writer refuses.
    #[error("the trace cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The CSV writer refuses.
    #[error("the table cannot be written: {0}")]
    Csv(#[from] ::csv::Error),
    /// This program was built without the writer of this format.
    #[cfg(not(feature = "parquet"))]
    #[error("this program was built without the writer of this format: run flopwatch as it is built by default")]
    NotBuilt,
}
