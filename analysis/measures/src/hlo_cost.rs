//! Work of compiled programs (HLO) as their instructions state it: floating-point operations, and
//! bytes that go to and from memory.
//!
//! The definitions are those of XLA's `HloCostAnalysis`, which stands behind
//! `compiled.cost_analysis()` of JAX, but for these:
//! - a loop counts as often as it runs, where the compiler knows that (`known_trip_count`); XLA
//!   counts its body once;
//! - operations on integers, comparisons of them and conversions to them are apart; XLA counts them
//!   as floating-point ones;
//! - products and convolutions of libraries (`__cublas$gemm`, `__cudnn$convForward`, ...) are
//!   counted like those of the language; XLA has -1 for them on processors, and its own count on
//!   GPUs;
//! - a tuple's table of pointers is no memory traffic, and the arrays of a tuple are.

mod convolution;
mod custom_call;
mod traffic;
mod xla;

use std::collections::HashMap;

use flopwatch_model::hlo::{Instruction, InstructionLocation, Module};

/// Work of an instruction, of a computation, or of a module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HloCost {
    /// Floating-point operations; a multiplication and an addition are two. Transcendental
    /// functions are not among them.
    pub flops: u64,
    /// Operations on integers and truth values, one per element.
    pub integer_operations: u64,
    /// Transcendental functions (`exponential`, `tanh`, `sqrt`, ...), one per element.
    pub transcendentals: u64,
    /// Bytes read and written: operands and results of whatever is not inside a fusion.
    pub bytes: u64,
    /// Instructions whose operations are not known, such as a library's function; their bytes are.
    pub unknown: u64,
}

impl HloCost {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            flops: self.flops.saturating_add(other.flops),
            integer_operations: self.integer_operations.saturating_add(other.integer_operations),
            transcendentals: self.transcendentals.saturating_add(other.transcendentals),
            bytes: self.bytes.saturating_add(other.bytes),
            unknown: self.unknown.saturating_add(other.unknown),
        }
    }

    /// So many times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self {
            flops: self.flops.saturating_mul(count),
            integer_operations: self.integer_operations.saturating_mul(count),
            transcendentals: self.transcendentals.saturating_mul(count),
            bytes: self.bytes.saturating_mul(count),
            // An instruction that runs again is no other one.
            unknown: self.unknown,
        }
    }

    /// The larger of each.
    fn largest(self, other: Self) -> Self {
        Self {
            flops: self.flops.max(other.flops),
            integer_operations: self.integer_operations.max(other.integer_operations),
            transcendentals: self.transcendentals.max(other.transcendentals),
            bytes: self.bytes.max(other.bytes),
            unknown: self.unknown.max(other.unknown),
        }
    }

    fn unknown() -> Self {
        Self {
            unknown: 1,
            ..Self::default()
        }
    }

    /// The floating-point operations; `None` where some are not known.
    pub fn known_flops(self) -> Option<u64> {
        (self.unknown == 0).then_some(self.flops)
    }

    /// What XLA's own analysis calls flops.
    pub fn xla_flops(self) -> u64 {
        self.flops.saturating_add(self.integer_operations)
    }
}

/// Bytes of a run of the module as `compiled.cost_analysis()` counts them (`bytes accessed`).
pub fn cost_analysis_bytes(module: &Module) -> u64 {
    xla::bytes(module)
}

/// How often the body of a loop counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loops {
    /// As often as it runs, where the compiler knows that; otherwise once.
    AsTheyRun,
    /// Once, as XLA's own analysis has it.
    Once,
}

/// Work of every instruction of a module.
#[derive(Debug, Clone, Default)]
pub struct HloCosts {
    instructions: HashMap<InstructionLocation, HloCost>,
    computations: Vec<HloCost>,
    /// Work of the computation that runs.
    pub module: HloCost,
    /// Loops whose number of runs is not known, each counted once.
    pub unknown_loops: u64,
}

impl HloCosts {
    /// Of a module.
    pub fn of(module: &Module, loops: Loops) -> Self {
        let mut costs = Self::default();
        // Computations stand behind those that they call, so that one pass finds all. A call of a
        // later one is not believed.
        for (computation, of) in module.computations.iter().enumerate() {
            let mut sum = HloCost::default();
            for (at, instruction) in of.instructions.iter().enumerate() {
                let cost = costs.instruction(module, instruction, loops);
                sum = sum.plus(cost);
                costs.instructions.insert(InstructionLocation { computation, at }, cost);
            }
            costs.computations.push(sum);
        }
        costs.module = module
            .entry
            .map_or_else(HloCost::default, |entry| costs.computation(entry));
        costs
    }

    /// Work of an instruction, with all that it calls.
    pub fn at(&self, location: InstructionLocation) -> HloCost {
        self.instructions.get(&location).copied().unwrap_or_default()
    }

    fn computation(&self, location: usize) -> HloCost {
        self.computations.get(location).copied().unwrap_or_default()
    }

    /// Work of the computation that an instruction calls at a place of its list.
    fn called(&self, module: &Module, instruction: &Instruction, at: usize) -> HloCost {
        let called = instruction.called.get(at).and_then(|id| module.computation_number(*id));
        called.map_or_else(HloCost::default, |location| self.computation(location))
    }

    fn instruction(&mut self, module: &Module, of: &Instruction, loops: Loops) -> HloCost {
        let called = |at| self.called(module, of, at);
        let sum_of_called = || (0..of.called.len()).map(called).fold(HloCost::default(), HloCost::plus);
        match of.opcode.as_str() {
            "call" | "async-start" => return sum_of_called(),
            "conditional" => {
                return (0..of.called.len())
                    .map(called)
                    .fold(HloCost::default(), HloCost::largest);
            }
            "while" => {
                let cost = sum_of_called();
                let known = trip_count(&of.backend_config);
                self.unknown_loops += u64::from(known.is_none());
                return match loops {
                    Loops::AsTheyRun => cost.times(known.unwrap_or(1)),
                    Loops::Once => cost,
                };
            }
            _ => {}
        }
        let mut cost = match of.opcode.as_str() {
            "fusion" => sum_of_called(),
            _ => operations(module, of, called),
        };
        cost.bytes = traffic::bytes(module, of);
        cost
    }
}

/// How often a loop runs, where the compiler knows it: `{"known_trip_count":{"n":"10"}}`.
fn trip_count(config: &str) -> Option<u64> {
    let config: serde_json::Value = serde_json::from_str(config).ok()?;
    config.pointer("/known_trip_count/n")?.as_str()?.parse().ok()
}

/// Operations of an instruction that is no call of the program's own computations. `called` gives
/// the work of a computation that is applied to elements.
fn operations(module: &Module, of: &Instruction, called: impl Fn(usize) -> HloCost) -> HloCost {
    let elements = of.shape.elements();
    let operand = |at: usize| of.operands.get(at).and_then(|id| module.instruction(*id));
    let operand_elements = |at: usize| operand(at).map_or(0, |operand| operand.shape.elements());
    let of_type = |is_float: bool, count: u64| HloCost {
        flops: if is_float { count } else { 0 },
        integer_operations: if is_float { 0 } else { count },
        ..HloCost::default()
    };
    let flops = |count: Option<u64>| count.map_or_else(HloCost::unknown, |count| of_type(true, count));
    let applied = |at: usize, count: u64| HloCost { bytes: 0, ..called(at) }.times(count);
    let window = of.window.iter().map(|dimension| dimension.size);
    let window = window.fold(1, u64::saturating_mul);
    let result = of.shape.first_array().map_or(0, flopwatch_model::hlo::Shape::elements);
    match of.opcode.as_str() {
        opcode if TRANSCENDENTAL.contains(&opcode) => HloCost {
            transcendentals: elements,
            ..HloCost::default()
        },
        opcode if ELEMENTWISE.contains(&opcode) => of_type(of.shape.element.is_float(), elements),
        // Of truth values, made of what is compared.
        "compare" | "is-finite" => of_type(
            operand(0).is_some_and(|operand| operand.shape.element.is_float()),
            elements,
        ),
        "dot" | "ragged-dot" => flops(operand(0).and_then(|left| product(&of.contracting, left, result))),
        "convolution" => flops(convolution::forward(of, operand(0), operand(1))),
        "custom-call" => flops(custom_call::flops(of, operand(0), operand(1))),
        "reduce" => applied(0, operand_elements(0).saturating_sub(result)),
        "reduce-window" => applied(0, window.saturating_sub(1).saturating_mul(result)),
        "select-and-scatter" => {
            let source = operand_elements(1);
            let selects = source.saturating_mul(window.saturating_sub(1));
            applied(0, selects).plus(applied(1, source))
        }
        "map" => applied(0, elements),
        "scatter" => {
            // Operands, indices, updates: as many updates as operands.
            let updates = of.operands.len().saturating_sub(1) / 2;
            applied(0, operand_elements(updates + 1))
        }
        "sort" => {
            let count = operand_elements(0);
            let levels = u64::from(count.max(1).next_power_of_two().trailing_zeros());
            of_type(
                operand(0).is_some_and(|operand| operand.shape.element.is_float()),
                count.saturating_mul(levels),
            )
        }
        "fft" => {
            let levels = of.fft_length.iter().map(|length| u64::from(length.max(&1).ilog2()));
            flops(Some(
                levels.fold(operand_elements(0), u64::saturating_mul).saturating_mul(8),
            ))
        }
        "triangular-solve" => flops(operand(0).map(|matrix| {
            let order = matrix.shape.dimensions.last().copied().unwrap_or(0);
            operand_elements(1).saturating_mul(order).saturating_mul(2)
        })),
        "cholesky" => flops(operand(0).map(|matrix| {
            let order = matrix.shape.dimensions.last().copied().unwrap_or(0);
            matrix.shape.elements().saturating_mul(order) / 3
        })),
        "rng" | "rng-bit-generator" => HloCost {
            transcendentals: arrays(&of.shape),
            ..HloCost::default()
        },
        // Of two ranks, as XLA has it: how many there are is not always in the program.
        "all-reduce" | "all-reduce-start" => {
            let is_float = of.shape.first_array().is_some_and(|shape| shape.element.is_float());
            of_type(is_float, arrays(&of.shape))
        }
        _ => HloCost::default(),
    }
}

/// Elements of all arrays of a shape.
fn arrays(shape: &flopwatch_model::hlo::Shape) -> u64 {
    let parts = shape.tuple.iter().map(arrays);
    parts.fold(shape.elements(), u64::saturating_add)
}

/// Operations of a product with `result` elements that sums over dimensions of `left`.
fn product(contracting: &[u64], left: &Instruction, result: u64) -> Option<u64> {
    let lengths = contracting.iter().map(|at| {
        let at = usize::try_from(*at).ok()?;
        left.shape.dimensions.get(at).copied()
    });
    let width = lengths.collect::<Option<Vec<u64>>>()?;
    let width = width.into_iter().fold(1, u64::saturating_mul);
    Some(result.saturating_mul(width).saturating_mul(2))
}

/// Opcodes of functions that take many operations per element.
const TRANSCENDENTAL: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "cbrt",
    "cosh",
    "cosine",
    "erf",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "power",
    "rsqrt",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];

/// Opcodes of one operation per element.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "add",
    "and",
    "bitcast-convert",
    "ceil",
    "clamp",
    "clz",
    "complex",
    "convert",
    "count-leading-zeros",
    "divide",
    "floor",
    "imag",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "real",
    "reduce-precision",
    "remainder",
    "round-nearest-afz",
    "round-nearest-even",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "stochastic-convert",
    "subtract",
    "xor",
];

#[cfg(test)]
mod tests;
