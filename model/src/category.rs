//! The closed set of event categories and the columns that each carries beside the common ones.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The categories of GPU work ([`Category::is_gpu_work`]) and others beside them, for analyses that
/// look at both.
#[macro_export]
macro_rules! gpu_work_and {
    ($($other:expr),* $(,)?) => {
        &[
            $crate::Category::CudaKernel,
            $crate::Category::CudaGraph,
            $crate::Category::CudaMemcpyH2d,
            $crate::Category::CudaMemcpyD2h,
            $crate::Category::CudaMemcpyD2d,
            $crate::Category::CudaMemcpyP2p,
            $crate::Category::CudaMemcpyOther,
            $crate::Category::CudaMemset,
            $($other,)*
        ]
    };
}

/// What kind of thing an event is.
// The order is that of the published lists.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A kernel on the GPU.
    CudaKernel,
    /// A launch of a CUDA graph that was recorded as a whole, from its first node to its last: what
    /// its nodes are is not known.
    CudaGraph,
    /// A copy from host to device.
    CudaMemcpyH2d,
    /// A copy from device to host.
    CudaMemcpyD2h,
    /// A copy within a device.
    CudaMemcpyD2d,
    /// A copy between devices.
    CudaMemcpyP2p,
    /// A copy of any other kind: arrays, host to host, kinds unknown to this version.
    CudaMemcpyOther,
    /// A memset on the GPU.
    CudaMemset,
    /// A migration of pages of unified memory between host and device, or between devices. No call
    /// launches it and no stream orders it: it is no GPU work, and a GPU that only migrates is
    /// idle.
    CudaMigration,
    /// A synchronisation as the GPU saw it (event, stream, context, stream wait).
    CudaSync,
    /// A call of the CUDA runtime or driver API.
    CudaApi,
    /// A call of cuDNN.
    CudnnApi,
    /// A call of cuBLAS.
    CublasApi,
    /// An NVTX push/pop or start/end range.
    NvtxRange,
    /// A call of an operating system function that the profiler wraps.
    OsRuntime,
    /// An operator of a framework on the CPU, e.g. `aten::mm`. Operators of a thread nest.
    CpuOp,
    /// A range that the program or its framework marked on the CPU by other means than NVTX:
    /// Kineto's `user_annotation`, JAX's host ranges.
    Annotation,
    /// A step of the training or inference loop: Kineto's `ProfilerStep#N`, JAX's step ranges on
    /// the host.
    Step,
    /// A function of the Python interpreter.
    PythonFunction,
    /// A sample of the CPU: which function a thread was in at a moment. It has no length; its name
    /// is the innermost function.
    CpuSample,
    /// The time in which a thread ran on a CPU, from the switch onto it to the switch off it. The
    /// thread did not run between two of these.
    CpuRunning,
    /// Work of the profiler itself.
    Overhead,
    /// An operation on an accelerator that has no CUDA-like streams, e.g. an XLA operation on a
    /// TPU.
    DeviceOp,
    /// A range on the GPU's timeline that stands for an [`Category::Annotation`] on the CPU: from
    /// its first kernel to its last. It repeats time that other categories hold.
    GpuAnnotation,
    /// An event of a line that a tool derived from others (JAX's "XLA Modules", "XLA Ops", "Steps"
    /// of a device that has streams). It repeats time that other categories hold and is never
    /// summed with them.
    Derived,
    /// An event of a kind that this version has no category for, e.g. the profiler's own window.
    Other,
}

/// A column that only some categories have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    /// Bytes moved or set; [`ColumnId::NO_SIZE`] for none.
    Bytes,
    /// Index of the launching call in `cuda_api`, or [`ColumnId::NO_LAUNCH`]. Filled by the
    /// transform.
    Launch,
    /// ARGB colour of an NVTX range, 0 for none.
    Color,
    /// How an NVTX range was made: 0 push/pop, 1 start/end.
    RangeStyle,
    /// Number of the step.
    StepNumber,
    /// Kineto's `External id`: ties calls and GPU work to the operator of the same id; 0 for none.
    ExternalId,
    /// Kineto's `Sequence number`: ties a backward operator to its forward one;
    /// [`ColumnId::NO_SEQUENCE`] for none.
    Sequence,
    /// Thread of the forward operator that a backward operator belongs to; 0 for none.
    ForwardThread,
    /// Kineto's `Python id` of a function call; 0 for none.
    PythonId,
    /// `Python id` of the call around it; 0 for none.
    PythonParent,
    /// Node of the CUDA graph that launched the work; 0 for none.
    GraphNode,
    /// Thread blocks per cluster in x; 0 where the source does not say it.
    ClusterX,
    /// Thread blocks per cluster in y; 0 where the source does not say it.
    ClusterY,
    /// Thread blocks per cluster in z; 0 where the source does not say it.
    ClusterZ,
    /// Number of the CUDA graph that a launch was instantiated from, in its process; 0 for none.
    GraphId,
    /// Number of the executable CUDA graph that was launched, in its process; 0 for none.
    GraphExec,
    /// Stream of the record of the event that a synchronisation waits for; [`ColumnId::NO_STREAM`]
    /// for none.
    WaitOnStream,
    /// Correlation of the call that recorded the event that a synchronisation waits for; 0 for
    /// none.
    WaitOnRecord,
    /// Floating-point operations that the source says the operation does.
    Flops,
    /// Blocks of the launch per multiprocessor of the device, in thousandths;
    /// [`ColumnId::UNKNOWN`] for none.
    #[strum(serialize = "blocks_per_sm_milli")]
    BlocksPerSm,
    /// Warps of the launch per multiprocessor of the device, in thousandths; [`ColumnId::UNKNOWN`]
    /// for none.
    #[strum(serialize = "warps_per_sm_milli")]
    WarpsPerSm,
    /// Achieved occupancy as the source estimates it, in millionths of the warps that a
    /// multiprocessor holds; [`ColumnId::UNKNOWN`] for none.
    #[strum(serialize = "achieved_occupancy_ppm")]
    AchievedOccupancy,
    /// Theoretical occupancy as the source states it, in millionths of the warps that a
    /// multiprocessor holds; [`ColumnId::UNKNOWN`] for none.
    #[strum(serialize = "theoretical_occupancy_ppm")]
    TheoreticalOccupancy,
    /// Kind of memory that is copied from: the number of a [`MemoryKind`](super::MemoryKind), 0 for
    /// none.
    SrcMemoryKind,
    /// Kind of memory that is copied to or set: the number of a [`MemoryKind`](super::MemoryKind),
    /// 0 for none.
    DstMemoryKind,
    /// What a call of the CUDA runtime or driver returned: 0 for success, otherwise a `cudaError_t`
    /// or `CUresult`.
    ReturnValue,
    /// Elements that a rank gives to a collective.
    InElements,
    /// Elements that a rank receives from a collective.
    OutElements,
    /// Ranks that take part in a collective.
    GroupSize,
    /// Number of the XLA program that the work belongs to; 0 for none.
    ProgramId,
    /// Shapes of an operator's inputs as JSON, e.g. `[[64,3,7,7],[]]`.
    InputShapes,
    /// Types of an operator's inputs as JSON, e.g. `["float","Scalar"]`.
    InputTypes,
    /// Name of a collective, e.g. `allreduce`.
    Collective,
    /// Type of a collective's elements, e.g. `BFloat16`.
    ElementType,
    /// Name of the process group of a collective.
    ProcessGroup,
    /// Ranks of the process group of a collective as JSON, e.g. `[0,1]`.
    GroupRanks,
    /// Operation of the compiled program (HLO) that the work belongs to.
    HloOp,
    /// Kind of the operation of the compiled program, e.g. `loop fusion`.
    HloCategory,
    /// Compiled program (HLO module) that the work belongs to.
    HloModule,
    /// Operation of the framework that the work belongs to, e.g. `jit(f)/dot_general`.
    TfOp,
    /// Category of an NVTX range: its name, or its number where it was not named.
    RangeCategory,
    /// Stack of calls that a sample was taken in: its number among [`super::CallStacks`], 0 for
    /// none.
    CallStack,
    /// Number of the CPU of the host that a thread ran on.
    Cpu,
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
    /// Value of [`ColumnId::WaitOnStream`] for a synchronisation of which the source does not say
    /// it. 0 is an ordinary stream.
    pub const NO_STREAM: u64 = u64::MAX;
    /// Value of [`ColumnId::Bytes`] for work whose size the source does not say.
    pub const NO_SIZE: u64 = u64::MAX;
    /// Value of columns in which 0 is an ordinary value, for an event of which the source does not
    /// say it.
    pub const UNKNOWN: u32 = u32::MAX;

    /// The column of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let of = |category: Category| category.columns().iter().chain(category.optional_columns());
        let mut all = Category::ALL.iter().copied().flat_map(of);
        all.find(|id| id.name() == name).copied()
    }

    /// Name of the dataset in the timeline file.
    pub fn name(self) -> &'static str {
        self.into()
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
            | Self::WaitOnStream
            | Self::Flops
            | Self::InElements
            | Self::OutElements
            | Self::ProgramId => Width::U64,
            _ => Width::U32,
        }
    }

    /// Whether its values are places in a list of texts, [`super::Column::texts`].
    pub const fn is_text(self) -> bool {
        matches!(
            self,
            Self::InputShapes
                | Self::InputTypes
                | Self::Collective
                | Self::ElementType
                | Self::ProcessGroup
                | Self::GroupRanks
                | Self::HloOp
                | Self::HloCategory
                | Self::HloModule
                | Self::TfOp
                | Self::RangeCategory
        )
    }

    /// The value of an event that does not say it.
    pub const fn missing(self) -> u64 {
        match self {
            Self::Launch
            | Self::BlocksPerSm
            | Self::WarpsPerSm
            | Self::AchievedOccupancy
            | Self::TheoreticalOccupancy
            | Self::Cpu => 0xFFFF_FFFF,
            Self::Sequence => Self::NO_SEQUENCE,
            Self::WaitOnStream => Self::NO_STREAM,
            Self::Bytes => Self::NO_SIZE,
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

const KERNEL_OPTIONAL: &[ColumnId] = &[
    ColumnId::ExternalId,
    ColumnId::GraphNode,
    ColumnId::ClusterX,
    ColumnId::ClusterY,
    ColumnId::ClusterZ,
    ColumnId::BlocksPerSm,
    ColumnId::WarpsPerSm,
    ColumnId::AchievedOccupancy,
    ColumnId::TheoreticalOccupancy,
    ColumnId::InElements,
    ColumnId::OutElements,
    ColumnId::GroupSize,
    ColumnId::ProgramId,
    ColumnId::Collective,
    ColumnId::ElementType,
    ColumnId::ProcessGroup,
    ColumnId::GroupRanks,
    ColumnId::HloOp,
    ColumnId::HloModule,
    ColumnId::TfOp,
];

const GRAPH_OPTIONAL: &[ColumnId] = &[
    ColumnId::ExternalId,
    ColumnId::GraphId,
    ColumnId::GraphExec,
    ColumnId::ProgramId,
    ColumnId::HloOp,
    ColumnId::HloModule,
    ColumnId::TfOp,
];

const MEMORY_OPTIONAL: &[ColumnId] = &[
    ColumnId::ExternalId,
    ColumnId::GraphNode,
    ColumnId::SrcMemoryKind,
    ColumnId::DstMemoryKind,
    ColumnId::ProgramId,
    ColumnId::HloOp,
    ColumnId::HloModule,
    ColumnId::TfOp,
];

/// On a processor XLA runs its operations on threads, where they look like annotations.
const ANNOTATION_OPTIONAL: &[ColumnId] = &[
    ColumnId::ExternalId,
    ColumnId::ProgramId,
    ColumnId::HloOp,
    ColumnId::HloModule,
    ColumnId::TfOp,
];

const OPERATOR_OPTIONAL: &[ColumnId] = &[
    ColumnId::ForwardThread,
    ColumnId::Flops,
    ColumnId::InElements,
    ColumnId::OutElements,
    ColumnId::GroupSize,
    ColumnId::InputShapes,
    ColumnId::InputTypes,
    ColumnId::Collective,
    ColumnId::ElementType,
    ColumnId::ProcessGroup,
    ColumnId::GroupRanks,
];

const DEVICE_OPTIONAL: &[ColumnId] = &[
    ColumnId::Bytes,
    ColumnId::Flops,
    ColumnId::ProgramId,
    ColumnId::HloOp,
    ColumnId::HloCategory,
    ColumnId::HloModule,
    ColumnId::TfOp,
];

impl Category {
    /// Every category, in published order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Everything that CUDA does and that a program asks of it.
    pub const CUDA: [Self; 11] = [
        Self::CudaKernel,
        Self::CudaGraph,
        Self::CudaMemcpyH2d,
        Self::CudaMemcpyD2h,
        Self::CudaMemcpyD2d,
        Self::CudaMemcpyP2p,
        Self::CudaMemcpyOther,
        Self::CudaMemset,
        Self::CudaMigration,
        Self::CudaSync,
        Self::CudaApi,
    ];

    /// The categories of copies, by direction.
    pub const MEMCPY: [Self; 5] = [
        Self::CudaMemcpyH2d,
        Self::CudaMemcpyD2h,
        Self::CudaMemcpyD2d,
        Self::CudaMemcpyP2p,
        Self::CudaMemcpyOther,
    ];

    /// Copies by direction, and migrations of unified memory: Nsight Systems has them in one table.
    pub const COPIES: [Self; 6] = [
        Self::CudaMemcpyH2d,
        Self::CudaMemcpyD2h,
        Self::CudaMemcpyD2d,
        Self::CudaMemcpyP2p,
        Self::CudaMemcpyOther,
        Self::CudaMigration,
    ];

    /// Name in files, e.g. `cuda_kernel`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The category of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|category| category.name() == name)
    }

    /// The columns it always has beside the common ones, in published order.
    pub const fn columns(self) -> &'static [ColumnId] {
        match self {
            Self::CudaKernel => KERNEL,
            Self::CudaGraph => &[ColumnId::Launch],
            Self::CudaMigration => &[ColumnId::Bytes],
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
            Self::CpuSample => &[ColumnId::CallStack],
            Self::CpuRunning => &[ColumnId::Cpu],
            Self::CudaSync
            | Self::CudaApi
            | Self::CudnnApi
            | Self::CublasApi
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
            Self::CudaKernel => KERNEL_OPTIONAL,
            Self::CudaGraph => GRAPH_OPTIONAL,
            Self::CudaMemcpyH2d
            | Self::CudaMemcpyD2h
            | Self::CudaMemcpyD2d
            | Self::CudaMemcpyP2p
            | Self::CudaMemcpyOther
            | Self::CudaMemset
            | Self::CudaMigration => MEMORY_OPTIONAL,
            Self::CudaSync => &[ColumnId::WaitOnStream, ColumnId::WaitOnRecord],
            Self::CudaApi => &[ColumnId::ExternalId, ColumnId::ReturnValue],
            Self::Annotation => ANNOTATION_OPTIONAL,
            Self::NvtxRange => &[ColumnId::RangeCategory],
            Self::CpuOp => OPERATOR_OPTIONAL,
            Self::DeviceOp => DEVICE_OPTIONAL,
            _ => &[],
        }
    }

    /// Whether its events repeat time that other categories hold, so that no sum may have both.
    pub fn is_derived(self) -> bool {
        matches!(self, Self::GpuAnnotation | Self::Derived)
    }

    /// Whether its events keep a GPU busy: kernels, whole graphs, copies and memsets.
    pub fn is_gpu_work(self) -> bool {
        matches!(self, Self::CudaKernel | Self::CudaGraph | Self::CudaMemset) || Self::MEMCPY.contains(&self)
    }
}
