//! The catalogue of analyses: what can be made of one or more captures, under which name, with which parameters and result.
//!
//! An analysis is a type that implements [`Analysis`] in a file of `analyses/`, and a line in [`catalogue::CATALOGUE`]. From its
//! [`Definition`] come the command line, the paths and documents of the REST services, the types of the viewer, and the keys of kept
//! results. A [`Request`] is a definition with parameters that were checked.
//!
//! The crate reads [`model::Timeline`]s and writes to [`std::io::Write`]; it opens no file and starts no process. The feature
//! `export` adds the writers of formats for other programs; without it such requests can be named and are refused when run.

pub mod advice;
mod analyses;
pub mod api_call;
pub mod bins;
pub mod call_ranges;
pub mod catalogue;
pub mod collective;
pub mod counterpart;
pub mod coverage;
pub mod critical_path;
mod definition;
pub mod enclosing;
pub mod exclusive_time;
pub mod export;
mod format;
pub mod gpu;
mod group;
pub mod holder;
pub mod host_call;
mod input;
pub mod interval;
pub mod iteration;
pub mod kernel_class;
pub mod kernel_name;
pub mod launch;
mod listing;
mod needs;
mod not_captured;
pub mod operation_name;
pub mod os_call;
pub mod page;
mod parameters;
pub mod range_tree;
pub mod rank_match;
mod record;
mod request;
pub mod significance;
pub mod steady_state;
pub mod summary;
mod tabular;
#[cfg(test)]
#[allow(dead_code, reason = "analyses come one by one, and each uses what it needs")]
mod testing;
pub mod thread_activity;
pub mod typescript;
pub mod work;

pub use flopwatch_model as model;

pub use analyses::AdviceAnalysis;
pub use analyses::EventsAnalysis;
pub use analyses::nsys_stats;
pub use analyses::{AllocationCall, Allocations, AllocationsParams, AllocationsResult};
pub use analyses::{
    AssignedWork, IterationDetail, IterationKernel, IterationRow, IterationStatistics, Iterations, IterationsParams,
    IterationsResult, PipelineBubbles, Ranks, ranks,
};
pub use analyses::{ClassOfWork, KernelTypes, KernelTypesParams, NamedWork, TypesOfWork};
pub use analyses::{ClockAlignment, Stragglers, StragglersParams, StragglersResult};
pub use analyses::{CodeWork, ModuleLoading, ModuleLoadingParams, ModuleLoadingResult};
pub use analyses::{Collectives, CollectivesParams, CollectivesResult};
pub use analyses::{Compare, compare};
pub use analyses::{CpuGpu, CpuGpuParams, CpuGpuTime};
pub use analyses::{
    CriticalPath, CriticalPathParams, CriticalPathResult, PathName, PathSegment, PathShare, PathVerdict,
};
pub use analyses::{GapHolder, GapPart, Idle, IdleClass, IdleGap, IdleOfGpu, IdleOfStream, IdleParams, IdleTime};
pub use analyses::{GpuTime, GpuTimeParams, GpuTimes, TimeOfGpu};
pub use analyses::{HostSync, HostSyncParams, HostSyncResult, SyncHolder, SyncKind};
pub use analyses::{KernelChanges, KernelsPerStream};
pub use analyses::{LaunchFigures, Launches, LaunchesParams};
pub use analyses::{LaunchPattern, LaunchPatterns, LaunchPatternsParams, PatternsOfLaunches};
pub use analyses::{Overlap, OverlapOfGpu, OverlapParams, Overlaps};
pub use analyses::{QueueLength, QueueLengthParams, QueueOfStream, Queues};
pub use analyses::{ThreadRow, Threads, ThreadsParams, ThreadsResult};
pub use analyses::{Utilization, UtilizationOverTime, UtilizationParams};
pub use analyses::{operations, profiler};
pub use definition::{Analysis, AnalysisError, Definition, InputCount, NoParameters, Report, ResultType};
pub use format::Format;
pub use group::Group;
pub use input::{Input, Inputs, Totals};
pub use listing::Listing;
pub use needs::{Needs, Selection};
pub use not_captured::NotCaptured;
pub use page::Page;
pub use request::{Request, RequestError};
pub use tabular::{CellType, Column, Tabular};
