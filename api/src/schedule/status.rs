//! What became of a schedule.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::overhead::OverheadReason;
use crate::schema::KubeSchema;

/// Most strata that a status lists.
pub const MAX_STRATA: usize = 50;

/// Most active sessions that a status names.
pub const MAX_ACTIVE: usize = 100;

/// What became of the schedule. Written by the operator alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfilingScheduleStatus {
    /// Generation of the spec that this status was determined from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready: whether the spec can be followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// When the next session may be made; absent while the schedule is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub next_time: Option<Time>,
    /// When a session was last made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_time: Option<Time>,
    /// Until when the slots have been decided: sessions made, or counted in `skipped`. The next controller begins here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub planned_until: Option<Time>,
    /// Since when windows count for or against the images that they were on: when the spec was last changed. Whoever changes it gives every
    /// image another chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub ledger_since: Option<Time>,
    /// How many sessions have not ended.
    #[serde(default)]
    pub active_count: i32,
    /// Names of sessions that have not ended, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub active: Vec<String>,
    /// How many windows were left out, by reason, since the schedule was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["reason"]))]
    pub skipped: Vec<SkippedCount>,
    /// The strata as they were drawn from last, the largest 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub strata: Vec<StratumStatus>,
    /// What the pods were measured to lose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
}

/// Windows that were left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedCount {
    /// The reason.
    pub reason: SkipReason,
    /// How many: one for each pod and slot.
    #[schemars(range(min = 0))]
    pub count: i64,
}

/// Why a pod was left out of a slot.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
pub enum SkipReason {
    /// Nobody made the session before `startingDeadlineSeconds`: the controller was not running, or a later slot of the pod had come.
    Missed,
    /// The window would have been open in one of `blackouts`.
    Blackout,
    /// The pod is younger than `minPodAgeSeconds`.
    TooYoung,
    /// The pod is being deleted.
    Terminating,
    /// A container of the pod restarted within `minPodAgeSeconds`.
    Restarting,
    /// The pod was profiled within `restSeconds`.
    Resting,
    /// The pod was in windows for `captureSecondsPerPodPerDay` in the last 24 hours, or would be.
    DailyLimit,
    /// A session of an earlier slot still profiles the pod.
    StillRunning,
    /// A window on a pod of this image and hardware failed or exceeded the budget: see `backoff`.
    BackedOff,
    /// More than two of the last ten windows on pods of this image and hardware failed. Change the schedule to try again.
    ClassSuspended,
    /// Pods of this image and hardware lose more than `amortizedBasisPoints` over all of their time.
    OverBudget,
    /// It is not known yet whether pods of this image and hardware lose too much, so that every second slot is left out, at random.
    RateHalved,
    /// Nothing tells how fast pods of this image are, and `unknown` is Refuse.
    NoSensor,
}

impl SkipReason {
    /// Every reason, in the order of its documentation.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The word that stands in statuses and labels.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A stratum, as it was drawn from last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct StratumStatus {
    /// What its pods have in common.
    #[schemars(length(max = 512))]
    pub key: String,
    /// Pods that can be drawn, those that rest from an earlier window included.
    #[schemars(range(min = 0))]
    pub pods: i32,
    /// Pods among them that were captured at least once, as far as sessions are kept.
    #[schemars(range(min = 0))]
    pub captured: i32,
    /// How probable it is at any time of the period that a pod of it is in a window, in billionths.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub probability_per_billion: i32,
}

/// What the pods were measured to lose over all of their time, in basis points, with a 95 % interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// Against the budget.
    pub state: BudgetState,
    /// The estimate, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amortized_basis_points: Option<i32>,
    /// Lower end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<i32>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<i32>,
    /// Windows that it was determined from.
    #[schemars(range(min = 0))]
    pub windows: i32,
    /// Why none of them could be judged, where none could: that of the class with the most windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<OverheadReason>,
}

/// What pods were measured to lose, against the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum BudgetState {
    /// All of the interval is within the budget.
    Within,
    /// The budget is inside the interval, or nothing was measured yet.
    Learning,
    /// All of the interval is above the budget.
    Exceeded,
    /// There were windows in which something counted the work of pods, and none of them could be
    /// judged: `reason` says why.
    Inconclusive,
    /// There were windows, and nothing counted the work of pods in any of them.
    Blind,
}

impl BudgetState {
    /// The word that stands in statuses and labels.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
