//! Which profiler a session asks for, and what it wants from it.

mod cuda;
mod jax;
mod kineto;
mod ncu;
mod nsys;
pub(crate) mod table;

use serde::{Deserialize, Serialize};

use crate::schema::KubeSchema;
pub use cuda::{CudaGraphs, CudaKind, CudaOptions};
pub use jax::JaxOptions;
pub use kineto::KinetoOptions;
pub use ncu::{MAX_LAUNCHES, NcuOptions, NcuSet, ReplayMode};
pub use nsys::{
    CaptureRange, CudaGraphTrace, GpuMetrics, NsysOptions, RangeTrigger, TraceCategory, is_range_name,
    parse_capture_range,
};
pub use table::ProfilerType;

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
#[cfg_attr(feature = "resources", x_kube(validation = Rule::new("!has(self.cuda) || self.type in ['Cuda', 'Auto']")
    .message("spec.profiler.cuda is given, so spec.profiler.type must be Cuda or Auto")))]
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
    /// Options of the CUDA tracer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<CudaOptions>,
}
