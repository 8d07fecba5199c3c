//! Why a step cannot run on a GPU.

use std::path::PathBuf;

/// Why a step cannot run, or did not run, on a GPU. Each is also the reason that a fall-back to the
/// CPU gives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// The machine has no `libcuda`.
    #[error("no NVIDIA driver")]
    NoDriver,
    /// The driver is older than the kernels need.
    #[error("the NVIDIA driver supports CUDA {}.{}, the kernels need {}.{} (driver 580 or newer)", found / 1000, found % 1000 / 10, crate::LOWEST_DRIVER / 1000, crate::LOWEST_DRIVER % 1000 / 10)]
    OldDriver {
        /// What the driver says of itself: 1000 times the major and 10 times the minor version of
        /// CUDA.
        found: u32,
    },
    /// The driver is there and shows no GPU.
    #[error("the NVIDIA driver shows no GPU to this process")]
    NoGpu,
    /// A limit on the address space: the driver reserves more of it than the machine has memory.
    #[error("the address space of this process is limited to {bytes} bytes, and the NVIDIA driver reserves far more")]
    AddressSpace {
        /// The limit in bytes.
        bytes: u64,
    },
    /// There is no library of kernels.
    #[error(
        "no GPU kernels: {} does not exist (cargo xtask kernels builds it; FLOPWATCH_CUDA_KERNELS names another place)",
        path.display()
    )]
    NoKernels {
        /// Path that was looked at last.
        path: PathBuf,
    },
    /// The library of kernels cannot be used.
    #[error("the GPU kernels in {} cannot be used: {reason}", path.display())]
    BadKernels {
        /// Path of the library.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The driver refused something.
    #[error("the NVIDIA driver failed to {action}: {reason}")]
    Driver {
        /// What was asked of it.
        action: &'static str,
        /// The driver's name for the reason.
        reason: String,
    },
    /// A kernel could not be started, or failed.
    #[error("the GPU failed in {call}: {reason}")]
    Kernel {
        /// Call that failed.
        call: &'static str,
        /// CUDA's name for the reason.
        reason: String,
    },
    /// More events than an index holds.
    #[error("{count} events are more than one step takes ({})", u32::MAX)]
    TooMany {
        /// Number of elements that was asked for.
        count: usize,
    },
    /// Columns of one table differ in length, or refer beyond the table.
    #[error("columns do not fit together: {0}")]
    Mismatch(&'static str),
}
