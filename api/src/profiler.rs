//! Which profiler a session asks for, and what it wants from it.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The profilers that a session can name. `Auto` takes the deepest that is open for the container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ProfilerType {
    /// The deepest profiler that the capability probe found open for the container.
    #[default]
    Auto,
    /// Nsight Systems: CUDA, NVTX, OS runtime and library calls. Needs a prepared pod.
    Nsys,
    /// Nsight Compute: counters per kernel.
    Ncu,
    /// PyTorch's own profiler.
    Kineto,
    /// JAX's profiler server.
    Jax,
    /// NVML samples only; works for every pod on a node with a GPU driver.
    Metrics,
}

impl ProfilerType {
    /// The name as it stands in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::Nsys => "Nsys",
            Self::Ncu => "Ncu",
            Self::Kineto => "Kineto",
            Self::Jax => "Jax",
            Self::Metrics => "Metrics",
        }
    }
}

/// Profiler and its options: a union, discriminated by `type`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.nsys) || self.type in ['Nsys', 'Auto']")
    .message("spec.profiler.nsys is given, so spec.profiler.type must be Nsys or Auto"))]
pub struct ProfilerSpec {
    /// Profiler to use. `Auto` (the default) takes the deepest one that is open for the container and falls back to
    /// `Metrics`; any other is refused with the reason and the remedy when it is closed.
    #[serde(rename = "type", default)]
    pub type_: ProfilerType,
    /// Options of Nsight Systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nsys: Option<NsysOptions>,
}

/// A category that Nsight Systems can trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceCategory {
    /// Kernels, copies, memory operations and the CUDA API.
    Cuda,
    /// NVTX ranges.
    Nvtx,
    /// Blocking calls of the operating system's runtime libraries.
    Osrt,
    /// cuBLAS calls.
    Cublas,
    /// cuDNN calls.
    Cudnn,
    /// MPI calls.
    Mpi,
}

impl TraceCategory {
    /// Every category, in the order in which lists are written.
    pub const ALL: [Self; 6] = [Self::Cuda, Self::Nvtx, Self::Osrt, Self::Cublas, Self::Cudnn, Self::Mpi];

    /// The name as Nsight Systems' `--trace` and our manifests write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Nvtx => "nvtx",
            Self::Osrt => "osrt",
            Self::Cublas => "cublas",
            Self::Cudnn => "cudnn",
            Self::Mpi => "mpi",
        }
    }

    /// The category of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == name)
    }
}

/// Options of Nsight Systems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NsysOptions {
    /// Categories that the capture must have been able to record. They are fixed when the container starts (pod
    /// annotation `flopwatch.dev/nsys-trace`, default `cuda,nvtx`); asking for more fails and names the annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub trace: Vec<TraceCategory>,
}
