//! What a row of the timeline stands for.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// What a row shows. A thread has a row per track, so that lanes within a row mean nesting and
/// nothing else.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// Kernels, copies and memsets of a stream.
    GpuStream,
    /// Synchronisation as the GPU saw it.
    CudaSync,
    /// CUDA API calls of a thread.
    CudaApi,
    /// NVTX ranges of a thread.
    Nvtx,
    /// Calls of cuDNN and cuBLAS of a thread.
    Library,
    /// Operating system calls of a thread.
    OsRuntime,
    /// Framework operators of a thread.
    CpuOp,
    /// Annotations and steps of a thread.
    Annotation,
    /// Python functions of a thread.
    Python,
    /// Samples of what a thread did.
    CpuSample,
    /// When a thread ran on a CPU.
    CpuRunning,
    /// The profiler's own work, on a thread or on no particular one.
    Overhead,
    /// Operations of an accelerator without streams.
    Device,
    /// Annotations as the GPU saw them, of a stream.
    GpuAnnotation,
    /// A line that a tool derived; its label is the line's name.
    Derived,
    /// Events of kinds that this version has no category for.
    Other,
}

impl Track {
    /// Every track, in published order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The track of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|track| track.name() == name)
    }
}

/// A row: a stream of a GPU or a thread, of one process.
///
/// The order of rows in a file is the order of these fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Row {
    /// Which capture of a merged session, 0 when there is one.
    pub capture: u32,
    /// Machine and virtual machine as the profiler numbers them; 0 where it does not.
    pub machine: u32,
    /// Process id as the profiler saw it; for GPU work the process on the host that launched it,
    /// since launches are joined to GPU work within a process.
    pub process: u32,
    /// What the row shows.
    pub track: Track,
    /// Device ordinal; `None` for a row of the CPU.
    pub device: Option<u32>,
    /// CUDA context; `None` for a row of the CPU.
    pub context: Option<u64>,
    /// CUDA stream; `None` for a row of the CPU and for what waits on no particular stream.
    pub stream: Option<u64>,
    /// Thread id; `None` for a row of a GPU. Traces of frameworks hold numbers that need 64 bits.
    pub thread: Option<u64>,
    /// A short text for people, e.g. `python (4711) thread 4712`.
    pub label: String,
}

impl Row {
    /// A row of a process that is of no device and no thread, and has no label yet. Readers name
    /// every field instead, so that a new one does not compile until they say it.
    pub const fn of(process: u32, track: Track) -> Self {
        Self {
            capture: 0,
            machine: 0,
            process,
            track,
            device: None,
            context: None,
            stream: None,
            thread: None,
            label: String::new(),
        }
    }
}
