//! How much the pods of a schedule may lose, and how long those that lost too much are left alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::overhead::{DURING_BASIS_POINTS, SignalSpec};
use crate::schema::KubeSchema;

/// How much the pods may lose. A basis point is a hundredth of a percent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetSpec {
    /// What pods may lose over all of their time, in basis points of their speed. Where a measurement cannot tell yet, windows are made half
    /// as often.
    #[serde(default = "default_amortized_basis_points")]
    #[schemars(range(min = 1, max = 10_000))]
    pub amortized_basis_points: i32,
    /// What a pod may lose while a window is open, in basis points of its speed. A window that exceeds it is ended within seconds.
    #[serde(default = "default_during_basis_points")]
    #[schemars(range(min = 1, max = 10_000))]
    pub during_basis_points: i32,
    /// What tells how fast a pod is. Default: what can be seen from outside of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalSpec>,
    /// What to do where nothing tells how fast a pod is.
    #[serde(default)]
    pub unknown: UnknownOverhead,
    /// Longest time in windows of one pod in any 24 hours, in seconds. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub capture_seconds_per_pod_per_day: Option<i32>,
}

const fn default_amortized_basis_points() -> i32 {
    100
}

const fn default_during_basis_points() -> i32 {
    DURING_BASIS_POINTS
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self {
            amortized_basis_points: default_amortized_basis_points(),
            during_basis_points: default_during_basis_points(),
            signal: None,
            unknown: UnknownOverhead::default(),
            capture_seconds_per_pod_per_day: None,
        }
    }
}

/// What to do where nothing tells how fast a pod is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum UnknownOverhead {
    /// Go by what is seen from outside, such as processor time, and say what that cannot see.
    #[default]
    Proxy,
    /// Leave pods of such an image alone once a window has shown it.
    Refuse,
}

impl UnknownOverhead {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How long pods of an image are left alone after a window on one of them failed or exceeded the budget: twice as long after each further
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.initialSeconds <= self.maximumSeconds")
    .message("spec.backoff.initialSeconds must not be above maximumSeconds"))]
pub struct BackoffSpec {
    /// After the first one, in seconds.
    #[serde(default = "default_initial_seconds")]
    #[schemars(range(min = 1, max = 2_678_400))]
    pub initial_seconds: i32,
    /// At most, in seconds.
    #[serde(default = "default_maximum_seconds")]
    #[schemars(range(min = 1, max = 2_678_400))]
    pub maximum_seconds: i32,
}

const fn default_initial_seconds() -> i32 {
    3_600
}

const fn default_maximum_seconds() -> i32 {
    86_400
}

impl Default for BackoffSpec {
    fn default() -> Self {
        Self {
            initial_seconds: default_initial_seconds(),
            maximum_seconds: default_maximum_seconds(),
        }
    }
}
