//! What a kernel profiler says of a launch beside its metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approximate;

/// A message of one of the profiler's own rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleResult {
    /// The rule as the profiler knows it, e.g. `SOLBottleneck`.
    pub rule: String,
    /// The rule as people read it.
    pub name: String,
    /// The section of the report that it stands in, e.g. `SpeedOfLight`.
    pub section: String,
    /// How much it matters.
    pub kind: RuleKind,
    /// The message's heading; may be empty.
    pub title: String,
    /// The message, in the profiler's words.
    pub text: String,
    /// What following it is estimated to be worth.
    pub speedup: Option<Speedup>,
    /// The metrics that it was made from.
    pub metrics: Vec<FocusMetric>,
}

/// How much a rule's message matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// It says something that is as it should be, or that explains.
    #[default]
    Information,
    /// It says how the kernel could be made faster.
    Optimization,
    /// It says that something is not as it should be.
    Warning,
    /// The rule could not be applied.
    Error,
}

/// An estimated speed-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speedup {
    /// How much, in percent.
    pub percent: f64,
    /// Of what.
    pub scope: Scope,
}

/// What an estimated speed-up is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The profiler does not say.
    #[default]
    Unknown,
    /// Of what the rule looks at, such as a unit of the multiprocessor.
    Local,
    /// Of the launch as a whole.
    Global,
}

/// A metric that a rule points at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FocusMetric {
    /// Name of the metric.
    pub name: String,
    /// Its value, where the profiler says it.
    pub value: Option<f64>,
    /// What should become of it, or what it was compared with.
    pub info: String,
}

/// Code that a launch ran, as far as it is text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelCode {
    /// Source text that the report holds; empty where it holds none.
    pub source: String,
    /// PTX; empty where the compiler left none.
    pub ptx: String,
    /// Bytes of machine code, which is not kept.
    pub machine_code_bytes: u64,
    /// Source files that the profiler read in.
    pub files: Vec<SourceFile>,
}

/// A source file as a report holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Path of the file, as tables of lines have it.
    pub path: String,
    /// What was in it.
    pub text: String,
}

/// An annotated range (NVTX) that was open at a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenRange {
    /// Its domain; empty for the default one.
    pub domain: String,
    /// Name of the range.
    pub name: String,
    /// The thread on whose stack it is; null for a range that no thread owns.
    pub thread: Option<u32>,
}

/// Values of a metric for parts of a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Instances {
    /// What each value is of: an address, an opcode. As many as there are values, or none where the
    /// profiler does not say it.
    pub keys: ValueList,
    /// The value of each part, in the order of `keys`.
    pub values: ValueList,
}

/// Values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueList {
    /// Counts, properties or addresses, exact.
    Integers(Vec<u64>),
    /// Numbers.
    Numbers(Vec<f64>),
    /// Words.
    Texts(Vec<String>),
}

impl Default for ValueList {
    fn default() -> Self {
        Self::Integers(Vec::new())
    }
}

impl ValueList {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(list) => list.len(),
            Self::Numbers(list) => list.len(),
            Self::Texts(list) => list.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a place as a number; `None` for texts, and behind the last.
    pub fn number(&self, at: usize) -> Option<f64> {
        match self {
            Self::Integers(list) => list.get(at).map(|value| approximate((*value).into())),
            Self::Numbers(list) => list.get(at).copied(),
            Self::Texts(_) => None,
        }
    }
}
