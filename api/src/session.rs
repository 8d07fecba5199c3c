//! ProfilingSession: a user's request.

use std::collections::BTreeMap;

use flopwatch_model::Category;
#[cfg(feature = "resources")]
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
#[cfg(feature = "resources")]
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::artifact::Output;
use crate::overhead::OverheadSpec;
use crate::profiler::ProfilerSpec;
use crate::schema::KubeSchema;
use crate::selector::LabelSelector;

/// Longest capture window in seconds: Nsight Systems supports no more than five minutes.
pub const MAX_DURATION_SECONDS: i32 = 300;

/// Length of a capture window in seconds where a request does not say.
pub const DEFAULT_DURATION_SECONDS: i32 = 10;

/// Most categories that one session may require: every one once.
pub const MAX_REQUIREMENTS: usize = Category::ALL.len();

/// CEL: dumps of JAX's compiler are asked for only beside the output that holds them.
#[cfg(feature = "resources")]
pub(crate) const DUMPS_ARE_RAW: &str =
    "!has(self.profiler.jax) || !has(self.profiler.jax.dumps) || !self.profiler.jax.dumps || 'Raw' in self.outputs";

/// Most captures that a session's status refers to.
pub const MAX_CAPTURE_REFERENCES: usize = 50;

/// What to profile, with what, for how long, and what to keep.
#[cfg_attr(feature = "resources", derive(CustomResource))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[cfg_attr(feature = "resources", kube(
    group = "flopwatch.dev",
    version = "v1alpha1",
    kind = "ProfilingSession",
    plural = "profilingsessions",
    singular = "profilingsession",
    shortname = "pfs",
    category = "profiling",
    namespaced,
    status = "ProfilingSessionStatus",
    derive = "PartialEq",
    doc = "A request to profile GPU pods of this namespace in place. Create one, watch its Succeeded condition, fetch the result from status.url. Everything but spec.stop is fixed once it is created.",
    printcolumn(name = "Profiler", type_ = "string", json_path = ".spec.profiler.type", description = "Profiler asked for"),
    printcolumn(name = "Succeeded", type_ = "string", json_path = ".status.conditions[?(@.type==\"Succeeded\")].status", description = "Unknown until the session ended"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason", description = "Why"),
    printcolumn(name = "Captures", type_ = "integer", json_path = ".status.counts.captures", description = "Captures made for the targets"),
    printcolumn(name = "Done", type_ = "integer", json_path = ".status.counts.succeeded", description = "Captures that succeeded"),
    printcolumn(name = "Id", type_ = "string", json_path = ".status.id", description = "Id in paths of the artifact service", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Succeeded\")].message", description = "Why, in a sentence", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since it was created"),
    validation = Rule::new("size(self.metadata.name) <= 52")
        .message("metadata.name must have at most 52 characters: captures are named after the session"),
))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "resources", schemars(transform = crate::schema::fixed_but_for_stop(
    "a session is fixed once it is created, but for spec.stop: delete it and create another"
)))]
#[cfg_attr(feature = "resources", x_kube(
    validation = Rule::new("!has(oldSelf.stop) || (has(self.stop) && (self.stop == oldSelf.stop || self.stop == 'Discard'))")
        .message("spec.stop cannot be taken back; only Keep may become Discard"),
    validation = Rule::new("self.start != 'ContainerStart' || has(self.target.podTemplate) || has(self.target.replicaOf)")
        .message("spec.start: ContainerStart needs spec.target.podTemplate or replicaOf: the first instructions of a pod that runs already are over"),
    validation = Rule::new("self.start != 'ContainerStart' || self.profiler.type in ['Auto', 'Nsys']")
        .message("spec.start: ContainerStart collects with Nsight Systems, so spec.profiler.type must be Auto or Nsys"),
    validation = Rule::new(DUMPS_ARE_RAW)
        .message("spec.profiler.jax.dumps are published as Raw: add Raw to spec.outputs, or leave dumps out"),
))]
pub struct ProfilingSessionSpec {
    /// Which pods of this namespace to profile.
    pub target: TargetSpec,
    /// Profiler to use, and its options. The default, `type: Auto`, takes the deepest that is open for the container.
    #[serde(default)]
    pub profiler: ProfilerSpec,
    /// When the window opens.
    #[serde(default)]
    pub start: StartMode,
    /// Length of the capture window in seconds, 1 to 300. With `target.podTemplate` an upper bound: the program's end ends
    /// the window.
    #[serde(default = "default_duration_seconds")]
    #[schemars(range(min = 1, max = 300))]
    pub duration_seconds: i32,
    /// Categories of the timeline that must each hold events for the capture to succeed. Default: any of the `cuda_`
    /// categories where the process uses CUDA, otherwise `nvtx_range`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_REQUIREMENTS), extend("x-kubernetes-list-type" = "set"))]
    pub require: Vec<Category>,
    /// How long to wait for targets and for a turn on their nodes, in seconds.
    #[serde(default = "default_start_deadline_seconds")]
    #[schemars(range(min = 1, max = 86_400))]
    pub start_deadline_seconds: i32,
    /// NVML sampling beside the capture.
    #[serde(default)]
    pub metrics: MetricsSpec,
    /// What a window may cost its target, and what tells.
    #[serde(default, skip_serializing_if = "OverheadSpec::is_default")]
    pub overhead: OverheadSpec,
    /// How the capture becomes a timeline.
    #[serde(default)]
    pub transform: TransformSpec,
    /// What to publish. Raw holds the environment of every process that the profiler saw and cannot be redacted.
    #[serde(default = "default_outputs")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub outputs: Vec<Output>,
    /// How long to keep the results, and where.
    #[serde(default)]
    pub retention: RetentionSpec,
    /// Set while the session runs to end it now: `Keep` transforms and publishes what was recorded, `Discard` throws it
    /// away. Nothing else of a session can be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopMode>,
}

impl ProfilingSessionSpec {
    /// The session of `target` that leaves every other field to its default.
    pub fn of(target: TargetSpec) -> Self {
        Self {
            target,
            profiler: ProfilerSpec::default(),
            start: StartMode::default(),
            duration_seconds: default_duration_seconds(),
            require: Vec::new(),
            start_deadline_seconds: default_start_deadline_seconds(),
            metrics: MetricsSpec::default(),
            overhead: OverheadSpec::default(),
            transform: TransformSpec::default(),
            outputs: default_outputs(),
            retention: RetentionSpec::default(),
            stop: None,
        }
    }
}

pub(crate) const fn default_duration_seconds() -> i32 {
    DEFAULT_DURATION_SECONDS
}

const fn default_start_deadline_seconds() -> i32 {
    300
}

fn default_outputs() -> Vec<Output> {
    vec![Output::Timeline, Output::Summary]
}

/// Pods of the session's own namespace, and which of their containers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "resources", x_kube(
    validation = Rule::new("(has(self.podName) ? 1 : 0) + (has(self.podSelector) ? 1 : 0) + (has(self.podTemplate) ? 1 : 0) + (has(self.replicaOf) ? 1 : 0) == 1")
        .message("spec.target needs exactly one of podName (one pod, by name), podSelector (pods, by label), podTemplate (a pod to create) and replicaOf (a pod to copy)"),
    validation = Rule::new("(!has(self.podTemplate) && !has(self.replicaOf)) || self.maxPods == 1")
        .message("spec.target.podTemplate and replicaOf make one pod: leave maxPods out"),
))]
pub struct TargetSpec {
    /// Name of one pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub pod_name: Option<String>,
    /// Labels of pods; those that run are taken, oldest first, up to `maxPods`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub pod_selector: Option<LabelSelector>,
    /// A pod that the session creates prepared, runs once and owns: it is deleted with the session. Whoever creates such a
    /// session must be allowed to create pods in its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
    /// Name of a pod to copy: the session creates the copy prepared, runs it once and deletes it when its captures have ended.
    /// The copy has no label of the original, so that no Service sends it requests, and reads the volumes that outlive the
    /// original without writing to them. Its program runs a second time, with all that it does outside of the pod. Whoever
    /// creates such a session must be allowed to create pods in its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub replica_of: Option<String>,
    /// Names of the containers to profile. Default: those that ask for an `nvidia.com/*` resource or a resource claim,
    /// else those that were prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub container_names: Vec<String>,
    /// Most pods to take of those that match `podSelector`.
    #[serde(default = "default_max_pods")]
    #[schemars(range(min = 1, max = 50))]
    pub max_pods: i32,
}

impl Default for TargetSpec {
    /// The target that names no pods yet.
    fn default() -> Self {
        Self {
            pod_name: None,
            pod_selector: None,
            pod_template: None,
            replica_of: None,
            container_names: Vec::new(),
            max_pods: default_max_pods(),
        }
    }
}

impl TargetSpec {
    /// The target that is the pod of that name.
    pub fn pod(name: &str) -> Self {
        Self {
            pod_name: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// The field by which the session makes a pod of its own, as it stands in manifests; None where it targets pods that others
    /// made.
    pub const fn own_pod_field(&self) -> Option<&'static str> {
        match (&self.pod_template, &self.replica_of) {
            (Some(_), _) => Some("spec.target.podTemplate"),
            (None, Some(_)) => Some("spec.target.replicaOf"),
            (None, None) => None,
        }
    }

    /// Whether the session makes a pod of its own.
    pub const fn makes_pod(&self) -> bool {
        self.own_pod_field().is_some()
    }
}

const fn default_max_pods() -> i32 {
    1
}

/// A pod to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels and annotations of the pod. The session adds its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodTemplateMetadata>,
    /// Specification of the pod, as in a Pod: kept as it is written, fields that this version does not know included.
    #[schemars(schema_with = "crate::schema::pod_spec")]
    pub spec: serde_json::Map<String, serde_json::Value>,
}

/// Labels and annotations of a pod to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, String>,
    /// Annotations; those that choose what is traced (`flopwatch.dev/nsys-trace`) among them. Default: what the session
    /// asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: BTreeMap<String, String>,
}

/// When a window opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum StartMode {
    /// As soon as the target runs and its turn comes.
    #[default]
    Now,
    /// Before the program's first instruction, for start-up, JIT and compile time. Needs `target.podTemplate`.
    ContainerStart,
}

impl StartMode {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// NVML sampling beside the capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsSpec {
    /// Time between two NVML samples in milliseconds, 10 to 10,000.
    #[serde(default = "default_interval_milliseconds")]
    #[schemars(range(min = 10, max = 10_000))]
    pub interval_milliseconds: i32,
}

const fn default_interval_milliseconds() -> i32 {
    100
}

impl Default for MetricsSpec {
    fn default() -> Self {
        Self {
            interval_milliseconds: default_interval_milliseconds(),
        }
    }
}

/// How the capture becomes a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransformSpec {
    /// What does the heavy steps. The result is the same on all of them, byte for byte.
    #[serde(default)]
    pub device: TransformDevice,
}

/// What does the heavy steps of the transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum TransformDevice {
    /// A GPU where nobody else computes on it and it is measured to be faster there and then; the processor elsewhere.
    #[default]
    Auto,
    /// A GPU. The capture fails where none can be used.
    Gpu,
    /// The processor.
    Cpu,
}

impl TransformDevice {
    /// Every value, in the order in which help texts list them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Gpu, Self::Cpu];

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|device| device.as_str() == name)
    }

    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How long to keep the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionSpec {
    /// Seconds after its end at which the session, its captures and their artifacts are deleted. Default: one week.
    #[serde(default = "default_ttl_seconds")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub ttl_seconds_after_finished: i32,
    /// Where the artifacts are kept. Default: what the cluster's administrator chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageMode>,
}

/// Where artifacts are kept. Default: what the cluster's administrator chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum StorageMode {
    /// On the node alone: they go with it.
    Node,
    /// On the node, and replicated to the cluster's object store as soon as may be, where it has one.
    Replicated,
    /// Likewise, and the capture succeeds only once the replication is complete: results survive the loss of the node. Fails
    /// where the cluster has no object store.
    Durable,
}

impl StorageMode {
    /// Every value, in the order in which help texts list them.
    pub const ALL: [Self; 3] = [Self::Node, Self::Replicated, Self::Durable];

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

const fn default_ttl_seconds() -> i32 {
    7 * 24 * 3600
}

impl Default for RetentionSpec {
    fn default() -> Self {
        Self {
            ttl_seconds_after_finished: default_ttl_seconds(),
            storage: None,
        }
    }
}

/// How to end a running session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum StopMode {
    /// End the window now and publish what was recorded.
    Keep,
    /// End now and throw away what was recorded.
    Discard,
}

impl StopMode {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What became of the request. Written by the operator alone.
#[cfg(feature = "resources")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfilingSessionStatus {
    /// Eight hexadecimal digits, unique in the cluster; the session's name in paths of the artifact service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{8}$"))]
    pub id: Option<String>,
    /// Generation of the spec that this status was determined from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Accepted, TargetsFound, Capturing, Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// How many captures there are, and how they stand.
    #[serde(default)]
    pub counts: CaptureCounts,
    /// The captures, at most 50; `kubectl get captures -l flopwatch.dev/session=NAME` lists all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub captures: Vec<CaptureReference>,
    /// The pod that the session made from `target.podTemplate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pod_name: Option<String>,
    /// Where the first capture's artifacts are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub url: Option<String>,
    /// User who created the session, as the API server authenticated them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub requested_by: Option<String>,
    /// When the last capture ended; the retention counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub completion_time: Option<Time>,
}

/// Captures of a session, counted by how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureCounts {
    /// All captures.
    #[serde(default)]
    pub captures: i32,
    /// Captures that have not ended.
    #[serde(default)]
    pub active: i32,
    /// Captures that succeeded.
    #[serde(default)]
    pub succeeded: i32,
    /// Captures that ended without success.
    #[serde(default)]
    pub failed: i32,
}

/// One capture, as the session's status shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureReference {
    /// Name of the Capture object.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Pod that it profiles.
    #[schemars(length(max = 253))]
    pub pod_name: String,
    /// Container that it profiles.
    #[schemars(length(max = 63))]
    pub container_name: String,
    /// Status of its Succeeded condition.
    #[schemars(length(max = 7))]
    pub succeeded: String,
    /// Reason of its Succeeded condition.
    #[schemars(length(max = 128))]
    pub reason: String,
}
