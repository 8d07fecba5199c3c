//! The writers of all formats behind one call.

use std::io::Write;

use flopwatch_model::{LossReason, Timeline, count};

#[cfg(feature = "parquet")]
use flopwatch_export::parquet;
use flopwatch_export::{ExportCounts, ExportError, chrome, csv, events, perfetto};

use super::{ExportFormat, Table, kernels};
use crate::input::Input;

/// Writes `timeline` as `format` to `out`; `table` chooses where the format is one table. After an
/// error `out` holds a part.
pub fn export<W: Write + Send>(
    timeline: &Timeline,
    format: ExportFormat,
    table: Table,
    out: W,
) -> Result<ExportCounts, ExportError> {
    write(Input::whole(timeline), format, table, out)
}

/// Writes a capture of which only the format's needs were read, as [`export`] does a whole one.
pub(super) fn write<W: Write + Send>(
    input: Input<'_>,
    format: ExportFormat,
    table: Table,
    out: W,
) -> Result<ExportCounts, ExportError> {
    let Input { timeline, totals } = input;
    let mut exported = match format {
        ExportFormat::Chrome => chrome::write(timeline, out),
        ExportFormat::Perfetto => perfetto::write(timeline, out),
        ExportFormat::Csv => match table {
            Table::Events => csv::events(timeline, out),
            Table::Samples => csv::samples(timeline, out),
        },
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => match table {
            Table::Events => parquet::events(timeline, out),
            Table::Samples => parquet::samples(timeline, out),
        },
        #[cfg(not(feature = "parquet"))]
        ExportFormat::Parquet => Err(ExportError::NotBuilt),
        ExportFormat::Json => events::write(timeline, out),
        ExportFormat::Kernels => kernels::write(timeline, out),
    }?;
    let rest = [
        ("profiles of kernels", totals.profiles.saturating_sub(exported.profiles)),
        ("samples of series", totals.samples.saturating_sub(exported.samples)),
        ("events", totals.events.saturating_sub(exported.events)),
        // The events say the number of theirs alone.
        (
            "stacks of samples of the CPU",
            count(timeline.capture.call_stacks.stacks.len()),
        ),
    ];
    for (what, count) in rest {
        exported.left_out.add(LossReason::Unsupported, what, count);
    }
    Ok(exported)
}
