//! What `hlo-graph` gives.

use flopwatch_measures::hlo_program::HloProgramEntry;
use flopwatch_report::NotCaptured;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of the analysis `hlo-graph`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloGraph {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// The program; empty where there is none.
    pub program: String,
    /// Its number, in decimal digits.
    pub program_id: String,
    /// Whether it is the program after optimisation.
    pub is_optimised: bool,
    /// Number of instructions of the program.
    pub instructions: u64,
    /// Its computations, the one that runs first, then by their instructions.
    pub computations: Vec<HloComputation>,
    /// Computations behind the list's limit.
    pub computations_left_out: u64,
    /// Opcodes before and after optimisation.
    pub opcodes: Vec<HloOpcodeCount>,
    /// Fusions, those that save most memory traffic first.
    pub fusions: Vec<HloFusion>,
    /// Fusions behind the list's limit.
    pub fusions_left_out: u64,
    /// Instructions of the graph, operands before those that use them.
    pub nodes: Vec<HloNode>,
    /// Instructions behind the list's limit.
    pub nodes_left_out: u64,
    /// Which instruction's value another takes.
    pub edges: Vec<HloEdge>,
    /// The programs to choose from.
    pub programs: Vec<HloProgramEntry>,
}

/// A computation: a function of instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HloComputation {
    /// Name of the computation.
    pub name: String,
    /// What calls it.
    pub kind: HloGraphComputationKind,
    /// The instruction that calls it, the first where there are several; null of the computation
    /// that runs.
    pub called_by: Option<String>,
    /// The computation of that instruction.
    pub caller: Option<String>,
    /// How many calls lie between it and the computation that runs; null where none leads to it.
    pub depth: Option<u32>,
    /// Number of instructions of the computation.
    pub instructions: u64,
}

/// What calls a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HloGraphComputationKind {
    /// Nothing: it is the program.
    Entry,
    /// A fusion: it becomes one kernel.
    Fusion,
    /// A loop, whose body or condition it is.
    Loop,
    /// A call, a branch, or the begin of something asynchronous.
    Call,
    /// An instruction that applies it to elements, such as a reduction.
    Applied,
    /// Nothing that was found.
    Unused,
}

/// How often an opcode occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HloOpcodeCount {
    /// The opcode.
    pub opcode: String,
    /// Instructions before optimisation; null where no capture holds that program.
    pub before: Option<u64>,
    /// Instructions after optimisation, inside fusions included; null where no capture holds that
    /// program.
    pub after: Option<u64>,
    /// Those of them that are inside fusions.
    pub in_fusions: Option<u64>,
}

/// A fusion: instructions that become one kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloFusion {
    /// Name of the fusion.
    pub name: String,
    /// How it is compiled: `kLoop`, `kInput`, `kOutput`, `kCustom`.
    pub kind: String,
    /// Instructions inside it, without parameters and constants.
    pub instructions: u64,
    /// Their opcodes with how often each occurs, the most frequent first: `multiply 3, add 2`.
    pub holds: String,
    /// Shape of its value.
    pub shape: String,
    /// Floating-point operations of one run.
    pub flops: u64,
    /// Bytes that it reads and writes in one run.
    pub bytes: u64,
    /// Bytes that its instructions would read and write one by one, without those.
    pub saved_bytes: u64,
    /// Operation of the framework; may be empty.
    pub framework_op: String,
    /// Line of source, `file:line`; null where it is not known.
    pub source: Option<String>,
}

/// An instruction of the graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloNode {
    /// Its name, unique in the program.
    pub name: String,
    /// Opcode of the instruction.
    pub opcode: String,
    /// Shape of its value.
    pub shape: String,
    /// Computation of the instruction.
    pub computation: String,
    /// Whether its computation gives its value.
    pub is_root: bool,
    /// Floating-point operations of one run, with all that it calls.
    pub flops: u64,
    /// Bytes that it reads and writes in one run.
    pub bytes: u64,
    /// Operation of the framework; may be empty.
    pub framework_op: String,
    /// Line of source, `file:line`; null where it is not known.
    pub source: Option<String>,
    /// Steps from the instruction that was asked for; null of a whole program.
    pub distance: Option<u32>,
}

/// A value that an instruction takes, or a computation that it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct HloEdge {
    /// Where it comes from: a place in `nodes`.
    pub from: u32,
    /// Where it goes: a place in `nodes`.
    pub to: u32,
    /// Whether the edge is an operand or a call.
    pub kind: HloEdgeKind,
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HloEdgeKind {
    /// `to` takes the value of `from`.
    Operand,
    /// `to` calls the computation whose value is that of `from`.
    Called,
}
