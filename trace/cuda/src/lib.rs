//! The transform's steps on an NVIDIA GPU.
//!
//! [`Gpu::open`] loads the driver and the kernels at run time: nothing of CUDA is needed to build this crate, and on a machine
//! without a GPU it says which part is missing. [`Steps`] runs the steps, each with exactly the outcome of the processor's own
//! rule. [`neighbours()`] says who else computes there.
//!
//! The kernels (`device/`) are built by `cargo xtask kernels` into one library, [`kernels::FILE_NAME`].

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
pub use steps::{NameFigures, Overlapping, Runs, SortedColumns, Steps, StripMajor, Table, TableColumns};
