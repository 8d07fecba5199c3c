//! JAX: what its profiler service is asked to record.

use serde::{Deserialize, Serialize};

use crate::schema::KubeSchema;

/// Options of JAX's profiler. What is absent is as JAX has it by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JaxOptions {
    /// Port of the program's profiler service (`jax.profiler.start_server(PORT)`), where the container has several. Before the pod
    /// annotation `flopwatch.dev/jax-port`; with neither, the one of the lowest port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<i32>,
    /// Events of the host: 0 none, 1 the program's own annotations, 2 expensive operations too (default), 3 cheap ones too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3))]
    pub host_tracer_level: Option<i32>,
    /// Events of devices: 0 none, 1 (default) all; more is left to the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3))]
    pub device_tracer_level: Option<i32>,
    /// Calls of Python functions: 0 none (default), 1 all. It costs time in every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub python_tracer_level: Option<i32>,
    /// Whether the programs of the compiler (HLO) are in the capture: operations are mapped to their source by them. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_hlo_proto: Option<bool>,
    /// Most calls of the CUDA API that are kept; JAX's default is 2,097,152.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 33_554_432))]
    pub gpu_max_callback_api_events: Option<i32>,
    /// Most kernels, copies and other work of a GPU that are kept; JAX's default is 2,097,152.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 33_554_432))]
    pub gpu_max_activity_api_events: Option<i32>,
    /// Whether NVTX ranges are recorded. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_enable_nvtx_tracking: Option<bool>,
    /// Whether a CUDA graph is one event instead of its kernels. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_enable_cupti_activity_graph_trace: Option<bool>,
    /// Hardware counters of the GPU that are sampled, as CUPTI names them. The driver must allow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9_.]+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub gpu_pm_sample_counters: Vec<String>,
    /// Time between two samples of those counters, in microseconds; JAX's default is 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 1_000_000))]
    pub gpu_pm_sample_interval_us: Option<i32>,
    /// Whether what the compiler wrote of its programs (HLO, StableHLO), and what else lies in those folders, is taken too, as
    /// `jax-dumps.tar`: from where the program's `XLA_FLAGS` (`--xla_dump_to`) and `JAX_DUMP_IR_TO` say, which the pod annotation
    /// `flopwatch.dev/jax-dumps` sets. Needs the output Raw. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dumps: Option<bool>,
}
