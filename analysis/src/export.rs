//! Files for other programs as entries of the catalogue: their names and what is read for them;
//! [`Export::definition`] gives the entry. `flopwatch-export` writes them.

pub(crate) mod entries;

#[cfg(feature = "export")]
mod kernels;
mod write;
#[cfg(feature = "export")]
mod writers;

use flopwatch_model::Needs;
use strum::{IntoStaticStr, VariantArray};

use crate::definition::Definition;

#[cfg(feature = "export")]
pub use writers::export;

/// Most launches in the document of kernel counters: a client holds it whole.
pub const MAX_LAUNCHES: usize = 10_000;

/// Version of the entries of the catalogue: raised whenever the bytes of a file change, added
/// columns included.
pub(crate) const VERSION: u32 = 1;

/// A format of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ExportFormat {
    /// JSON of chrome://tracing, which most viewers of traces read.
    Chrome,
    /// Protobuf of Perfetto.
    Perfetto,
    /// A table with a line per event (RFC 4180).
    Csv,
    /// The table of [`Self::Csv`] as a file of columns.
    Parquet,
    /// The earliest events as JSON, 100,000 at most.
    Json,
    /// Counters of launches that a kernel profiler measured, as JSON, [`MAX_LAUNCHES`] at most;
    /// nothing where there are none.
    Kernels,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name on command lines and in addresses.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The table of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}

/// Which file for another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// The format of the file.
    pub format: ExportFormat,
    /// Which table, where the format is one.
    pub table: Table,
    /// Whether the file is compressed with gzip.
    pub gzip: bool,
}

impl Export {
    /// The file of that format and table, as a request of the catalogue names it.
    pub fn definition(format: ExportFormat, table: Table) -> &'static Definition {
        match (format, table) {
            (ExportFormat::Csv, Table::Events) => &entries::EVENTS_CSV,
            (ExportFormat::Csv, Table::Samples) => &entries::SAMPLES_CSV,
            (ExportFormat::Parquet, Table::Events) => &entries::EVENTS_PARQUET,
            (ExportFormat::Parquet, Table::Samples) => &entries::SAMPLES_PARQUET,
            (ExportFormat::Chrome, _) => &entries::CHROME,
            (ExportFormat::Perfetto, _) => &entries::PERFETTO,
            (ExportFormat::Json, _) => &entries::EARLIEST_EVENTS,
            (ExportFormat::Kernels, _) => &entries::KERNEL_COUNTERS,
        }
    }

    /// Parts of a timeline that the writer of the format reads.
    pub(crate) const fn needs(self) -> Needs {
        match (self.format, self.table) {
            (ExportFormat::Csv | ExportFormat::Parquet, Table::Samples) => Needs::NOTHING.counters(),
            (ExportFormat::Csv | ExportFormat::Parquet, Table::Events) | (ExportFormat::Json, _) => Needs {
                name_details: false,
                allocations: false,
                programs: false,
                counters: false,
                profiles: false,
                ..Needs::EVERYTHING
            },
            (ExportFormat::Chrome | ExportFormat::Perfetto, _) => Needs {
                name_details: false,
                allocations: false,
                programs: false,
                profiles: false,
                ..Needs::EVERYTHING
            },
            (ExportFormat::Kernels, _) => Needs::NOTHING.profiles(),
        }
    }
}
