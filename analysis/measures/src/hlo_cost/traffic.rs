//! Bytes that instructions read and write.

use flopwatch_model::hlo::{Computation, Instruction, Module, Shape};

/// Elements of a constant inside a fusion that become part of its code.
pub(super) const IMMEDIATE_ELEMENTS: u64 = 8;

/// Fusions inside fusions that are followed.
const MAX_FUSION_DEPTH: u32 = 8;

/// Opcodes that touch no memory: they name values that are there, or wait for what another
/// instruction does.
const NOTHING: &[&str] = &[
    "add-dependency",
    "after-all",
    "all-gather-done",
    "all-reduce-done",
    "async-done",
    "async-update",
    "bitcast",
    "collective-permute-done",
    "constant",
    "copy-done",
    "domain",
    "get-tuple-element",
    "opt-barrier",
    "parameter",
    "partition-id",
    "recv-done",
    "replica-id",
    "send-done",
    "tuple",
];

/// Bytes of an instruction that calls no computation but those that it applies to elements, and
/// fusions.
pub(super) fn bytes(module: &Module, of: &Instruction) -> u64 {
    let operand = |at: usize| of.operands.get(at).and_then(|id| module.instruction(*id));
    let operand_bytes = |at: usize| operand(at).map_or(0, |operand| operand.shape.bytes());
    let result = of.shape.bytes();
    match of.opcode.as_str() {
        opcode if NOTHING.contains(&opcode) => 0,
        "fusion" => fusion(module, of).unwrap_or(0),
        "slice" => result.saturating_mul(2),
        "dynamic-slice" | "gather" => result.saturating_mul(2).saturating_add(operand_bytes(1)),
        // Read and written in place.
        "dynamic-update-slice" => operand_bytes(1).saturating_mul(2).saturating_add(operand_bytes(2)),
        "scatter" => {
            let count = of.operands.len().saturating_sub(1) / 2;
            let updates = (0..count).map(|at| operand_bytes(count + 1 + at));
            let updates = updates.fold(0, u64::saturating_add);
            updates.saturating_mul(3).saturating_add(operand_bytes(count))
        }
        "triangular-solve" => result
            .saturating_add(operand_bytes(0) / 2)
            .saturating_add(operand_bytes(1)),
        "cholesky" | "outfeed" | "send" => operand_bytes(0),
        // Their values are the buffers before and after, and a context.
        "copy-start" | "all-gather-start" | "collective-permute-start" => {
            let moved = of.shape.tuple.get(1).map_or(0, Shape::bytes);
            moved.saturating_add(operand_bytes(0))
        }
        "infeed" => result,
        "recv" => of.shape.tuple.first().map_or(0, Shape::bytes),
        _ => {
            let operands = (0..of.operands.len()).map(operand_bytes);
            operands.fold(result, u64::saturating_add)
        }
    }
}

/// What a fusion reads of its operands, and what it writes. What is between its instructions stays
/// on the chip.
fn fusion(module: &Module, of: &Instruction) -> Option<u64> {
    let inside = module.computation(*of.called.first()?)?;
    let users = Users::of(inside);
    let mut bytes = written(module, inside, of)?;
    for instruction in &inside.instructions {
        let read = match instruction.opcode.as_str() {
            "parameter" => users.read(module, instruction, 0),
            "constant" if instruction.shape.elements() > IMMEDIATE_ELEMENTS => instruction.shape.bytes(),
            _ => 0,
        };
        bytes = bytes.saturating_add(read);
    }
    Some(bytes)
}

/// What a fusion writes: its value, but of an update in place the updated part alone.
pub(super) fn written(module: &Module, inside: &Computation, of: &Instruction) -> Option<u64> {
    let root = module.instruction(inside.root)?;
    let update = |value: &Instruction| {
        let updates = value.opcode == "dynamic-update-slice";
        let part = updates.then(|| module.instruction(*value.operands.get(1)?)).flatten();
        part.map_or(value.shape.bytes(), |part| part.shape.bytes())
    };
    if root.opcode != "tuple" {
        return Some(if root.opcode == "dynamic-update-slice" {
            update(root)
        } else {
            of.shape.bytes()
        });
    }
    let parts = root.operands.iter().filter_map(|id| module.instruction(*id));
    Some(parts.map(update).fold(0, u64::saturating_add))
}

/// Which instructions of a computation use which.
pub(super) struct Users<'a> {
    /// Number of the used one, and the user, sorted.
    pairs: Vec<(u64, &'a Instruction)>,
}

impl<'a> Users<'a> {
    pub(super) fn of(computation: &'a Computation) -> Self {
        let mut pairs: Vec<(u64, &Instruction)> = Vec::new();
        for user in &computation.instructions {
            // One that uses another twice is one user.
            let mut operands = user.operands.clone();
            operands.sort_unstable();
            operands.dedup();
            pairs.extend(operands.into_iter().map(|operand| (operand, user)));
        }
        pairs.sort_by_key(|(used, _)| *used);
        Self { pairs }
    }

    /// The users of the value of that number.
    pub(super) fn users(&self, of: u64) -> &[(u64, &'a Instruction)] {
        let begin = self.pairs.partition_point(|(used, _)| *used < of);
        let end = self.pairs.partition_point(|(used, _)| *used <= of);
        self.pairs.get(begin..end).unwrap_or_default()
    }

    /// Bytes that are read of a parameter: what slices take of it, and otherwise all of it, once.
    fn read(&self, module: &Module, parameter: &Instruction, depth: u32) -> u64 {
        let whole = parameter.shape.bytes();
        let mut bytes = 0_u64;
        let mut is_read_whole = false;
        for (_, user) in self.users(parameter.id) {
            let is_first = user.operands.first() == Some(&parameter.id);
            match user.opcode.as_str() {
                "slice" => bytes = bytes.saturating_add(user.shape.bytes()),
                "dynamic-slice" | "gather" if is_first => bytes = bytes.saturating_add(user.shape.bytes()),
                // Its memory is that of the result.
                "dynamic-update-slice" if is_first => {}
                "fusion" if depth < MAX_FUSION_DEPTH => {
                    let inner = user.called.first().and_then(|id| module.computation(*id));
                    let read = inner.map_or(whole, |inner| {
                        let inside = Users::of(inner);
                        let parameters = inner.instructions.iter().filter(|one| {
                            let at = usize::try_from(one.parameter).unwrap_or(usize::MAX);
                            one.opcode == "parameter" && user.operands.get(at) == Some(&parameter.id)
                        });
                        parameters
                            .map(|one| inside.read(module, one, depth + 1))
                            .fold(0, u64::saturating_add)
                    });
                    bytes = bytes.saturating_add(read);
                }
                _ => is_read_whole = true,
            }
        }
        let rest = if is_read_whole { whole } else { 0 };
        // A part may be read twice from memory only where it left the chip; more than all of it is
        // not counted.
        bytes.saturating_add(rest).min(whole.max(rest))
    }
}
