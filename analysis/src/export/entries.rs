//! The files for other programs as entries of the catalogue.

use super::{Export, ExportFormat, Table};
use crate::definition::{Definition, ResultType};

pub(crate) const EVENTS_CSV: Definition = file(
    "events-csv",
    "Events as CSV",
    "Every event of the timeline, a line each (RFC 4180).",
    ExportFormat::Csv,
    Table::Events,
    "timeline.csv",
);

pub(crate) const EVENTS_PARQUET: Definition = file(
    "events-parquet",
    "Events as Parquet",
    "Every event of the timeline, in columns.",
    ExportFormat::Parquet,
    Table::Events,
    "timeline.parquet",
);

pub(crate) const SAMPLES_CSV: Definition = file(
    "samples-csv",
    "Samples as CSV",
    "Every sample of the timeline's series, a line each (RFC 4180).",
    ExportFormat::Csv,
    Table::Samples,
    "samples.csv",
);

pub(crate) const SAMPLES_PARQUET: Definition = file(
    "samples-parquet",
    "Samples as Parquet",
    "Every sample of the timeline's series, in columns.",
    ExportFormat::Parquet,
    Table::Samples,
    "samples.parquet",
);

/// The file is not beside the artifacts: a client that wants it over a network wants it compressed.
pub(crate) const CHROME: Definition = Definition::of_export(
    "chrome-trace",
    "Chrome trace",
    "The timeline as JSON of chrome://tracing.",
    plain(ExportFormat::Chrome, Table::Events),
    ResultType::File {
        media_type: ExportFormat::Chrome.media_type(),
        file_name: "timeline.json",
        artifact: false,
        may_be_absent: false,
    },
);

/// A compressed file and no compressed transfer: a client gets what it stores.
pub(crate) const CHROME_GZ: Definition = Definition::of_export(
    "chrome-trace-gz",
    "Chrome trace, compressed",
    "The timeline as JSON of chrome://tracing, compressed with gzip.",
    Export {
        gzip: true,
        ..plain(ExportFormat::Chrome, Table::Events)
    },
    ResultType::File {
        media_type: "application/gzip",
        file_name: "timeline.json.gz",
        artifact: true,
        may_be_absent: false,
    },
);

pub(crate) const PERFETTO: Definition = file(
    "perfetto-trace",
    "Perfetto trace",
    "The timeline as protobuf of Perfetto.",
    ExportFormat::Perfetto,
    Table::Events,
    "timeline.pftrace",
);

/// The answer to `GET /api/profiling/timeline/ID`.
pub(crate) const EARLIEST_EVENTS: Definition = Definition::of_export(
    "earliest-events",
    "Earliest events as JSON",
    "The earliest 100,000 events as JSON.",
    plain(ExportFormat::Json, Table::Events),
    ResultType::File {
        media_type: ExportFormat::Json.media_type(),
        file_name: "events.json",
        artifact: false,
        may_be_absent: false,
    },
);

/// The answer to `GET /api/profiling/kernels/ID`.
pub(crate) const KERNEL_COUNTERS: Definition = Definition::of_export(
    "kernel-counters",
    "Counters of kernels as JSON",
    "Counters of launches that a kernel profiler measured, as JSON, where the capture has any.",
    plain(ExportFormat::Kernels, Table::Events),
    ResultType::File {
        media_type: ExportFormat::Kernels.media_type(),
        file_name: "kernels.json",
        artifact: false,
        may_be_absent: true,
    },
);

const fn plain(format: ExportFormat, table: Table) -> Export {
    let gzip = false;
    Export { format, table, gzip }
}

const fn file(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    format: ExportFormat,
    table: Table,
    file_name: &'static str,
) -> Definition {
    let result = ResultType::File {
        media_type: format.media_type(),
        file_name,
        artifact: true,
        may_be_absent: false,
    };
    Definition::of_export(name, title, about, plain(format, table), result)
}
