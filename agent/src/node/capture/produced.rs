//! The files of a capture, and what they hold.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::overhead::{CaptureOverhead, CaptureProcessorTime};
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::SourceFile;
use flopwatch_fleet::CaptureRow;
use flopwatch_pipeline::artifact_file::source_file;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::products::SUMMARY;
use flopwatch_summary::{Overhead, ProcessorTime, Summary};

/// Files to publish and what they hold.
pub(super) struct Produced {
    pub(super) files: Vec<SourceFile>,
    /// The tables of the summary, which is written once they say what the capture cost.
    pub(super) tables: Summary,
    /// Index in the files at which the summary belongs; none where it is not published.
    pub(super) summary_at: Option<usize>,
    /// Names of the categories that were recorded.
    pub(super) captured: Vec<String>,
    pub(super) summary: CaptureSummary,
    /// Why there is nothing of the time before the window, where there should be something.
    pub(super) without_prelude: Option<String>,
    /// That processes were recorded and did nothing; none where there are none.
    pub(super) idle: Option<String>,
    /// Processor time of the children; none where it is not known of one of them.
    pub(super) processor_time: Option<Duration>,
    /// The capture's row of the fleet with what was measured; none where there is no fleet.
    pub(super) fleet: Option<Box<CaptureRow>>,
}

impl Produced {
    /// Writes the summary, with what the capture cost, to the capture's folder, where it is to be
    /// published.
    pub(super) fn add_cost_to_summary(
        &mut self,
        overhead: Option<&CaptureOverhead>,
        time: CaptureProcessorTime,
        spool: &Path,
    ) -> Result<(), Failure> {
        let Some(at) = self.summary_at.take() else {
            return Ok(());
        };
        self.tables.overhead = overhead.map(of_summary);
        self.tables.processor_time = Some(time).filter(|time| !time.is_unknown()).map(|time| ProcessorTime {
            profiler_ms: time.profiler_milliseconds,
            processing_ms: time.processing_milliseconds,
        });
        let text = self.tables.to_json().map_err(not_stored())?;
        let path = spool.join(SUMMARY);
        std::fs::write(&path, text).map_err(not_stored())?;
        let written = File::open(path).map_err(not_stored())?;
        if let Some(file) = source_file(SUMMARY, written) {
            self.files.insert(at, file);
        }
        Ok(())
    }
}

fn of_summary(told: &CaptureOverhead) -> Overhead {
    let signal = told.signal.as_ref();
    Overhead {
        verdict: told.verdict.as_str().to_owned(),
        reason: told.reason.as_str().to_owned(),
        message: told.message.clone(),
        signal: signal.map(|signal| format!("{} {}", signal.source.as_str(), signal.name)),
        slowdown_basis_points: told.slowdown_basis_points,
        low_basis_points: told.low,
        high_basis_points: told.high,
        stall_ms: told.stall_milliseconds,
    }
}

/// The failure of a file that cannot be read or written.
pub(super) fn not_stored<E: std::error::Error>() -> impl FnOnce(E) -> Failure {
    Failure::because(CaptureReason::StoreFailed)
}
