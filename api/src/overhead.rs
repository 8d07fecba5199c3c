//! What a window costs its target: how it is measured, what it may be, and what it was.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::schema::KubeSchema;

/// What the target may lose to a window, and what tells how fast it is. A basis point is a hundredth of a percent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverheadSpec {
    /// How much longer a unit of the target's work may take while the window is open, in basis points.
    #[serde(default = "default_during_basis_points")]
    #[schemars(range(min = 1, max = 10_000))]
    pub during_basis_points: i32,
    /// What to do once the window is known to cost more than that.
    #[serde(default)]
    pub action: OverheadAction,
    /// How long the capture goes on measuring once the profiler is gone, in seconds, before it ends. What it measures while the timeline is made
    /// counts towards it. A target that is faster or slower then than it was before tells that its load changed.
    #[serde(default)]
    #[schemars(range(min = 0, max = 60))]
    pub after_seconds: i32,
    /// What tells how fast the target is. Default: the flight recorder of a container that is prepared for it, else nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalSpec>,
}

/// Most that a target may lose to an open window by default, in basis points.
pub const DURING_BASIS_POINTS: i32 = 1_000;

const fn default_during_basis_points() -> i32 {
    DURING_BASIS_POINTS
}

impl Default for OverheadSpec {
    fn default() -> Self {
        Self {
            during_basis_points: DURING_BASIS_POINTS,
            action: OverheadAction::default(),
            after_seconds: 0,
            signal: None,
        }
    }
}

impl OverheadSpec {
    /// Whether it says nothing that is not so by itself.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What to do once a window is known to cost too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum OverheadAction {
    /// End the window. What it recorded is published, and the capture fails with `OverBudget`.
    #[default]
    Stop,
    /// Say so when the window is over.
    Report,
}

impl OverheadAction {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What tells how fast a pod is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalSpec {
    /// A counter that the program itself publishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusSignal>,
}

/// A counter that the program publishes for Prometheus, such as tokens or training steps. It is read from the pod four times a second around a
/// window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusSignal {
    /// Port of the pod.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: i32,
    /// Path of the metrics.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^/[!-~]*$"))]
    pub path: String,
    /// Name of the counter.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"))]
    pub counter: String,
    /// Labels that a series must have to count. Those that have are added up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels")]
    pub labels: BTreeMap<String, String>,
    /// How long it is read before the profiler attaches, in seconds.
    #[serde(default = "default_baseline_seconds")]
    #[schemars(range(min = 3, max = 60))]
    pub baseline_seconds: i32,
}

const fn default_baseline_seconds() -> i32 {
    10
}

fn default_path() -> String {
    "/metrics".to_owned()
}

fn labels(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": { "type": "string", "maxLength": 253 },
        "description": "Labels that a series must have to count. Those that have are added up."
    })
}

/// What the window cost its target, by the target's own work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureOverhead {
    /// Against `spec.overhead.duringBasisPoints`.
    pub verdict: OverheadVerdict,
    /// What the verdict rests on.
    pub reason: OverheadReason,
    /// The same in a sentence, with what to do where it cannot be told.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What told how fast the target was; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<OverheadSignal>,
    /// How much longer a unit of work took in the window, in basis points; negative where it took less. Absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_basis_points: Option<i32>,
    /// Lower end of the 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<i32>,
    /// Upper end of the 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<i32>,
    /// Length of a bin, the stretch of time whose rate is one observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub bin_milliseconds: Option<i32>,
    /// Bins before the window, while it was open, and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<OverheadBins>,
    /// How long the target stood still while the profiler started and stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub stall_milliseconds: Option<i64>,
}

/// Processor time that a capture took beside its target's own work. What a profiler does within the program's own processes is no part of it: that
/// is seen by the program's pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureProcessorTime {
    /// Of the profiler's own processes in the container, from before it started to collect until it was gone. Absent where it has none that the
    /// agent knows, and where the agent restarted meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub profiler_milliseconds: Option<i64>,
    /// Of the agent's children that imported and transformed what was recorded, to some hundredths of a second. Absent where it is not
    /// known of one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub processing_milliseconds: Option<i64>,
}

impl CaptureProcessorTime {
    /// Whether nothing is known.
    pub const fn is_unknown(&self) -> bool {
        self.profiler_milliseconds.is_none() && self.processing_milliseconds.is_none()
    }
}

/// Numbers of bins that were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverheadBins {
    /// Before the profiler began to attach.
    #[schemars(range(min = 0))]
    pub before: i32,
    /// While the window was open.
    #[schemars(range(min = 0))]
    pub during: i32,
    /// Once the profiler was gone.
    #[schemars(range(min = 0))]
    pub after: i32,
}

/// What told how fast a target was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverheadSignal {
    /// Who counted.
    pub source: SignalSource,
    /// Of the counter or of the range.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// Who counted the target's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum SignalSource {
    /// The program itself, for Prometheus.
    Prometheus,
    /// The flight recorder: NVTX ranges of one name.
    Recorder,
}

impl SignalSource {
    /// The word that stands in statuses and labels.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Whether a window kept within its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum OverheadVerdict {
    /// All of the interval is within the budget.
    Within,
    /// All of the interval is above the budget.
    Exceeded,
    /// It cannot be told.
    Inconclusive,
    /// Nothing showed the target's work.
    Blind,
}

impl OverheadVerdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Within, Self::Exceeded, Self::Inconclusive, Self::Blind];

    /// The word that stands in statuses and labels.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum OverheadReason {
    /// The upper end of the interval is within the budget.
    UpperEndWithin,
    /// The lower end of the interval is above the budget.
    LowerEndAbove,
    /// The window was ended while it was open.
    Stopped,
    /// The budget lies within the interval.
    BudgetWithinInterval,
    /// There are fewer than eight independent bins in the window or before it. From three bins in
    /// the window on there is an interval, which schedules put together with those of others.
    TooFewBins,
    /// Something counted the target's work, and it came too seldom before the window to show how
    /// fast the target is.
    TooSeldom,
    /// The target was faster or slower after the window than before it.
    LoadChanged,
    /// Nothing counted the target's work, or it did not move.
    NoSignal,
}

impl OverheadReason {
    /// The word that stands in statuses and summaries.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
