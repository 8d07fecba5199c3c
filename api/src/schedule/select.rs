//! Which pods a schedule profiles, and how many of them in each slot.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::schema::KubeSchema;

/// Which pods of the schedule's namespace, and how many of them in each slot. Pods are drawn at random, without replacement, in each stratum
/// by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectSpec {
    /// Labels of the pods.
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub pod_selector: LabelSelector,
    /// What pods of a stratum have in common, so that each such group has its share of the windows. Default: the image.
    #[serde(default = "default_stratify_by")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub stratify_by: Vec<Stratum>,
    /// How many pods of a stratum are drawn in a slot.
    #[serde(default)]
    pub per_run: PerRun,
    /// How long a pod must have run, and how long none of its containers may have restarted, in seconds.
    #[serde(default = "default_min_pod_age_seconds")]
    #[schemars(range(min = 0, max = 2_678_400))]
    pub min_pod_age_seconds: i32,
    /// How long a pod is left alone after a window on it, in seconds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 2_678_400))]
    pub rest_seconds: i32,
}

fn default_stratify_by() -> Vec<Stratum> {
    vec![Stratum::ImageDigest]
}

const fn default_min_pod_age_seconds() -> i32 {
    300
}

/// What pods of a stratum have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum Stratum {
    /// The image, by its digest.
    ImageDigest,
    /// The node.
    Node,
    /// The workload that owns the pods, such as a Deployment.
    Workload,
}

impl Stratum {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How many pods of a stratum are drawn in a slot: a share of them, within bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.minimum <= self.maximum")
    .message("spec.select.perRun.minimum must not be above maximum"))]
pub struct PerRun {
    /// Share of the stratum's pods in percent, rounded up.
    #[serde(default = "default_percent")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: i32,
    /// Fewest pods, as far as there are so many.
    #[serde(default = "default_minimum")]
    #[schemars(range(min = 0, max = 1_000))]
    pub minimum: i32,
    /// Most pods.
    #[serde(default = "default_maximum")]
    #[schemars(range(min = 1, max = 1_000))]
    pub maximum: i32,
}

const fn default_percent() -> i32 {
    1
}

const fn default_minimum() -> i32 {
    1
}

const fn default_maximum() -> i32 {
    10
}

impl Default for PerRun {
    fn default() -> Self {
        Self {
            percent: default_percent(),
            minimum: default_minimum(),
            maximum: default_maximum(),
        }
    }
}
