//! Which profiler a session asks for, and what it wants from it.

mod jax;
mod kineto;
mod ncu;
mod nsys;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::preparation::PreparationWord;
use crate::schema::KubeSchema;
pub use jax::JaxOptions;
pub use kineto::KinetoOptions;
pub use ncu::{MAX_LAUNCHES, NcuOptions, NcuSet, ReplayMode};
pub use nsys::{
    CaptureRange, CudaGraphTrace, GpuMetrics, NsysOptions, RangeTrigger, TraceCategory, is_range_name,
    parse_capture_range,
};

/// The profilers that a session can name. `Auto` takes the deepest that is open for the container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ProfilerType {
    /// The deepest profiler that the capability probe found open for the container.
    #[default]
    Auto,
    /// Nsight Systems: CUDA, NVTX, OS runtime and library calls. Needs a prepared pod.
    Nsys,
    /// Nsight Compute: counters per kernel. Needs a pod that the session makes.
    Ncu,
    /// PyTorch's own profiler, Kineto. Needs a program that was started with `KINETO_USE_DAEMON`.
    Kineto,
    /// JAX's own profiler. Needs a program that runs its service (`jax.profiler.start_server`).
    Jax,
    /// NVML samples only; works for every pod on a node with a GPU driver.
    Metrics,
    /// The flight recorder: the NVTX ranges of the last `durationSeconds`, at once. Needs a pod that was prepared for it.
    Recorder,
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
            Self::Recorder => "Recorder",
        }
    }

    /// Whether it profiles only containers that were prepared when their pod was created.
    pub const fn needs_preparation(self) -> bool {
        matches!(self, Self::Nsys | Self::Ncu)
    }

    /// What a pod that is created for it is prepared for; None where samples from outside of the pod are all it takes.
    pub const fn preparation_word(self) -> Option<PreparationWord> {
        match self {
            Self::Auto | Self::Nsys => Some(PreparationWord::Nsys),
            Self::Ncu => Some(PreparationWord::Ncu),
            Self::Kineto => Some(PreparationWord::Kineto),
            Self::Jax => Some(PreparationWord::Jax),
            Self::Recorder => Some(PreparationWord::Recorder),
            Self::Metrics => None,
        }
    }
}

/// Profiler and its options: a union, discriminated by `type`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "resources", x_kube(validation = Rule::new("!has(self.nsys) || self.type in ['Nsys', 'Auto']")
    .message("spec.profiler.nsys is given, so spec.profiler.type must be Nsys or Auto")))]
#[cfg_attr(feature = "resources", x_kube(validation = Rule::new("!has(self.ncu) || self.type == 'Ncu'")
    .message("spec.profiler.ncu is given, so spec.profiler.type must be Ncu")))]
#[cfg_attr(feature = "resources", x_kube(validation = Rule::new("!has(self.jax) || self.type in ['Jax', 'Auto']")
    .message("spec.profiler.jax is given, so spec.profiler.type must be Jax or Auto")))]
#[cfg_attr(feature = "resources", x_kube(validation = Rule::new("!has(self.kineto) || self.type in ['Kineto', 'Auto']")
    .message("spec.profiler.kineto is given, so spec.profiler.type must be Kineto or Auto")))]
pub struct ProfilerSpec {
    /// Profiler to use. `Auto` (the default) takes the deepest one that is open for the container and falls back to
    /// `Metrics`; any other is refused with the reason and the remedy when it is closed.
    #[serde(rename = "type", default)]
    pub type_: ProfilerType,
    /// Options of Nsight Systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nsys: Option<NsysOptions>,
    /// Options of Nsight Compute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ncu: Option<NcuOptions>,
    /// Options of JAX's profiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jax: Option<JaxOptions>,
    /// Options of Kineto.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kineto: Option<KinetoOptions>,
}
