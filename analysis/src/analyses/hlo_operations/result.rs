//! What `hlo-operations` gives.

use flopwatch_report::NotCaptured;
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of the analysis `hlo-operations`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloOperations {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Operations whose time was measured, in all.
    pub operations: u64,
    /// Time in ns of all operations by themselves, asynchronous ones apart.
    pub self_ns: u64,
    /// Time in ns of GPU work that belongs to no operation: copies to and from the host, and what
    /// the runtime adds.
    pub other_ns: u64,
    /// Pieces of such work.
    pub other_events: u64,
    /// The operations, those that take longest by themselves first.
    pub rows: Vec<HloOperation>,
    /// Operations behind the list's limit.
    pub operations_left_out: u64,
    /// Kernels, copies and memsets of the operations, the longest first; empty of a device without
    /// kernels.
    pub kernels: Vec<HloKernel>,
    /// Kernels behind the list's limit.
    pub kernels_left_out: u64,
    /// The operations by their counted work, those with most FLOP first, where no operation's time
    /// was measured, as of a dump of XLA; empty otherwise. They are the instructions of the
    /// computation that each program runs, but those without work (parameters, constants, tuples).
    pub unmeasured: Vec<HloUnmeasuredOperation>,
    /// Operations behind the limit of that list.
    pub unmeasured_left_out: u64,
}

/// An operation of a compiled program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloOperation {
    /// Its name in the program.
    pub operation: String,
    /// Its program; may be empty.
    pub program: String,
    /// Number of the program, in decimal digits: it may be larger than a double holds.
    pub program_id: String,
    /// Opcode of its instruction; null where the capture does not hold the program.
    pub opcode: Option<String>,
    /// Kind of operation, e.g. `loop fusion`; may be empty.
    pub category: String,
    /// Shape of its value; null where the capture does not hold the program.
    pub shape: Option<String>,
    /// Operation of the framework, e.g. `jit(f)/dot_general`; may be empty.
    pub framework_op: String,
    /// Line of source, `file:line`; null where it is not known.
    pub source: Option<String>,
    /// Whether it runs beside the others, so that its time is theirs too.
    pub is_asynchronous: bool,
    /// How often it ran. An operation of several kernels ran as often as the rarest of those that
    /// take a tenth of its time or more.
    pub occurrences: u64,
    /// Its events: kernels, copies, or operations of the device.
    pub events: u64,
    /// Time in ns of all of them.
    pub total_ns: u64,
    /// Time in ns without that of operations inside it.
    pub self_ns: u64,
    /// `total_ns` of one occurrence.
    pub average_ns: Option<f64>,
    /// `self_ns` of that of all operations; null of an asynchronous one.
    pub self_ratio: Option<f64>,
    /// Floating-point operations of one occurrence; null where they are not known.
    pub flops: Option<u64>,
    /// Where `flops` come from.
    pub flops_source: Option<HloFigureSource>,
    /// Bytes that one occurrence reads and writes, from whatever memory; null where they are not
    /// known.
    pub bytes: Option<u64>,
    /// Where `bytes` come from.
    pub bytes_source: Option<HloFigureSource>,
    /// Floating-point operations per second; null of an operation that only begins or awaits work
    /// beside others (`copy-start`, `copy-done`), whose time is not that of the work.
    pub flops_per_second: Option<f64>,
    /// Bytes per second; null where `flops_per_second` is for that reason.
    pub bytes_per_second: Option<f64>,
    /// Arithmetic intensity: `flops` per byte.
    pub intensity: Option<f64>,
    /// What bounds it; null where the device's peaks are not known, and of an operation that only
    /// begins or awaits work beside others.
    pub bound: Option<HloBound>,
    /// Its longest event in the timeline.
    pub place: Option<TimelineLocation>,
}

/// An operation of a compiled program whose time was not measured. Its work is that of one run,
/// counted from the program; that of a loop or a call is the work of what it calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloUnmeasuredOperation {
    /// Its name in the program.
    pub operation: String,
    /// Its program.
    pub program: String,
    /// Number of the program, in decimal digits; `0` of a text, which has none.
    pub program_id: String,
    /// Opcode of its instruction.
    pub opcode: String,
    /// Kind of operation, e.g. `loop fusion`.
    pub category: String,
    /// Shape of its value.
    pub shape: String,
    /// Operation of the framework, e.g. `jit(f)/dot_general`; may be empty.
    pub framework_op: String,
    /// Line of source, `file:line`; null where it is not known.
    pub source: Option<String>,
    /// Floating-point operations; null where a function of a library does some that are not known.
    pub flops: Option<u64>,
    /// Bytes that it reads and writes, from whatever memory.
    pub bytes: u64,
    /// Arithmetic intensity: `flops` per byte.
    pub intensity: Option<f64>,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HloFigureSource {
    /// The profiler states it of each event.
    Profiler,
    /// Counted from the program's instructions.
    Program,
}

/// What bounds an operation on its device's roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HloBound {
    /// Its intensity is above the ridge: the device's arithmetic.
    Compute,
    /// Its intensity is below it: the device's memory.
    Memory,
}

/// A kernel of an operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloKernel {
    /// The kernel's name.
    pub kernel: String,
    /// The operation that it belongs to.
    pub operation: String,
    /// The operation's program; may be empty.
    pub program: String,
    /// Operation of the framework; may be empty.
    pub framework_op: String,
    /// Line of source, `file:line`; null where it is not known.
    pub source: Option<String>,
    /// Number of launches of the kernel.
    pub launches: u64,
    /// Time in ns of all of them.
    pub total_ns: u64,
    /// Time in ns of one.
    pub average_ns: Option<f64>,
}
