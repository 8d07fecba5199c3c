//! What an agent counts of fleet rows.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry};

/// What became of a file of fleet rows, or of a try to copy one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetResult {
    /// The object store has it.
    Stored,
    /// The object store did not take it; it is tried again.
    Failed,
    /// It is lost: it was refused, or made room for newer ones.
    Dropped,
}

impl FleetResult {
    /// Every result.
    pub const ALL: [Self; 3] = [Self::Stored, Self::Failed, Self::Dropped];

    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// Files of fleet rows on their way to the object store.
#[derive(Clone, Debug)]
pub struct FleetMetrics {
    files: IntCounterVec,
    waiting: IntGauge,
}

impl FleetMetrics {
    /// Makes the metrics and registers them, with every label's value.
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            files: IntCounterVec::new(
                Opts::new(
                    "flopwatch_fleet_files_total",
                    "Files of fleet rows that went to the object store, tries that failed, and files that were lost before.",
                ),
                &["result"],
            )?,
            waiting: IntGauge::new(
                "flopwatch_fleet_files_waiting",
                "Files of fleet rows on this node that are still to be copied to the object store.",
            )?,
        };
        for result in FleetResult::ALL {
            metrics.files.with_label_values(&[result.as_str()]).reset();
        }
        registry.register(Box::new(metrics.files.clone()))?;
        registry.register(Box::new(metrics.waiting.clone()))?;
        Ok(metrics)
    }

    /// What became of so many files.
    pub fn files(&self, result: FleetResult, files: usize) {
        let files = u64::try_from(files).unwrap_or(u64::MAX);
        self.files.with_label_values(&[result.as_str()]).inc_by(files);
    }

    /// So many files are still to be copied.
    pub fn waiting(&self, files: usize) {
        self.waiting.set(i64::try_from(files).unwrap_or(i64::MAX));
    }
}
