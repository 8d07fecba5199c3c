//! The analyses, a file or a folder each.

pub mod advice;
pub mod allocations;
pub mod collectives;
pub mod compare;
pub mod cpu_gpu;
pub mod critical_path;
pub mod events;
pub mod gpu_time;
pub mod host_sync;
pub mod idle;
pub mod iterations;
pub mod kernel_changes;
pub mod kernel_types;
pub mod kernels_per_stream;
pub mod launch_patterns;
pub mod launches;
pub mod module_loading;
pub mod nsys_stats;
pub mod operations;
pub mod overlap;
pub mod profiler;
pub mod queue_length;
pub mod ranks;
pub mod stragglers;
pub mod threads;
pub mod utilization;
