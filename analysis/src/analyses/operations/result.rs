//! What the analysis gives.

use flopwatch_model::RowId;
use flopwatch_report::NotCaptured;
use schemars::JsonSchema;
use serde::Serialize;

use super::{OperationBottleneck, OperationKind};

/// The operations of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Operations {
    /// What they are made of.
    pub kind: OperationKind,
    /// Calls of each kind that the capture holds.
    pub kinds: Vec<OperationKindCalls>,
    /// Calls of all operations.
    pub calls: u64,
    /// Distinct operations, in the result or not.
    pub distinct: u64,
    /// Time in ns inside any operation: of all own times the sum, so that what is inside several
    /// counts once per thread.
    pub self_ns: u64,
    /// Sum in ns of the lengths of all calls; what is inside several counts in each.
    pub total_ns: u64,
    /// Mean length in ns of a call; null without any.
    pub avg_ns: Option<f64>,
    /// How much of the GPU work the operations account for; null of operations that are GPU work
    /// themselves, and of profiles.
    pub gpu_work: Option<OperationCoverage>,
    /// What has no figures.
    pub not_captured: Vec<NotCaptured>,
    /// The operations that cost most.
    pub bottlenecks: Vec<OperationBottleneck>,
    /// The operations, the longest own time first.
    pub operations: Vec<Operation>,
    /// Operations that were left out behind these.
    pub operations_left_out: u64,
    /// The first calls.
    pub first_calls: Vec<OperationCall>,
    /// Device memory over time; empty where it was not captured.
    pub memory: Vec<OperationMemory>,
}

/// How many calls of a kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationKindCalls {
    /// What the operations are.
    pub kind: OperationKind,
    /// Number of calls of the kind.
    pub calls: u64,
}

/// How much of the GPU work was launched inside of operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationCoverage {
    /// Kernels, copies and memsets.
    pub pieces: u64,
    /// Those that an operation launched.
    pub inside: u64,
    /// Those that were launched outside of all operations.
    pub outside: u64,
    /// Those whose launch is not in the capture.
    pub without_launch: u64,
}

/// One operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Operation {
    /// Name of the operation.
    pub operation: String,
    /// How often it was called.
    pub calls: u64,
    /// Calls inside of a call of the same operation. Their time is in `total_ns` twice.
    pub recursive_calls: u64,
    /// Sum in ns of the lengths of its calls.
    pub total_ns: u64,
    /// Its own time in ns: its calls without the operations directly inside them.
    pub self_ns: u64,
    /// Its share of the own time of all operations.
    pub self_ratio: f64,
    /// Mean length in ns of a call.
    pub avg_ns: f64,
    /// Median length in ns of a call; null of a profile that holds sums alone.
    pub median_ns: Option<f64>,
    /// Length in ns of its shortest call.
    pub min_ns: u64,
    /// Length in ns of its longest call.
    pub max_ns: u64,
    /// Sample standard deviation (n - 1) of the lengths in ns; 0 of one call.
    pub std_dev_ns: f64,
    /// Time in ns of the kernels, memsets and copies within a device that its calls launched: of
    /// each call the length of their union, summed.
    pub gpu_ns: Option<u64>,
    /// Time in ns of those that it launched itself and not an operation inside it: the length of
    /// their union.
    pub self_gpu_ns: Option<u64>,
    /// Time in ns of the copies from, to and between devices that its calls launched, as `gpu_ns`.
    pub transfer_ns: Option<u64>,
    /// Time in ns on the host outside of the CUDA API. `cpu_ns` + `overhead_ns` + `wait_ns` =
    /// `total_ns`.
    pub cpu_ns: Option<u64>,
    /// Time in ns inside of the CUDA API that is no waiting: launches, allocations, synchronisation
    /// without work to wait for.
    pub overhead_ns: Option<u64>,
    /// Time in ns inside of synchronising and copying calls of the CUDA API while GPU work of the
    /// process ran.
    pub wait_ns: Option<u64>,
    /// Kernels, memsets and copies within a device that its calls launched.
    pub gpu_pieces: Option<u64>,
    /// Copies from, to and between devices that its calls launched.
    pub transfers: Option<u64>,
    /// Bytes of those copies; null where one does not say them.
    pub transferred_bytes: Option<u64>,
    /// Bytes of device memory that were given out to the process while its calls ran, by whichever
    /// thread.
    pub allocated_bytes: Option<u64>,
    /// Most bytes of device memory that the process had in use while one of its calls ran.
    pub peak_bytes: Option<u64>,
    /// Its longest call: start in ns.
    pub longest_start_ns: u64,
    /// Its longest call: end in ns.
    pub longest_end_ns: u64,
    /// The timeline's row of that call; null where the operations are of no timeline.
    pub longest_row: Option<RowId>,
    /// The names as captured with most calls.
    pub names: Vec<OperationName>,
    /// Distinct names that were left out behind these.
    pub names_left_out: u64,
}

/// A name as captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationName {
    /// The whole name, with what normalising leaves out.
    pub name: String,
    /// Calls of this name.
    pub calls: u64,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationCall {
    /// The operation.
    pub operation: String,
    /// The name as captured.
    pub name: String,
    /// Start in ns since the session's start.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// The timeline's row; null of a profile.
    pub row: Option<RowId>,
    /// Time in ns of the GPU work that it launched, as of the operation.
    pub gpu_ns: Option<u64>,
    /// Time in ns of the transfers that it launched.
    pub transfer_ns: Option<u64>,
    /// Time in ns on the host outside of the CUDA API.
    pub cpu_ns: Option<u64>,
    /// Time in ns inside of the CUDA API that is no waiting.
    pub overhead_ns: Option<u64>,
}

/// Device memory at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationMemory {
    /// When, in ns since the session's start.
    pub t_ns: u64,
    /// Bytes in use.
    pub allocated_bytes: u64,
    /// The most bytes in use up to then; of a profile the peak that its entry says.
    pub peak_bytes: u64,
}
