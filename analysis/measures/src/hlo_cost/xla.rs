//! Bytes as XLA's own analysis counts them: `bytes accessed` of `compiled.cost_analysis()` in JAX.
//!
//! It differs from [`super::traffic`] in these: a tuple is its table of pointers, of 8 bytes each,
//! not the arrays behind them; a gather in a fusion reads all that it takes from; a library's
//! function is -1 byte. The rules are those of `HloCostAnalysis`; that the results of a sort count
//! as arrays is what JAX 0.10.2 says of one.

use flopwatch_model::hlo::{Computation, Instruction, Module, Shape};

use super::traffic::{self, Users};

/// Bytes of a pointer in a tuple's table.
const POINTER_BYTES: i64 = 8;

/// Fusions inside fusions that are followed.
const MAX_FUSION_DEPTH: u32 = 8;

/// Bytes of a run of the module, loops once. 0 where the analysis has less.
pub(super) fn bytes(module: &Module) -> u64 {
    let mut sums: Vec<i64> = Vec::with_capacity(module.computations.len());
    for computation in &module.computations {
        let of_each = computation.instructions.iter().map(|of| {
            let called = |id: &u64| module.computation_number(*id).and_then(|at| sums.get(at)).copied();
            instruction(module, of, called)
        });
        let sum = of_each.fold(0, i64::saturating_add);
        sums.push(sum);
    }
    let entry = module.entry.and_then(|entry| sums.get(entry));
    entry.map_or(0, |sum| u64::try_from(*sum).unwrap_or(0))
}

fn whole(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Bytes of a value: of a tuple those of its table.
fn size(shape: &Shape) -> i64 {
    if shape.is_tuple() {
        whole(flopwatch_model::count(shape.tuple.len())).saturating_mul(POINTER_BYTES)
    } else {
        whole(shape.bytes())
    }
}

/// `called` gives the bytes of a computation by its number.
fn instruction(module: &Module, of: &Instruction, called: impl Fn(&u64) -> Option<i64>) -> i64 {
    let operand = |at: usize| of.operands.get(at).and_then(|id| module.instruction(*id));
    let read = |at: usize| operand(at).map_or(0, |operand| size(&operand.shape));
    let sum = |begin: usize, end: usize| (begin..end).map(read).fold(0, i64::saturating_add);
    let result = size(&of.shape);
    match of.opcode.as_str() {
        // These touch no memory here. Whatever waits for another instruction does touch it.
        "add-dependency" | "after-all" | "bitcast" | "constant" | "domain" | "get-tuple-element" | "parameter" => 0,
        "custom-call" => -1,
        "tuple" => result,
        "call" | "async-start" => of.called.first().and_then(called).unwrap_or(0),
        "while" => of.called.iter().filter_map(called).fold(0, i64::saturating_add),
        "conditional" => of.called.iter().filter_map(called).max().unwrap_or(0),
        "fusion" => fusion(module, of).unwrap_or(0),
        "slice" => result.saturating_mul(2),
        "dynamic-slice" | "gather" => result.saturating_mul(2).saturating_add(read(1)),
        "dynamic-update-slice" => read(1).saturating_mul(2).saturating_add(read(2)),
        "scatter" => {
            let count = of.operands.len().saturating_sub(1) / 2;
            let updates = sum(count + 1, count + 1 + count);
            updates.saturating_mul(3).saturating_add(read(count))
        }
        "triangular-solve" => result.saturating_add(read(0) / 2).saturating_add(read(1)),
        "cholesky" => read(0),
        "infeed" => whole(of.shape.bytes()),
        "outfeed" => {
            let arrays = (0..of.operands.len()).filter_map(operand);
            let arrays = arrays.map(|operand| whole(operand.shape.bytes()));
            arrays.fold(0, i64::saturating_add)
        }
        "all-reduce" | "all-reduce-start" | "sort" => whole(of.shape.bytes()).saturating_add(sum(0, of.operands.len())),
        _ => result.saturating_add(sum(0, of.operands.len())),
    }
}

/// What a fusion writes and reads. Tables of its tuples are not among it.
fn fusion(module: &Module, of: &Instruction) -> Option<i64> {
    let inside = module.computation(*of.called.first()?)?;
    let reads = Reads::of(module, inside);
    let mut bytes = whole(traffic::written(module, inside, of)?);
    for one in &inside.instructions {
        let read = match one.opcode.as_str() {
            "parameter" => reads.parameter(one),
            "constant" if one.shape.elements() > traffic::IMMEDIATE_ELEMENTS => size(&one.shape),
            _ => 0,
        };
        bytes = bytes.saturating_add(read);
    }
    Some(bytes)
}

/// What is read of values inside a fusion.
struct Reads<'a> {
    module: &'a Module,
    users: Users<'a>,
    depth: u32,
}

impl<'a> Reads<'a> {
    fn of(module: &'a Module, inside: &'a Computation) -> Self {
        Self {
            module,
            users: Users::of(inside),
            depth: 0,
        }
    }

    /// Of a tuple what is read of its parts.
    fn parameter(&self, parameter: &Instruction) -> i64 {
        if !parameter.shape.is_tuple() {
            return self.value(parameter);
        }
        let users = self.users.users(parameter.id).iter();
        let parts = users.filter(|(_, user)| user.opcode == "get-tuple-element");
        parts.map(|(_, part)| self.value(part)).fold(0, i64::saturating_add)
    }

    /// Slices read their part each, broadcasts and reshapes all of it each; all others share one
    /// read.
    fn value(&self, value: &Instruction) -> i64 {
        let mut once = Once { is_read: false };
        let users = self.users.users(value.id).iter();
        let bytes = users.map(|(_, user)| match user.opcode.as_str() {
            "fusion" => self.nested(value, user),
            "broadcast" | "reshape" => size(&value.shape),
            _ => once.by(user, value),
        });
        bytes.fold(0, i64::saturating_add)
    }

    /// Of what a fusion inside takes: where it hands the value on, what is sliced of its result.
    fn nested(&self, value: &Instruction, fusion: &Instruction) -> i64 {
        let inside = fusion.called.first().and_then(|id| self.module.computation(*id));
        let Some(inside) = inside.filter(|_| self.depth < MAX_FUSION_DEPTH) else {
            return size(&value.shape);
        };
        let reads = Reads {
            depth: self.depth + 1,
            ..Reads::of(self.module, inside)
        };
        let root = self.module.instruction(inside.root);
        let handed_on = root.and_then(|root| root.operands.first());
        let is_of = |one: &&Instruction| {
            let at = usize::try_from(one.parameter).unwrap_or(usize::MAX);
            one.opcode == "parameter" && fusion.operands.get(at) == Some(&value.id)
        };
        let mut bytes = 0_i64;
        for parameter in inside.instructions.iter().filter(is_of) {
            let is_simple = handed_on.is_none_or(|id| *id == parameter.id);
            let mut once = Once { is_read: false };
            for (_, user) in self.users.users(fusion.id) {
                let read = if is_simple && SLICES.contains(&user.opcode.as_str()) {
                    once.by(user, fusion)
                } else {
                    once.take(|| reads.value(parameter))
                };
                bytes = bytes.saturating_add(read);
            }
        }
        bytes
    }
}

/// Opcodes that take a part of their first operand.
const SLICES: [&str; 3] = ["dynamic-slice", "dynamic-update-slice", "slice"];

/// Whether a value was read whole already, which is done once.
struct Once {
    is_read: bool,
}

impl Once {
    fn take(&mut self, bytes: impl FnOnce() -> i64) -> i64 {
        if std::mem::replace(&mut self.is_read, true) {
            0
        } else {
            bytes()
        }
    }

    /// What `user` reads of `value`.
    fn by(&mut self, user: &Instruction, value: &Instruction) -> i64 {
        let is_first = user.operands.first() == Some(&value.id);
        match user.opcode.as_str() {
            "slice" => size(&user.shape),
            "dynamic-slice" if is_first => size(&user.shape),
            // Its memory is that of the result.
            "dynamic-update-slice" if is_first => 0,
            _ => self.take(|| size(&value.shape)),
        }
    }
}
