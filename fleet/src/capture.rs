//! A capture as a row: who was profiled, with which probability, and what came of it.

use flopwatch_summary::Summary;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::measured::PROFILED_KERNEL;
use crate::table::{Record, SCHEMA_VERSION, Table, columns};

/// The probability of what nobody drew.
pub const CERTAIN_PER_BILLION: i64 = 1_000_000_000;

/// What made a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A schedule, which drew the pod.
    Schedule,
    /// An alert.
    Alert,
    /// A person or a program of theirs.
    Manual,
}

impl Trigger {
    /// The word in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "Schedule",
            Self::Alert => "Alert",
            Self::Manual => "Manual",
        }
    }
}

/// A capture. Every capture has one, those that failed too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureRow {
    /// [`SCHEMA_VERSION`].
    pub schema_version: i64,
    /// The cluster's name, as its operator is told.
    pub cluster: String,
    /// Namespace of the pod, the capture and its session.
    pub namespace: String,
    /// The schedule that made the session; none where a person or program did.
    pub schedule: Option<String>,
    /// The session's name.
    pub session: String,
    /// The session's `status.id`.
    pub session_id: String,
    /// The capture's name.
    pub capture: String,
    /// The capture's UID.
    pub capture_uid: String,
    /// What made the session: the word of a [`Trigger`].
    pub trigger: String,
    /// Name of the node that the pod ran on.
    pub node: String,
    /// Product name of the container's GPUs, several joined by `, `; none where it is not known.
    pub gpu_model: Option<String>,
    /// GPUs and MIG devices that the container has; none where it is not known.
    pub gpus: Option<i64>,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container that was profiled.
    pub container: String,
    /// Kind of what owns the pod, such as `Deployment`.
    pub workload_kind: Option<String>,
    /// Name of what owns the pod.
    pub workload: Option<String>,
    /// The container's image, as the pod names it.
    pub image: String,
    /// Digest of the image that runs, `sha256:...`.
    pub image_digest: Option<String>,
    /// Version of the workload: the value of the pod's label that says it.
    pub version: Option<String>,
    /// The profiler that was used.
    pub profiler: Option<String>,
    /// When the window began, in ns since 1970; where none did, when the capture ended.
    pub window_start: i64,
    /// Length of the window; 0 where there was none.
    pub window_ns: i64,
    /// How probable it was at any time of the schedule's period that the pod is in a window, in
    /// billionths; [`CERTAIN_PER_BILLION`] where nobody drew.
    pub probability_per_billion: i64,
    /// Whether the capture succeeded.
    pub succeeded: bool,
    /// Why, as the condition `Succeeded` says it.
    pub reason: Option<String>,
    /// Categories that were captured, with or without events. What is missing here was not
    /// captured.
    pub categories: Vec<String>,
    /// How long its GPUs had work, all added up; none where no work of a GPU was captured.
    pub gpu_busy_ns: Option<i64>,
    /// Events of all categories; none where there is no timeline.
    pub events: Option<i64>,
    /// Events that were dropped, truncated, skipped or unsupported; none where there is no
    /// timeline.
    pub dropped: Option<i64>,
    /// What the window cost its target: `Within`, `Exceeded`, `Inconclusive` or `Blind`; none where
    /// there was no window.
    pub overhead_verdict: Option<String>,
    /// How much longer a unit of work took in the window.
    pub overhead_slowdown_basis_points: Option<i64>,
    /// Lower end of its 95 % interval.
    pub overhead_low_basis_points: Option<i64>,
    /// Upper end of its 95 % interval.
    pub overhead_high_basis_points: Option<i64>,
}

impl Default for CaptureRow {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            cluster: String::new(),
            namespace: String::new(),
            schedule: None,
            session: String::new(),
            session_id: String::new(),
            capture: String::new(),
            capture_uid: String::new(),
            trigger: String::new(),
            node: String::new(),
            gpu_model: None,
            gpus: None,
            pod: String::new(),
            container: String::new(),
            workload_kind: None,
            workload: None,
            image: String::new(),
            image_digest: None,
            version: None,
            profiler: None,
            window_start: 0,
            window_ns: 0,
            probability_per_billion: CERTAIN_PER_BILLION,
            succeeded: false,
            reason: None,
            categories: Vec::new(),
            gpu_busy_ns: None,
            events: None,
            dropped: None,
            overhead_verdict: None,
            overhead_slowdown_basis_points: None,
            overhead_low_basis_points: None,
            overhead_high_basis_points: None,
        }
    }
}

impl CaptureRow {
    /// With what the capture's summary tells: window, categories, figures and overhead. The GPUs'
    /// model stays where it is known.
    #[must_use]
    pub fn with_summary(mut self, summary: &Summary) -> Self {
        let captured = || summary.categories.iter().filter(|count| count.captured);
        self.window_ns = integer(summary.window_ns);
        self.categories = captured().map(|count| count.category.name().to_owned()).collect();
        if summary.profiled_kernels.captured {
            self.categories.push(PROFILED_KERNEL.to_owned());
        }
        let gpu_work = captured().any(|count| count.category.is_gpu_work());
        let busy = summary.gpus.iter().map(|gpu| gpu.busy_ns);
        self.gpu_busy_ns = gpu_work.then(|| integer(busy.fold(0, u64::saturating_add)));
        self.events = Some(integer(summary.total_events));
        let lost = summary.drops.iter().filter(|loss| loss.is_of_something());
        let lost = lost.map(|loss| loss.count);
        self.dropped = Some(integer(lost.fold(0, u64::saturating_add)));
        let mut models: Vec<&str> = summary.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        models.retain(|model| !model.is_empty());
        models.sort_unstable();
        models.dedup();
        if self.gpu_model.is_none() && !models.is_empty() {
            self.gpu_model = Some(models.join(", "));
        }
        if let Some(overhead) = &summary.overhead {
            self.overhead_verdict = Some(overhead.verdict.clone());
            self.overhead_slowdown_basis_points = overhead.slowdown_basis_points.map(i64::from);
            self.overhead_low_basis_points = overhead.low_basis_points.map(i64::from);
            self.overhead_high_basis_points = overhead.high_basis_points.map(i64::from);
        }
        self
    }
}

/// The largest number stands for what is larger.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What makes no sense about a probability.
pub(crate) fn probability_fault(per_billion: i64) -> Option<&'static str> {
    let fits = (1..=CERTAIN_PER_BILLION).contains(&per_billion);
    (!fits).then_some("a probability is not between 1 and 1,000,000,000 billionths")
}

impl Record for CaptureRow {
    const TABLE: Table = Table::Captures;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = columns![
            schema_version,
            cluster,
            namespace,
            schedule,
            session,
            session_id,
            capture,
            capture_uid,
            trigger,
            node,
            gpu_model,
            gpus,
            pod,
            container,
            workload_kind,
            workload,
            image,
            image_digest,
            version,
            profiler,
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
            succeeded,
            reason,
            categories,
            gpu_busy_ns,
            events,
            dropped,
            overhead_verdict,
            overhead_slowdown_basis_points,
            overhead_low_basis_points,
            overhead_high_basis_points,
        ]);
        columns
    }

    fn fault(&self) -> Option<&'static str> {
        let counts = [self.gpus, self.gpu_busy_ns, self.events, self.dropped];
        if self.schema_version != SCHEMA_VERSION {
            Some("its schema is of another version")
        } else if self.window_ns < 0 || counts.into_iter().flatten().any(i64::is_negative) {
            Some("a length or a count is negative")
        } else {
            probability_fault(self.probability_per_billion)
        }
    }
}
