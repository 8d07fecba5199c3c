//! One name of a capture: how often it ran on a device, and how long.

use serde::{Deserialize, Serialize};

use crate::capture::probability_fault;
use crate::column::Column;
use crate::name::has_hash;
use crate::sketch::Sketch;
use crate::table::{Record, Table, columns};

/// Figures of one (capture, device, category, name). What it says of the capture repeats the
/// [`crate::CaptureRow`], so that queries need not join.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The capture's UID.
    pub capture_uid: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// The container's image, as the pod names it.
    pub image: String,
    /// Digest of the image that runs.
    pub image_digest: Option<String>,
    /// Version of the workload.
    pub version: Option<String>,
    /// Name of the node that the pod ran on.
    pub node: String,
    /// Product name of the device; of what ran on no device, that of the container's GPUs.
    pub gpu_model: Option<String>,
    /// Name of what owns the pod.
    pub workload: Option<String>,
    /// When the window began, in ns since 1970.
    pub window_start: i64,
    /// Length of the window.
    pub window_ns: i64,
    /// As the capture has it.
    pub probability_per_billion: i64,
    /// Ordinal of the device; none of what runs on the CPU.
    pub device: Option<i64>,
    /// Category of the event model, such as `cuda_kernel`, or [`crate::PROFILED_KERNEL`].
    pub category: String,
    /// The name; [`crate::OTHER_NAMES`] for those without a row of their own. One that is longer
    /// than [`crate::LONGEST_NAME`] is cut.
    pub name: String,
    /// [`crate::name_hash`] of the whole name.
    pub name_hash: i64,
    /// How often it ran.
    pub calls: i64,
    /// Sum of the durations.
    pub total_ns: i64,
    /// Shortest duration in ns.
    pub min_ns: i64,
    /// Longest duration in ns.
    pub max_ns: i64,
    /// Median of the durations in ns: the middle one, or the mean of the two middle ones, rounded
    /// down.
    pub median_ns: i64,
    /// How the durations are spread; none where only their figures are known.
    pub sketch: Option<Sketch>,
}

impl Record for Row {
    const TABLE: Table = Table::Rows;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = columns![
            capture_uid,
            namespace,
            image,
            image_digest,
            version,
            node,
            gpu_model,
            workload,
        ];
        columns.push(
            Column::new(
                "window_start",
                |row: &Self| &row.window_start,
                |row| &mut row.window_start,
            )
            .of_instants(),
        );
        columns.extend(columns![
            window_ns,
            probability_per_billion,
            device,
            category,
            name,
            name_hash,
            calls,
            total_ns,
            min_ns,
            max_ns,
            median_ns,
            sketch,
        ]);
        columns
    }

    fn fault(&self) -> Option<&'static str> {
        let calls = u64::try_from(self.calls).unwrap_or(0);
        if calls == 0 {
            Some("a name was never called")
        } else if self.window_ns < 0 || self.device.is_some_and(i64::is_negative) {
            Some("a length or a device is negative")
        } else if !(0 <= self.min_ns
            && self.min_ns <= self.median_ns
            && self.median_ns <= self.max_ns
            && self.max_ns <= self.total_ns)
        {
            Some("durations are not in order")
        } else if self.sketch.as_ref().is_some_and(|sketch| sketch.count() != calls) {
            Some("a sketch does not hold as many durations as there were calls")
        } else if !has_hash(&self.name, self.name_hash) {
            Some("a name does not have its hash")
        } else {
            probability_fault(self.probability_per_billion)
        }
    }
}
