//! The closed set of event categories and the columns that each carries beside the common ones.

use serde::{Deserialize, Serialize};

/// What kind of thing an event is.
///
/// The order is that of the published lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A kernel on the GPU.
    CudaKernel,
    /// A copy from host to device.
    CudaMemcpyH2d,
    /// A copy from device to host.
    CudaMemcpyD2h,
    /// A copy within a device.
    CudaMemcpyD2d,
    /// A copy between devices.
    CudaMemcpyP2p,
    /// A copy of any other kind: arrays, host to host, unified memory, kinds unknown to this version.
    CudaMemcpyOther,
    /// A memset on the GPU.
    CudaMemset,
    /// A synchronisation as the GPU saw it (event, stream, context, stream wait).
    CudaSync,
    /// A call of the CUDA runtime or driver API.
    CudaApi,
    /// An NVTX push/pop or start/end range.
    NvtxRange,
    /// A call of an operating system function that the profiler wraps.
    OsRuntime,
    /// An operator of a framework on the CPU, e.g. `aten::mm`. Operators of a thread nest.
    CpuOp,
    /// A range that the program or its framework marked on the CPU by other means than NVTX: Kineto's `user_annotation`, JAX's
    /// host ranges.
    Annotation,
    /// A step of the training or inference loop: Kineto's `ProfilerStep#N`, JAX's step ranges on the host.
    Step,
    /// A function of the Python interpreter.
    PythonFunction,
    /// Work of the profiler itself.
    Overhead,
    /// An operation on an accelerator that has no CUDA-like streams, e.g. an XLA operation on a TPU.
    DeviceOp,
    /// A range on the GPU's timeline that stands for an [`Category::Annotation`] on the CPU: from its first kernel to its last.
    /// It repeats time that other categories hold.
    GpuAnnotation,
    /// An event of a line that a tool derived from others (JAX's "XLA Modules", "XLA Ops", "Steps" of a device that has
    /// streams). It repeats time that other categories hold and is never summed with them.
    Derived,
    /// An event of a kind that this version has no category for, e.g. the profiler's own window.
    Other,
}

/// A column that only some categories have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnId {
    /// Thread blocks in x.
    GridX,
    /// Thread blocks in y.
    GridY,
    /// Thread blocks in z.
    GridZ,
    /// Threads per block in x.
    BlockX,
    /// Threads per block in y.
    BlockY,
    /// Threads per block in z.
    BlockZ,
    /// Registers per thread.
    Registers,
    /// Static shared memory per block in bytes.
    SharedStatic,
    /// Dynamic shared memory per block in bytes.
    SharedDynamic,
    /// Bytes moved or set.
    Bytes,
    /// Index of the launching call in `cuda_api`, or [`ColumnId::NO_LAUNCH`]. Filled by the transform.
    Launch,
    /// ARGB colour of an NVTX range, 0 for none.
    Color,
    /// How an NVTX range was made: 0 push/pop, 1 start/end.
    RangeStyle,
    /// Number of the step.
    StepNumber,
    /// Kineto's `External id`: ties calls and GPU work to the operator of the same id; 0 for none.
    ExternalId,
    /// Kineto's `Sequence number`: ties a backward operator to its forward one; [`ColumnId::NO_SEQUENCE`] for none.
    Sequence,
    /// Thread of the forward operator that a backward operator belongs to; 0 for none.
    ForwardThread,
    /// Kineto's `Python id` of a function call; 0 for none.
    PythonId,
    /// `Python id` of the call around it; 0 for none.
    PythonParent,
    /// Node of the CUDA graph that launched the work; 0 for none.
    GraphNode,
    /// Floating-point operations that the source says the operation does.
    Flops,
}

/// Width of a column's values in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
}

impl ColumnId {
    /// Value of [`ColumnId::Launch`] for GPU work whose launch was not recorded.
    pub const NO_LAUNCH: u32 = u32::MAX;
    /// Value of [`ColumnId::Sequence`] for an operator that has none.
    pub const NO_SEQUENCE: u64 = u64::MAX;

    /// Name of the dataset in the timeline file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GridX => "grid_x",
            Self::GridY => "grid_y",
            Self::GridZ => "grid_z",
            Self::BlockX => "block_x",
            Self::BlockY => "block_y",
            Self::BlockZ => "block_z",
            Self::Registers => "registers",
            Self::SharedStatic => "shared_static",
            Self::SharedDynamic => "shared_dynamic",
            Self::Bytes => "bytes",
            Self::Launch => "launch",
            Self::Color => "color",
            Self::RangeStyle => "range_style",
            Self::StepNumber => "step_number",
            Self::ExternalId => "external_id",
            Self::Sequence => "sequence",
            Self::ForwardThread => "forward_thread",
            Self::PythonId => "python_id",
            Self::PythonParent => "python_parent",
            Self::GraphNode => "graph_node",
            Self::Flops => "flops",
        }
    }

    /// Width of its values.
    pub const fn width(self) -> Width {
        match self {
            Self::Bytes
            | Self::StepNumber
            | Self::ExternalId
            | Self::Sequence
            | Self::ForwardThread
            | Self::PythonId
            | Self::PythonParent
            | Self::GraphNode
            | Self::Flops => Width::U64,
            _ => Width::U32,
        }
    }

    /// The value of an event that does not say it.
    pub const fn missing(self) -> u64 {
        match self {
            Self::Launch => 0xFFFF_FFFF,
            Self::Sequence => Self::NO_SEQUENCE,
            _ => 0,
        }
    }
}

const KERNEL: &[ColumnId] = &[
    ColumnId::GridX,
    ColumnId::GridY,
    ColumnId::GridZ,
    ColumnId::BlockX,
    ColumnId::BlockY,
    ColumnId::BlockZ,
    ColumnId::Registers,
    ColumnId::SharedStatic,
    ColumnId::SharedDynamic,
    ColumnId::Launch,
];

impl Category {
    /// Every category, in published order.
    pub const ALL: [Self; 20] = [
        Self::CudaKernel,
        Self::CudaMemcpyH2d,
        Self::CudaMemcpyD2h,
        Self::CudaMemcpyD2d,
        Self::CudaMemcpyP2p,
        Self::CudaMemcpyOther,
        Self::CudaMemset,
        Self::CudaSync,
        Self::CudaApi,
        Self::NvtxRange,
        Self::OsRuntime,
        Self::CpuOp,
        Self::Annotation,
        Self::Step,
        Self::PythonFunction,
        Self::Overhead,
        Self::DeviceOp,
        Self::GpuAnnotation,
        Self::Derived,
        Self::Other,
    ];

    /// The copies.
    pub const MEMCPY: [Self; 5] = [
        Self::CudaMemcpyH2d,
        Self::CudaMemcpyD2h,
        Self::CudaMemcpyD2d,
        Self::CudaMemcpyP2p,
        Self::CudaMemcpyOther,
    ];

    /// Name in files, e.g. `cuda_kernel`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CudaKernel => "cuda_kernel",
            Self::CudaMemcpyH2d => "cuda_memcpy_h2d",
            Self::CudaMemcpyD2h => "cuda_memcpy_d2h",
            Self::CudaMemcpyD2d => "cuda_memcpy_d2d",
            Self::CudaMemcpyP2p => "cuda_memcpy_p2p",
            Self::CudaMemcpyOther => "cuda_memcpy_other",
            Self::CudaMemset => "cuda_memset",
            Self::CudaSync => "cuda_sync",
            Self::CudaApi => "cuda_api",
            Self::NvtxRange => "nvtx_range",
            Self::OsRuntime => "os_runtime",
            Self::CpuOp => "cpu_op",
            Self::Annotation => "annotation",
            Self::Step => "step",
            Self::PythonFunction => "python_function",
            Self::Overhead => "overhead",
            Self::DeviceOp => "device_op",
            Self::GpuAnnotation => "gpu_annotation",
            Self::Derived => "derived",
            Self::Other => "other",
        }
    }

    /// The category of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    /// The columns it always has beside the common ones, in published order.
    pub const fn columns(self) -> &'static [ColumnId] {
        match self {
            Self::CudaKernel => KERNEL,
            Self::CudaMemcpyH2d
            | Self::CudaMemcpyD2h
            | Self::CudaMemcpyD2d
            | Self::CudaMemcpyP2p
            | Self::CudaMemcpyOther
            | Self::CudaMemset => &[ColumnId::Bytes, ColumnId::Launch],
            Self::NvtxRange => &[ColumnId::Color, ColumnId::RangeStyle],
            Self::Step => &[ColumnId::StepNumber],
            Self::CpuOp => &[ColumnId::ExternalId, ColumnId::Sequence],
            Self::PythonFunction => &[ColumnId::PythonId, ColumnId::PythonParent],
            Self::CudaSync
            | Self::CudaApi
            | Self::OsRuntime
            | Self::Annotation
            | Self::Overhead
            | Self::DeviceOp
            | Self::GpuAnnotation
            | Self::Derived
            | Self::Other => &[],
        }
    }

    /// The columns that only some sources give; see [`super::Events::add_column`].
    pub const fn optional_columns(self) -> &'static [ColumnId] {
        match self {
            Self::CudaKernel
            | Self::CudaMemcpyH2d
            | Self::CudaMemcpyD2h
            | Self::CudaMemcpyD2d
            | Self::CudaMemcpyP2p
            | Self::CudaMemcpyOther
            | Self::CudaMemset => &[ColumnId::ExternalId, ColumnId::GraphNode],
            Self::CudaApi | Self::Annotation => &[ColumnId::ExternalId],
            Self::CpuOp => &[ColumnId::ForwardThread],
            Self::DeviceOp => &[ColumnId::Bytes, ColumnId::Flops],
            _ => &[],
        }
    }

    /// Whether its events repeat time that other categories hold, so that no sum may have both.
    pub fn is_derived(self) -> bool {
        matches!(self, Self::GpuAnnotation | Self::Derived)
    }

    /// Whether its events keep a GPU busy: kernels, copies and memsets.
    pub fn is_gpu_work(self) -> bool {
        self == Self::CudaKernel || self == Self::CudaMemset || Self::MEMCPY.contains(&self)
    }
}
