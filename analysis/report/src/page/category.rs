//! Names of categories for people.

use flopwatch_model::Category;

/// The events of a category in plain words, in the plural; programs know it by [`Category::name`].
pub const fn label(category: Category) -> &'static str {
    match category {
        Category::CudaKernel => "kernels",
        Category::CudaGraph => "whole CUDA graphs",
        Category::CudaMemcpyH2d => "copies from host to device",
        Category::CudaMemcpyD2h => "copies from device to host",
        Category::CudaMemcpyD2d => "copies within a device",
        Category::CudaMemcpyP2p => "copies between devices",
        Category::CudaMemcpyOther => "other copies",
        Category::CudaMemset => "memsets",
        Category::CudaMigration => "migrations of unified memory",
        Category::CudaSync => "CUDA synchronisation",
        Category::CudaApi => "CUDA API calls",
        Category::CudnnApi => "cuDNN calls",
        Category::CublasApi => "cuBLAS calls",
        Category::NvtxRange => "NVTX ranges",
        Category::OsRuntime => "operating system calls",
        Category::CpuOp => "framework operators",
        Category::Annotation => "annotations",
        Category::Step => "steps",
        Category::PythonFunction => "Python functions",
        Category::CpuSample => "samples of the CPU",
        Category::CpuRunning => "times on a CPU",
        Category::Overhead => "profiler overhead",
        Category::DeviceOp => "device operations",
        Category::GpuAnnotation => "annotations of GPU work",
        Category::Derived => "derived events",
        Category::Other => "other events",
    }
}

/// The same, of a category's name in files; a name that is none stays as it is.
pub fn label_of_name(name: &str) -> &str {
    match Category::from_name(name) {
        Some(category) => label(category),
        None => name,
    }
}
