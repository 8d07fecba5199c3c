//! Runs the heavy steps of the transform (`flopwatch_trace::transform::engine`) on an NVIDIA GPU.
//!
//! [`Gpu::open`] loads the driver and the kernels at run time: nothing of CUDA is needed to build
//! this crate, and on a machine without a GPU the error says which part is missing. The order of
//! use:
//!
//! 1. [`neighbours()`] asks NVML which other processes compute on the machine's GPUs and how much
//!    memory is free, so that the caller can leave a busy GPU alone.
//! 2. [`Gpu::open`] makes a context and loads [`Kernels`] from [`kernels::FILE_NAME`], which `cargo
//!    xtask kernels` builds from `device/`. An [`Inventory`] lists the architectures that the file
//!    has code for.
//! 3. [`Steps`] copies columns to the device (from 1 MiB on through two pinned halves of 8 MiB),
//!    sorts them, finds overlapping events, and computes levels of detail and figures per name.
//!
//! [`Marks`] is independent of these: it measures the time between two points of a stream of
//! another library, such as PyTorch.
//!
//! Invariants:
//!
//! - Every step has the result of the CPU's own rule, to the byte: all of it is integer arithmetic.
//! - A failure ([`CudaError`]) leaves the caller's columns as they were, so that it can do the step
//!   on the CPU.
//! - Lanes of overlapping events are sequential by nature and are left to the caller.

mod driver;
mod error;
mod inventory;
pub mod kernels;
mod marks;
mod memory;
mod neighbours;
mod staging;
mod steps;

pub use driver::{Gpu, GpuIdentity, LOWEST_DRIVER};
pub use error::CudaError;
pub use inventory::{Architecture, Inventory};
pub use kernels::Kernels;
pub use marks::{Mark, Marks};
pub use memory::{DeviceArray, Element, Memory};
pub use neighbours::{Neighbours, neighbours};
pub use steps::{NameFigures, OverlappingEvents, Runs, SortedColumns, Steps, StripMajor, Table, TableColumns};
