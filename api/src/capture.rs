//! Capture: one target container's part of a session, handed to the agent of one node.

mod live;
#[cfg(feature = "resources")]
mod status;

use std::time::Duration;

use flopwatch_model::Category;
#[cfg(feature = "resources")]
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::artifact::Output;
use crate::overhead::OverheadSpec;
use crate::profiler::{ProfilerSpec, TraceCategory};
use crate::schema::KubeSchema;
use crate::session::{
    MAX_REQUIREMENTS, MetricsSpec, ProfilingSessionSpec, StartMode, StopMode, StorageMode, TransformDevice,
    TransformSpec,
};
pub use live::LiveFigures;
#[cfg(feature = "resources")]
pub use status::CaptureStatus;

/// Least of `spec.statusIntervalSeconds`, and its default.
pub const MIN_STATUS_INTERVAL_SECONDS: i32 = 2;
/// Most of `spec.statusIntervalSeconds`.
pub const MAX_STATUS_INTERVAL_SECONDS: i32 = 60;

/// What the agent of `nodeName` is to do. Written by the operator alone, from the session.
#[cfg_attr(feature = "resources", derive(CustomResource))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[cfg_attr(
    feature = "resources",
    kube(
        group = "flopwatch.dev",
        version = "v1alpha1",
        kind = "Capture",
        plural = "captures",
        singular = "capture",
        shortname = "cap",
        category = "profiling",
        namespaced,
        status = "CaptureStatus",
        derive = "PartialEq",
        selectable = ".spec.nodeName",
        doc = "One container's part of a ProfilingSession. Made by the operator and carried out by the agent of spec.nodeName; create a ProfilingSession rather than one of these.",
        printcolumn(
            name = "Pod",
            type_ = "string",
            json_path = ".spec.podRef.name",
            description = "Pod that it profiles"
        ),
        printcolumn(
            name = "Container",
            type_ = "string",
            json_path = ".spec.containerName",
            description = "Container that it profiles"
        ),
        printcolumn(
            name = "Stage",
            type_ = "string",
            json_path = ".status.progress.stage",
            description = "Where it stands"
        ),
        printcolumn(
            name = "Percent",
            type_ = "integer",
            json_path = ".status.progress.percent",
            description = "How far it is"
        ),
        printcolumn(
            name = "Succeeded",
            type_ = "string",
            json_path = ".status.conditions[?(@.type==\"Succeeded\")].status",
            description = "Unknown until the capture ended"
        ),
        printcolumn(
            name = "Reason",
            type_ = "string",
            json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason",
            description = "Why"
        ),
        printcolumn(
            name = "Overhead",
            type_ = "string",
            json_path = ".status.overhead.verdict",
            description = "What the window cost its target, against the budget",
            priority = 1
        ),
        printcolumn(
            name = "Node",
            type_ = "string",
            json_path = ".spec.nodeName",
            description = "Node whose agent carries it out",
            priority = 1
        ),
        printcolumn(
            name = "Profiler",
            type_ = "string",
            json_path = ".status.profiler",
            description = "Profiler that was used",
            priority = 1
        ),
        printcolumn(
            name = "Age",
            type_ = "date",
            json_path = ".metadata.creationTimestamp",
            description = "Time since it was created"
        )
    )
)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "resources", schemars(transform = crate::schema::fixed_but_for_stop(
    "a capture is fixed once it is created, but for spec.stop"
)))]
pub struct CaptureSpec {
    /// The session that this belongs to.
    pub session_ref: SessionReference,
    /// Node whose agent carries it out.
    #[schemars(length(min = 1, max = 253))]
    pub node_name: String,
    /// Pod to profile.
    pub pod_ref: PodReference,
    /// Container to profile.
    #[schemars(length(min = 1, max = 63))]
    pub container_name: String,
    /// Profiler to use, and its options, as the session has them.
    #[serde(default)]
    pub profiler: ProfilerSpec,
    /// When the window opens.
    #[serde(default)]
    pub start: StartMode,
    /// Whether the program's end ends the window and the container stays for its capture: in pods that the session made.
    #[serde(default)]
    pub ends_with_program: bool,
    /// Length of the window in seconds.
    #[schemars(range(min = 1, max = 300))]
    pub duration_seconds: i32,
    /// Categories that must hold events; empty: the default for what the process has mapped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_REQUIREMENTS), extend("x-kubernetes-list-type" = "set"))]
    pub require: Vec<Category>,
    /// How long to wait for a turn on the node, in seconds.
    #[schemars(range(min = 1, max = 86_400))]
    pub start_deadline_seconds: i32,
    /// NVML sampling beside the capture.
    #[serde(default)]
    pub metrics: MetricsSpec,
    /// What the window may cost the target, and what tells.
    #[serde(default, skip_serializing_if = "OverheadSpec::is_default")]
    pub overhead: OverheadSpec,
    /// How the capture becomes a timeline.
    #[serde(default)]
    pub transform: TransformSpec,
    /// What to publish.
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub outputs: Vec<Output>,
    /// Where the artifacts are kept; absent: as the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageMode>,
    /// Shortest time between two writes of the status in seconds, but for the last one, which is written at once. The operator
    /// sets it, the longer the more captures have not ended in the cluster.
    #[serde(default = "default_status_interval")]
    #[schemars(range(min = 2, max = 60))]
    pub status_interval_seconds: i32,
    /// Set to end the capture now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopMode>,
}

/// The container that a capture profiles, and the session that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureTarget {
    /// The session that asks for the capture.
    pub session_ref: SessionReference,
    /// Node of the pod.
    pub node_name: String,
    /// Pod to profile.
    pub pod_ref: PodReference,
    /// Container to profile.
    pub container_name: String,
}

impl CaptureSpec {
    /// The capture of one container that a session asks for. Both specs are named field by field, so
    /// that a new field of a session does not compile until it is handed on or left out here.
    pub fn of(session: &ProfilingSessionSpec, captured: CaptureTarget, status_interval_seconds: i32) -> Self {
        let ProfilingSessionSpec {
            target,
            profiler,
            start,
            duration_seconds,
            require,
            start_deadline_seconds,
            metrics,
            overhead,
            transform,
            outputs,
            retention,
            stop: _,
        } = session;
        let CaptureTarget {
            session_ref,
            node_name,
            pod_ref,
            container_name,
        } = captured;
        Self {
            session_ref,
            node_name,
            pod_ref,
            container_name,
            profiler: profiler.clone(),
            start: *start,
            ends_with_program: target.makes_pod(),
            duration_seconds: *duration_seconds,
            require: require.clone(),
            start_deadline_seconds: *start_deadline_seconds,
            metrics: metrics.clone(),
            overhead: overhead.clone(),
            transform: transform.clone(),
            outputs: outputs.clone(),
            storage: retention.storage,
            status_interval_seconds,
            stop: None,
        }
    }

    /// Shortest time between two writes of the status, but for the last one.
    pub fn status_interval(&self) -> Duration {
        let seconds = self
            .status_interval_seconds
            .clamp(MIN_STATUS_INTERVAL_SECONDS, MAX_STATUS_INTERVAL_SECONDS);
        Duration::from_secs(u64::from(seconds.unsigned_abs()))
    }
}

const fn default_status_interval() -> i32 {
    MIN_STATUS_INTERVAL_SECONDS
}

/// The session that a capture belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionReference {
    /// Name, in the capture's own namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its `status.id`.
    #[schemars(regex(pattern = "^[0-9a-f]{8}$"))]
    pub id: String,
}

/// A pod, pinned by UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodReference {
    /// Name, in the capture's own namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID: a pod of the same name that was created later is another pod.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// A GPU or MIG device that a container has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureGpu {
    /// `GPU-...`, `MIG-...`, or as the node's device plugin names it.
    #[schemars(length(min = 1, max = 512))]
    pub uuid: String,
    /// How the container has it.
    pub share: GpuShare,
}

/// How a container has a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum GpuShare {
    /// Alone: what is measured of the device is the container's.
    Container,
    /// A MIG device of its own: memory and processes are the container's, power and clocks are the whole GPU's.
    MigDevice,
    /// With others, by turns or through the Multi-Process Service: what is measured of the device is of all of them, and the
    /// container's part is known where the driver keeps an account of processes.
    Shared,
}

impl GpuShare {
    /// The name as it stands in the status.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The stages of a capture, in their order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
pub enum Stage {
    /// Waiting for a turn on the node.
    Queued,
    /// Probing the container and starting the collection.
    Attaching,
    /// The window is open.
    Collecting,
    /// The raw capture is being taken out of the container.
    Fetching,
    /// Timeline and tables are being made.
    Transforming,
    /// The artifacts are being stored.
    Publishing,
    /// Ended.
    Done,
}

impl Stage {
    /// The name as it stands in status and metrics labels.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Where a capture stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Current stage.
    pub stage: Stage,
    /// How far the whole capture is, 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub percent: i32,
    /// What is being done, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What the window has recorded so far; absent unless it is open, and where its profiler does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFigures>,
}

/// The result in a few lines, for `kubectl describe`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureSummary {
    /// Length of the recorded window in nanoseconds.
    #[schemars(range(min = 0))]
    pub window_nanoseconds: i64,
    /// Events in all categories.
    #[schemars(range(min = 0))]
    pub events: i64,
    /// Events by category. A category that is absent was not captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["category"]))]
    pub categories: Vec<CategoryCount>,
    /// What came of each category that the container's session traced; empty where none traced anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["category"]))]
    pub traced: Vec<TracedCategory>,
    /// Share of the window in which at least one kernel or copy ran, in percent, averaged over the devices that the
    /// capture saw; absent when no GPU work was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub gpu_busy_percent: Option<i32>,
    /// The five kernels with the longest total time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    pub top_kernels: Vec<KernelTime>,
    /// Time of all kernels together in nanoseconds; absent when no kernels were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub kernel_nanoseconds: Option<i64>,
    /// Bytes that were copied, by kind of copy; a kind that did not occur is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind"]))]
    pub copies: Vec<CopiedBytes>,
    /// Events that were dropped, truncated, skipped or unsupported; the artifacts say which.
    #[schemars(range(min = 0))]
    pub dropped: i64,
    /// What did the heavy steps of the transform, and why that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformed_on: Option<TransformedOn>,
}

/// What did the heavy steps of the transform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransformedOn {
    /// `Gpu` or `Cpu`.
    pub device: TransformDevice,
    /// Why that one, in a sentence.
    #[schemars(length(max = 512))]
    pub reason: String,
}

/// Events of one category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CategoryCount {
    /// Category of the event model, such as `cuda_kernel` or `nvtx_range`.
    #[schemars(length(max = 63))]
    pub category: String,
    /// Number of events.
    #[schemars(range(min = 0))]
    pub events: i64,
}

/// A category that was traced, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TracedCategory {
    /// Category of the profiler, fixed with the container's start.
    pub category: TraceCategory,
    /// What came of it.
    pub outcome: TraceOutcome,
}

/// What came of tracing one category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TraceOutcome {
    /// The window holds events of it.
    Captured,
    /// It was recorded, and nothing of it happened within the window.
    Empty,
    /// The profiler or this version of Flopwatch shows nothing of it, whatever happened.
    Unsupported,
}

/// Where a copy went from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum CopyKind {
    /// From the host's memory to a device's.
    HostToDevice,
    /// From a device's memory to the host's.
    DeviceToHost,
    /// Within a device.
    DeviceToDevice,
    /// Between devices.
    PeerToPeer,
    /// Any other way.
    Other,
}

impl CopyKind {
    /// The label's value in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::HostToDevice => "h2d",
            Self::DeviceToHost => "d2h",
            Self::DeviceToDevice => "d2d",
            Self::PeerToPeer => "p2p",
            Self::Other => "other",
        }
    }
}

/// Bytes of the copies of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopiedBytes {
    /// The kind.
    pub kind: CopyKind,
    /// Bytes.
    #[schemars(range(min = 0))]
    pub bytes: i64,
}

/// Total time of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelTime {
    /// Name, shortened to 256 characters.
    #[schemars(length(max = 256))]
    pub name: String,
    /// Total time in nanoseconds.
    #[schemars(range(min = 0))]
    pub total_nanoseconds: i64,
    /// Launches.
    #[schemars(range(min = 0))]
    pub calls: i64,
}
