//! What a kernel profiler (Nsight Compute) measured of one launch: counters without a time of their own.

use std::collections::BTreeMap;

/// Counters of one profiled launch. It is no event: a kernel profiler replays launches one by one, so that there is no start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KernelProfile {
    /// Number of the launch in the report, as the profiler counts.
    pub id: u64,
    /// The kernel's name, demangled where the source has it.
    pub name: String,
    /// Process id; 0 where the source does not say.
    pub process: u32,
    /// Device ordinal.
    pub device: u32,
    /// CUDA context; 0 where the source does not say.
    pub context: u64,
    /// CUDA stream; 0 where the source does not say.
    pub stream: u64,
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Metrics by the profiler's own name, e.g. `sm__throughput.avg.pct_of_peak_sustained_elapsed`.
    pub metrics: BTreeMap<String, Metric>,
}

/// A measured or derived figure of a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metric {
    /// The figure, in `unit`.
    pub value: f64,
    /// Its unit as the profiler spells it, e.g. `%`, `byte/s`, `ns`; empty for plain numbers.
    pub unit: String,
}
