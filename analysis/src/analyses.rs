//! The analyses, a file each.

mod advice;
mod allocations;
mod collectives;
pub mod compare;
mod cpu_gpu;
mod critical_path;
mod events;
mod gpu_time;
mod host_sync;
mod idle;
mod iterations;
mod kernel_changes;
mod kernel_types;
mod kernels_per_stream;
mod launch_patterns;
mod launches;
mod module_loading;
pub mod nsys_stats;
pub mod operations;
mod overlap;
pub mod profiler;
mod queue_length;
pub mod ranks;
mod stragglers;
mod threads;
mod utilization;

pub use advice::AdviceAnalysis;
pub use allocations::{AllocationCall, Allocations, AllocationsParams, AllocationsResult};
pub use collectives::{Collectives, CollectivesParams, CollectivesResult};
pub use compare::Compare;
pub use cpu_gpu::{CpuGpu, CpuGpuParams, CpuGpuTime};
pub use critical_path::{
    CriticalPath, CriticalPathParams, CriticalPathResult, PathName, PathSegment, PathShare, PathVerdict,
};
pub use events::EventsAnalysis;
pub use gpu_time::{GpuTime, GpuTimeParams, GpuTimes, TimeOfGpu};
pub use host_sync::{HostSync, HostSyncParams, HostSyncResult, SyncHolder, SyncKind};
pub use idle::{GapHolder, GapPart, Idle, IdleClass, IdleGap, IdleOfGpu, IdleOfStream, IdleParams, IdleTime};
pub use iterations::{
    AssignedWork, IterationDetail, IterationKernel, IterationRow, IterationStatistics, Iterations, IterationsParams,
    IterationsResult, PipelineBubbles,
};
pub use kernel_changes::KernelChanges;
pub use kernel_types::{ClassOfWork, KernelTypes, KernelTypesParams, NamedWork, TypesOfWork};
pub use kernels_per_stream::KernelsPerStream;
pub use launch_patterns::{LaunchPattern, LaunchPatterns, LaunchPatternsParams, PatternsOfLaunches};
pub use launches::{LaunchFigures, Launches, LaunchesParams};
pub use module_loading::{CodeWork, ModuleLoading, ModuleLoadingParams, ModuleLoadingResult};
pub use overlap::{Overlap, OverlapOfGpu, OverlapParams, Overlaps};
pub(crate) use profiler::{ProfilerHtaAnalysis, ProfilerKernelsAnalysis, ProfilerTimelineAnalysis};
pub use queue_length::{QueueLength, QueueLengthParams, QueueOfStream, Queues};
pub use ranks::Ranks;
pub use stragglers::{ClockAlignment, Stragglers, StragglersParams, StragglersResult};
pub use threads::{ThreadRow, Threads, ThreadsParams, ThreadsResult};
pub use utilization::{Utilization, UtilizationOverTime, UtilizationParams};
