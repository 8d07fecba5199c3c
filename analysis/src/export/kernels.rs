//! Launches that a kernel profiler measured, as a file: the result of [`profiled_kernels`], which
//! is empty of bytes where there is none.

use std::io::{BufWriter, Write};

use flopwatch_model::Timeline;

use crate::analyses::profiled_kernels::{self, ProfiledKernelsParams};
use flopwatch_export::{ExportCounts, ExportError};

/// Writes nothing at all where the capture has no such launch.
pub(super) fn write<W: Write>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    let mut exported = ExportCounts::default();
    if timeline.capture.profiles.is_empty() {
        return Ok(exported);
    }
    let result = profiled_kernels::of(timeline, &ProfiledKernelsParams::default());
    exported.profiles = u64::try_from(result.launches.len()).unwrap_or(u64::MAX);
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &result)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(exported)
}
