//! Alerts that make a session at once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::KubeSchema;

/// An alert that makes a session of the pod that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Which alerts.
    pub alert: AlertMatch,
    /// Which labels of the alert name the pod.
    #[serde(default)]
    pub target: TriggerTarget,
    /// Shortest time between two sessions of one pod that this trigger makes, in seconds.
    #[serde(default = "default_cooldown_seconds")]
    #[schemars(range(min = 0, max = 2_678_400))]
    pub cooldown_seconds: i32,
    /// Most sessions that this trigger makes in any 24 hours.
    #[serde(default = "default_maximum_per_day")]
    #[schemars(range(min = 1, max = 1_000))]
    pub maximum_per_day: i32,
    /// Whether it makes sessions in blackouts too.
    #[serde(default)]
    pub ignore_blackouts: bool,
}

const fn default_cooldown_seconds() -> i32 {
    3_600
}

const fn default_maximum_per_day() -> i32 {
    10
}

/// Which alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertMatch {
    /// Name of the alert: its label `alertname`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Further labels that it must have, with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "match_labels")]
    pub match_labels: BTreeMap<String, String>,
}

fn match_labels(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": { "type": "string", "maxLength": 253 },
        "description": "Further labels that it must have, with these values."
    })
}

/// Which labels of an alert name the pod. The pod must be one that the schedule selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerTarget {
    /// Label with the pod's namespace. Alerts of other namespaces than the schedule's are left out.
    #[serde(default = "default_namespace_label")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[a-zA-Z_][a-zA-Z0-9_]*$"))]
    pub namespace_label: String,
    /// Label with the pod's name.
    #[serde(default = "default_pod_label")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[a-zA-Z_][a-zA-Z0-9_]*$"))]
    pub pod_label: String,
}

fn default_namespace_label() -> String {
    "namespace".to_owned()
}

fn default_pod_label() -> String {
    "pod".to_owned()
}

impl Default for TriggerTarget {
    fn default() -> Self {
        Self {
            namespace_label: default_namespace_label(),
            pod_label: default_pod_label(),
        }
    }
}
