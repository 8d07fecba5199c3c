//! A timeline in the formats of other programs: Chrome trace JSON, Perfetto, CSV, Parquet; and its earliest events as plain JSON.
//! `docs/formats.md` describes each.
//!
//! Every event of the timeline is in each of them but the last, in integer nanoseconds; what a format cannot hold is counted in
//! [`Exported::left_out`]. The strings are those of the timeline, which readers redacted.

mod chrome;
mod csv;
mod events;
mod json;
mod kernels;
mod nesting;
mod parquet;
mod perfetto;
mod record;
mod tracks;

use std::io::{self, Write};

use crate::model::{DropReason, Drops, Timeline};

pub use events::MOST_EVENTS;
pub use kernels::MOST_LAUNCHES;

/// Version of the tables' columns and of the tracks' numbering. Columns are added behind the others without a new version.
pub const SCHEMA_VERSION: u32 = 1;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExportFormat {
    /// JSON of chrome://tracing, which most viewers of traces read.
    Chrome,
    /// Protobuf of Perfetto.
    Perfetto,
    /// A table with a line per event (RFC 4180).
    Csv,
    /// The same table in columns.
    Parquet,
    /// The earliest events as JSON, [`MOST_EVENTS`] at most.
    Json,
    /// Counters of launches that a kernel profiler measured, as JSON, [`MOST_LAUNCHES`] at most; nothing where there are none.
    Kernels,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: [Self; 6] = [
        Self::Chrome,
        Self::Perfetto,
        Self::Csv,
        Self::Parquet,
        Self::Json,
        Self::Kernels,
    ];

    /// Name on command lines and in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chrome => "chrome",
            Self::Perfetto => "perfetto",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Json => "json",
            Self::Kernels => "kernels",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// How file names end, without the dot in front.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Chrome | Self::Json | Self::Kernels => "json",
            Self::Perfetto => "pftrace",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// Media type for HTTP.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Chrome | Self::Json | Self::Kernels => "application/json",
            Self::Perfetto => "application/vnd.perfetto.trace",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Whether it is one table, so that [`Table`] matters.
    pub const fn is_table(self) -> bool {
        matches!(self, Self::Csv | Self::Parquet)
    }
}

/// Which table a format of one table holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Table {
    /// A line per event.
    #[default]
    Events,
    /// A line per sample of a series.
    Samples,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 2] = [Self::Events, Self::Samples];

    /// Name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Samples => "samples",
        }
    }

    /// The table of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Events.
    pub events: u64,
    /// Samples of series.
    pub samples: u64,
    /// Launches that a kernel profiler measured.
    pub profiles: u64,
    /// What the timeline holds and this format, or this table, does not.
    pub left_out: Drops,
}

/// Why nothing whole was written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The Parquet writer refuses.
    #[error("the Parquet file cannot be written: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The JSON writer refuses.
    #[error("the trace cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The CSV writer refuses.
    #[error("the table cannot be written: {0}")]
    Csv(#[from] ::csv::Error),
}

/// Writes `timeline` as `format` to `out`; `table` chooses where the format is one table. After an error `out` holds a part.
pub fn export<W: Write + Send>(
    timeline: &Timeline,
    format: ExportFormat,
    table: Table,
    out: W,
) -> Result<Exported, ExportError> {
    let mut exported = match format {
        ExportFormat::Chrome => chrome::write(timeline, out),
        ExportFormat::Perfetto => perfetto::write(timeline, out),
        ExportFormat::Csv => csv::write(timeline, table, out),
        ExportFormat::Parquet => parquet::write(timeline, table, out),
        ExportFormat::Json => events::write(timeline, out),
        ExportFormat::Kernels => kernels::write(timeline, out),
    }?;
    let capture = &timeline.capture;
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let samples: usize = capture.counters.iter().map(|series| series.value.len()).sum();
    let events = timeline.total_events();
    let rest = [
        (
            "profiles of kernels",
            count(capture.profiles.len()).saturating_sub(exported.profiles),
        ),
        ("samples of series", count(samples).saturating_sub(exported.samples)),
        ("events", events.saturating_sub(exported.events)),
    ];
    for (what, count) in rest {
        exported.left_out.add(DropReason::Unsupported, what, count);
    }
    Ok(exported)
}
