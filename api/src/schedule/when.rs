//! When the slots of a schedule are, and when no window is open.

use serde::{Deserialize, Serialize};

use crate::schema::KubeSchema;

/// When the slots are: exactly one of the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(has(self.interval) ? 1 : 0) + (has(self.cron) ? 1 : 0) == 1")
    .message("spec.when needs exactly one of interval (every so many seconds) and cron (at times of the clock)"))]
pub struct When {
    /// Slots of equal length. Each pod has a random time of its own within them, so that the pods spread over the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Slots at times of the clock, for all pods at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<Cron>,
}

/// Slots of equal length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// Length of a slot in seconds, 10 to 604,800 (a week).
    #[schemars(range(min = 10, max = 604_800))]
    pub seconds: i32,
}

/// Times of the clock in a time zone. A time of day that the change to summer time leaves out is taken at the first instant after it; one
/// that the change back repeats is taken the first time alone. Expressions that name several hours or minutes follow the clock: what is
/// left out is left out, and what is repeated is taken twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cron {
    /// Minute, hour, day of the month, month and day of the week, as in crontab(5).
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[^ @]+( [^ @]+){4}$"))]
    pub expression: String,
    /// Name of the time zone in IANA's database, such as `Europe/Berlin`. Default: `Etc/UTC`.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: String,
}

/// A time in which no window is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blackout {
    /// When it begins: minute, hour, day of the month, month and day of the week, as in crontab(5).
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[^ @]+( [^ @]+){4}$"))]
    pub cron: String,
    /// Name of the time zone in IANA's database, such as `Europe/Berlin`. Default: `Etc/UTC`.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: String,
    /// How long it lasts, in seconds of elapsed time, 1 to 2,678,400 (31 days).
    #[schemars(range(min = 1, max = 2_678_400))]
    pub duration_seconds: i32,
}

fn default_time_zone() -> String {
    "Etc/UTC".to_owned()
}
