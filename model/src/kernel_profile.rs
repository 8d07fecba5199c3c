//! What a kernel profiler (Nsight Compute) measured of one launch: counters without a time of their
//! own.

mod details;
mod function;
mod roofline;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::approximate;
pub use details::{
    FocusMetric, Instances, KernelCode, OpenRange, RuleKind, RuleResult, Scope, SourceFile, Speedup, ValueList,
};
pub use function::{InstructionText, KernelFunction, LineStart, PtxStart, SourceLocation};
pub use roofline::{RooflineChart, RooflineSide, RooflineValue};

/// Counters of one profiled launch. It is no event: a kernel profiler replays launches one by one,
/// so that there is no start.
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
    /// Metrics that have a value per instruction, opcode or the like beside the one of the launch.
    pub instances: BTreeMap<String, Instances>,
    /// What the profiler's own rules say of it, in the profiler's words and order.
    pub rules: Vec<RuleResult>,
    /// Annotated ranges that were open when it was launched, per thread from the outermost to the
    /// innermost.
    pub ranges: Vec<OpenRange>,
    /// The profiler's names of the groups of metrics that were collected, e.g. `SpeedOfLight`, in
    /// its order.
    pub sections: Vec<String>,
    /// Roofline charts that those sections define.
    pub rooflines: Vec<RooflineChart>,
    /// The code that it ran, which many launches have in common.
    pub code: Option<Arc<KernelCode>>,
    /// The function of that code, which launches of one kernel have in common.
    pub function: Option<Arc<KernelFunction>>,
}

/// A measured or derived figure of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The figure, in `unit`.
    pub value: MetricValue,
    /// Its unit as the profiler spells it, e.g. `%`, `byte/s`, `ns`; empty for plain numbers.
    pub unit: String,
}

/// What a kernel profiler says of a launch, exactly as it says it.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    /// A measured or computed number, finite.
    Number(f64),
    /// A count or a property, exact beyond the whole numbers of a double.
    Integer(u64),
    /// A word, such as the device's name.
    Text(String),
}

impl MetricValue {
    /// As a number, integers rounded to the nearest double; `None` for a text.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Integer(number) => Some(approximate((*number).into())),
            Self::Text(_) => None,
        }
    }
}

impl From<f64> for MetricValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}
