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
        }
    }

    /// Width of its values.
    pub const fn width(self) -> Width {
        match self {
            Self::Bytes => Width::U64,
            _ => Width::U32,
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
    pub const ALL: [Self; 11] = [
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
        }
    }

    /// The category of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    /// The columns it has beside the common ones, in published order.
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
            Self::CudaSync | Self::CudaApi | Self::OsRuntime => &[],
        }
    }

    /// Whether its events keep a GPU busy: kernels, copies and memsets.
    pub fn is_gpu_work(self) -> bool {
        self == Self::CudaKernel || self == Self::CudaMemset || Self::MEMCPY.contains(&self)
    }
}
