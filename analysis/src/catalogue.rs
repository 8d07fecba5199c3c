//! Every analysis, a line each.

use crate::analyses::advice::AdviceAnalysis;
use crate::analyses::allocations::Allocations;
use crate::analyses::batch_sweep::BatchSweep;
use crate::analyses::buffers::Buffers;
use crate::analyses::collectives::Collectives;
use crate::analyses::compare::Compare;
use crate::analyses::cpu_gpu::CpuGpu;
use crate::analyses::critical_path::CriticalPath;
use crate::analyses::events::EventsAnalysis;
use crate::analyses::flame_difference::{FlameDifferenceAnalysis, FlameDifferencePprof};
use crate::analyses::flame_graph::{FlameFolded, FlameGraphAnalysis, FlamePprof, FlameSpeedscope};
use crate::analyses::gpu_time::GpuTime;
use crate::analyses::hlo_cost::HloCostAnalysis;
use crate::analyses::hlo_graph::{HloDot, HloGraphAnalysis};
use crate::analyses::hlo_memory::HloMemoryAnalysis;
use crate::analyses::hlo_operations::HloOperationsAnalysis;
use crate::analyses::host_sync::HostSync;
use crate::analyses::idle::Idle;
use crate::analyses::iterations::Iterations;
use crate::analyses::kernel_changes::KernelChanges;
use crate::analyses::kernel_types::KernelTypes;
use crate::analyses::kernels_per_stream::KernelsPerStream;
use crate::analyses::launch_patterns::LaunchPatterns;
use crate::analyses::launches::Launches;
use crate::analyses::memory::Memory;
use crate::analyses::memory_profile::{MemoryProfile, MemoryProfileChanges};
use crate::analyses::mfu::Mfu;
use crate::analyses::module_loading::ModuleLoading;
use crate::analyses::nsys_stats as nsys;
use crate::analyses::offload_candidates::OffloadCandidates;
use crate::analyses::operations::OperationsAnalysis;
use crate::analyses::operations::profile::OperationsProfileAnalysis;
use crate::analyses::overlap::Overlap;
use crate::analyses::precision::Precision;
use crate::analyses::profiled_in_timeline::ProfiledInTimeline;
use crate::analyses::profiled_kernel::ProfiledKernel;
use crate::analyses::profiled_kernels::ProfiledKernels;
use crate::analyses::profiler::{ProfilerHtaAnalysis, ProfilerKernelsAnalysis, ProfilerTimelineAnalysis};
use crate::analyses::profiler_compile::ProfilerCompile;
use crate::analyses::profiler_memory::ProfilerMemoryAnalysis;
use crate::analyses::queue_length::QueueLength;
use crate::analyses::ranks::Ranks;
use crate::analyses::roofline::Roofline;
use crate::analyses::start_up::StartUp;
use crate::analyses::stragglers::Stragglers;
use crate::analyses::summary::SummaryAnalysis;
use crate::analyses::threads::Threads;
use crate::analyses::torch_compile::TorchCompile;
use crate::analyses::utilization::Utilization;
use crate::definition::{Definition, ResultType};
use crate::export::entries;
use crate::request::{Request, RequestError};

/// Every analysis, in published order.
pub static CATALOGUE: &[&Definition] = &[
    &Definition::of::<SummaryAnalysis>(),
    &Definition::of::<AdviceAnalysis>(),
    &Definition::of::<KernelsPerStream>(),
    &Definition::of::<KernelChanges>(),
    &Definition::of::<Collectives>(),
    &Definition::of::<Compare>(),
    &Definition::of::<Ranks>(),
    &Definition::of::<BatchSweep>(),
    &Definition::of::<GpuTime>(),
    &Definition::of::<Overlap>(),
    &Definition::of::<KernelTypes>(),
    &Definition::of::<ProfiledKernels>(),
    &Definition::of::<ProfiledKernel>(),
    &Definition::of::<Roofline>(),
    &Definition::of::<ProfiledInTimeline>(),
    &Definition::of::<CpuGpu>(),
    &Definition::of::<EventsAnalysis>(),
    &Definition::of::<nsys::CudaGpuKernSum>(),
    &Definition::of::<nsys::CudaGpuKernGbSum>(),
    &Definition::of::<nsys::CudaGpuMemTimeSum>(),
    &Definition::of::<nsys::CudaGpuMemSizeSum>(),
    &Definition::of::<nsys::CudaGpuSum>(),
    &Definition::of::<nsys::CudaApiSum>(),
    &Definition::of::<nsys::CudaApiGpuSum>(),
    &Definition::of::<nsys::CudaKernExecSum>(),
    &Definition::of::<nsys::CudaKernExecTrace>(),
    &Definition::of::<nsys::CudaGpuTrace>(),
    &Definition::of::<nsys::CudaApiTrace>(),
    &Definition::of::<nsys::NvtxSum>(),
    &Definition::of::<nsys::NvtxPushpopSum>(),
    &Definition::of::<nsys::NvtxPushpopTrace>(),
    &Definition::of::<nsys::NvtxKernSum>(),
    &Definition::of::<nsys::NvtxGpuProjSum>(),
    &Definition::of::<nsys::NvtxGpuProjTrace>(),
    &Definition::of::<nsys::OsrtSum>(),
    &Definition::of::<Iterations>(),
    &Definition::of::<Stragglers>(),
    &Definition::of::<HostSync>(),
    &Definition::of::<OperationsAnalysis>(),
    &Definition::of::<OperationsProfileAnalysis>(),
    &Definition::of::<HloOperationsAnalysis>(),
    &Definition::of::<HloCostAnalysis>(),
    &Definition::of::<HloGraphAnalysis>(),
    &Definition::of::<HloMemoryAnalysis>(),
    &Definition::of::<ProfilerTimelineAnalysis>(),
    &Definition::of::<ProfilerKernelsAnalysis>(),
    &Definition::of::<ProfilerHtaAnalysis>(),
    &Definition::of::<TorchCompile>(),
    &Definition::of::<ProfilerCompile>(),
    &Definition::of::<CriticalPath>(),
    &Definition::of::<Mfu>(),
    &Definition::of::<Precision>(),
    &Definition::of::<OffloadCandidates>(),
    &Definition::of::<Idle>(),
    &Definition::of::<Launches>(),
    &Definition::of::<LaunchPatterns>(),
    &Definition::of::<QueueLength>(),
    &Definition::of::<Utilization>(),
    &Definition::of::<ModuleLoading>(),
    &Definition::of::<StartUp>(),
    &Definition::of::<Allocations>(),
    &Definition::of::<Threads>(),
    &Definition::of::<Memory>(),
    &Definition::of::<Buffers>(),
    &Definition::of::<MemoryProfile>(),
    &Definition::of::<MemoryProfileChanges>(),
    &Definition::of::<ProfilerMemoryAnalysis>(),
    &Definition::of::<FlameGraphAnalysis>(),
    &Definition::of::<FlameDifferenceAnalysis>(),
    &Definition::of_file::<FlameFolded>(),
    &Definition::of_file::<FlamePprof>(),
    &Definition::of_file::<FlameSpeedscope>(),
    &Definition::of_file::<HloDot>(),
    &Definition::of_file::<FlameDifferencePprof>(),
    &entries::EVENTS_CSV,
    &entries::EVENTS_PARQUET,
    &entries::SAMPLES_CSV,
    &entries::SAMPLES_PARQUET,
    &entries::CHROME,
    &entries::CHROME_GZ,
    &entries::PERFETTO,
    &entries::EARLIEST_EVENTS,
    &entries::KERNEL_COUNTERS,
];

/// The analysis of that name.
pub fn find(name: &str) -> Option<&'static Definition> {
    CATALOGUE.iter().find(|definition| definition.name == name).copied()
}

/// The analyses whose results are also served as artifacts of a capture, each under its file name.
pub fn artifacts() -> impl Iterator<Item = (&'static str, &'static Definition)> {
    CATALOGUE.iter().filter_map(|definition| match definition.result {
        ResultType::File {
            file_name,
            artifact: true,
            ..
        } => Some((file_name, *definition)),
        _ => None,
    })
}

/// What an artifact of that name is made by, where it is not stored but made on demand.
pub fn artifact(file_name: &str) -> Option<Request> {
    let (_, definition) = artifacts().find(|(name, _)| *name == file_name)?;
    let request: Result<Request, RequestError> = Request::of(definition);
    request.ok()
}
