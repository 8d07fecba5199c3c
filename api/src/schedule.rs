//! ProfilingSchedule: sessions that are made again and again, of a sample of the pods, within a
//! budget that is measured on them.

mod budget;
mod select;
mod session;
mod status;
mod trigger;
mod when;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

pub use budget::{BackoffSpec, BudgetSpec, UnknownOverhead};
pub use select::{PerRun, SelectSpec, Stratum};
pub use session::ScheduledSession;
pub use status::{
    BudgetState, BudgetStatus, MAX_ACTIVE, MAX_STRATA, ProfilingScheduleStatus, SkipReason, SkippedCount, StratumStatus,
};
pub use trigger::{AlertMatch, Trigger, TriggerTarget};
pub use when::{Blackout, Cron, Interval, When};

/// Label on sessions that a schedule made: its name.
pub const SCHEDULE_LABEL: &str = "flopwatch.dev/schedule";
/// Annotation on sessions that a schedule made: start of the slot that they are for, in seconds since 1970.
pub const SLOT_ANNOTATION: &str = "flopwatch.dev/schedule-slot";
/// Annotation on sessions that a schedule made: UID of the pod that was drawn.
pub const TARGET_UID_ANNOTATION: &str = "flopwatch.dev/target-uid";
/// Annotation on sessions that a schedule made, and on their captures: how probable it was at any time of the period that the pod is in a
/// window, in billionths. Sums over captures are divided by it.
pub const PROBABILITY_ANNOTATION: &str = "flopwatch.dev/probability-per-billion";
/// Annotation on sessions that a schedule made, and on their captures: digest of the image that the pod ran. With [`HARDWARE_ANNOTATION`] it
/// is the class that the window is accounted to, whether the pod is still there or not.
pub const IMAGE_DIGEST_ANNOTATION: &str = "flopwatch.dev/image-digest";
/// Annotation on sessions that a schedule made, and on their captures: model of the GPUs of the pod's node, or type of the node.
pub const HARDWARE_ANNOTATION: &str = "flopwatch.dev/hardware";

/// Annotation on sessions that an alert made, and on their captures: `ALERT/FINGERPRINT`. Nobody drew their pods, so they have no
/// [`PROBABILITY_ANNOTATION`] and are no part of sums that are weighted by it.
pub const TRIGGER_ANNOTATION: &str = "flopwatch.dev/trigger";
/// Annotation on sessions that an alert made: since when it fires (RFC 3339). With its fingerprint it tells one firing from the next.
pub const ALERT_STARTED_ANNOTATION: &str = "flopwatch.dev/alert-started";
/// Annotation on sessions that an alert made: how many the trigger had made before. It is part of the name.
pub const TRIGGER_NUMBER_ANNOTATION: &str = "flopwatch.dev/trigger-number";

/// When to profile, which share of the pods, with what, and how much that may cost them. All of it may be changed; sessions that
/// were made already stay as they are.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "flopwatch.dev",
    version = "v1alpha1",
    kind = "ProfilingSchedule",
    plural = "profilingschedules",
    singular = "profilingschedule",
    shortname = "psched",
    category = "profiling",
    namespaced,
    status = "ProfilingScheduleStatus",
    derive = "PartialEq",
    doc = "Profiles a sample of the GPU pods of this namespace again and again, within a budget that is measured on them. It makes ProfilingSessions, which have the label flopwatch.dev/schedule.",
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend", description = "Whether no sessions are made"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextTime", description = "When the next session may be made"),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastTime", description = "Time since a session was made"),
    printcolumn(name = "Active", type_ = "integer", json_path = ".status.activeCount", description = "Sessions that have not ended"),
    printcolumn(name = "Overhead", type_ = "string", json_path = ".status.budget.state", description = "What the pods were measured to lose, against the budget"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status", description = "Whether the spec can be followed", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", description = "Why, in a sentence", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since it was created"),
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name must have at most 63 characters: sessions have it as a label"),
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.when.interval) || self.session.durationSeconds <= self.when.interval.seconds")
        .message("spec.session.durationSeconds must not be longer than spec.when.interval.seconds: the next window would open while this one is"),
    validation = Rule::new("self.session.retention.ttlSecondsAfterFinished >= self.select.restSeconds")
        .message("spec.session.retention.ttlSecondsAfterFinished must not be below spec.select.restSeconds: what a session did is known for as long as it is there"),
    validation = Rule::new("!has(self.triggers) || self.triggers.all(trigger, self.session.retention.ttlSecondsAfterFinished >= trigger.cooldownSeconds && self.session.retention.ttlSecondsAfterFinished >= 86400)")
        .message("spec.triggers needs a spec.session.retention.ttlSecondsAfterFinished of a day (86400) and of each cooldownSeconds, or more: what alerts made is known for as long as it is there"),
    validation = Rule::new("!has(self.budget.captureSecondsPerPodPerDay) || self.session.retention.ttlSecondsAfterFinished >= 86400")
        .message("spec.budget.captureSecondsPerPodPerDay needs a spec.session.retention.ttlSecondsAfterFinished of a day (86400) or more: what a session did is known for as long as it is there"),
)]
pub struct ProfilingScheduleSpec {
    /// Set to make no more sessions. Slots that pass meanwhile are not caught up. Sessions that were made go on.
    #[serde(default)]
    pub suspend: bool,
    /// When the slots are.
    pub when: When,
    /// Longest random delay of a window after its time, in seconds, so that windows do not keep step with what a program does
    /// periodically. Never longer than the time to the next slot.
    #[serde(default = "default_jitter_seconds")]
    #[schemars(range(min = 0, max = 86_400))]
    pub jitter_seconds: i32,
    /// How late a window may open, in seconds. A slot that is later than that is counted as Missed and never caught up.
    #[serde(default = "default_starting_deadline_seconds")]
    #[schemars(range(min = 1, max = 86_400))]
    pub starting_deadline_seconds: i32,
    /// What to do where a session of an earlier slot still profiles the same pod.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Times in which no window is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub blackouts: Vec<Blackout>,
    /// Which pods, and how many of them in each slot.
    pub select: SelectSpec,
    /// The sessions that are made.
    #[serde(default)]
    pub session: ScheduledSession,
    /// How much the pods may lose.
    #[serde(default)]
    pub budget: BudgetSpec,
    /// How long pods of an image that could not be profiled, or lost too much by it, are left alone.
    #[serde(default)]
    pub backoff: BackoffSpec,
    /// How many ended sessions to keep.
    #[serde(default)]
    pub history: HistorySpec,
    /// Alerts that make a session at once, whatever the slots are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub triggers: Vec<Trigger>,
}

impl ProfilingScheduleSpec {
    /// The pods that the schedule is for.
    pub const fn pod_selector(&self) -> &LabelSelector {
        &self.select.pod_selector
    }
}

const fn default_jitter_seconds() -> i32 {
    120
}

const fn default_starting_deadline_seconds() -> i32 {
    60
}

/// What to do where a session of an earlier slot still profiles the same pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum ConcurrencyPolicy {
    /// Leave the slot out for that pod.
    #[default]
    Forbid,
    /// Stop the earlier session, keep what it recorded, and make the new one.
    Replace,
    /// Make the new one too.
    Allow,
}

impl ConcurrencyPolicy {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How many ended sessions to keep. Those that decide when a pod may be profiled again are kept longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistorySpec {
    /// Sessions that succeeded.
    #[serde(default = "default_succeeded")]
    #[schemars(range(min = 0, max = 10_000))]
    pub succeeded: i32,
    /// Sessions that did not.
    #[serde(default = "default_failed")]
    #[schemars(range(min = 0, max = 10_000))]
    pub failed: i32,
}

const fn default_succeeded() -> i32 {
    20
}

const fn default_failed() -> i32 {
    5
}

impl Default for HistorySpec {
    fn default() -> Self {
        Self {
            succeeded: default_succeeded(),
            failed: default_failed(),
        }
    }
}
