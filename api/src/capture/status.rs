//! What the agent says of a capture.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::{CaptureGpu, CaptureSummary, Progress};
use crate::artifact::Artifact;
use crate::capability::Capability;
use crate::overhead::{CaptureOverhead, CaptureProcessorTime};
use crate::profiler::ProfilerType;
use crate::schema::KubeSchema;

/// What became of the capture. Written by the agent of `spec.nodeName`, but for the condition `Lost`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureStatus {
    /// Generation of the spec that this status was determined from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Accepted, Attached, Captured, Transformed, Published, Stored, Succeeded, Lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Which profilers could be used on the container, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["profiler"]))]
    pub capabilities: Vec<Capability>,
    /// Profiler that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiler: Option<ProfilerType>,
    /// Container that the capture was pinned to at its start, as the runtime names it (64 hexadecimal digits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub container_id: Option<String>,
    /// GPUs and MIG devices that the container has, and how; empty where neither the kubelet nor NVML tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uuid"]))]
    pub gpus: Vec<CaptureGpu>,
    /// Where the capture stands. Written at most every `spec.statusIntervalSeconds`, and once more when the capture ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What was published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub artifacts: Vec<Artifact>,
    /// Where the node's agent serves the artifacts; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub url: Option<String>,
    /// Where replicas of the artifacts are in the cluster's object store, as a URL without credentials; absent while there are
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub store_url: Option<String>,
    /// SHA-256 of the manifest beside those replicas, 64 lower-case hexadecimal digits: readers
    /// serve none that this manifest does not describe. Absent while there are no replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub store_sha256: Option<String>,
    /// The result in a few lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<CaptureSummary>,
    /// What the window cost the target; absent where there was no window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<CaptureOverhead>,
    /// What the profiler and the agent took of the node's processors for it; absent where neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_time: Option<CaptureProcessorTime>,
    /// When the window began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub start_time: Option<Time>,
    /// When the capture ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub completion_time: Option<Time>,
}
