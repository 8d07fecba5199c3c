//! The tables of `nsys stats`, under its own names.
//!
//! A page's table has the heads, the order of columns and rows, and the rounding of Nsight Systems
//! 2023.4.4, so that its CSV is nsys's CSV; JSON has the same rows as exact integers and unrounded
//! numbers. `docs/analyses/nsys-stats.md` lists where the figures differ and who is right. Captures
//! of other tools have the same tables.

mod calls;
mod gpu;
mod kernel_launches;
mod kernel_names;
mod parameters;
mod projections;
mod push_pop_trace;
mod range_kernels;
mod rounding;
mod sizes;
#[cfg(test)]
mod tests;
mod times;
mod traces;

pub use calls::{CudaApiSum, NvtxPushpopSum, NvtxSum, OsrtSum};
pub use gpu::{CudaApiGpuSum, CudaGpuKernGbSum, CudaGpuKernSum, CudaGpuMemTimeSum, CudaGpuSum};
pub use kernel_launches::{
    CudaKernExecSum, CudaKernExecTrace, NsysLaunchTimes, NsysLaunchTimesRow, NsysLaunches, NsysLaunchesRow, NsysSpread,
};
pub use parameters::{NsysKernelName, NsysKernelParams, NsysParams, NsysRangeKernelParams};
pub use projections::{
    NsysProjectionTrace, NsysProjectionTraceRow, NsysProjections, NsysProjectionsRow, NvtxGpuProjSum, NvtxGpuProjTrace,
};
pub use push_pop_trace::{NsysPushPopTrace, NsysPushPopTraceRow, NvtxPushpopTrace};
pub use range_kernels::{NsysRangeKernels, NsysRangeKernelsRow, NvtxKernSum};
pub use sizes::{CudaGpuMemSizeSum, NsysSizes, NsysSizesRow};
pub use times::{NsysTimes, NsysTimesRow};
pub use traces::{
    CudaApiTrace, CudaGpuTrace, NsysApiTrace, NsysApiTraceRow, NsysGpuTrace, NsysGpuTraceRow, NsysKernelShape,
};

/// Dimensions as nsys writes them: `512  256    1`, each in four places.
fn dimensions([x, y, z]: [u32; 3]) -> String {
    format!("{x:4} {y:4} {z:4}")
}
