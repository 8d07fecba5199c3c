//! Operations of programs whose time was not measured, such as those of a dump of XLA, by their
//! work.

use std::cmp::Reverse;

use flopwatch_measures::hlo_cost::HloCost;
use flopwatch_measures::hlo_program::{HloProgram, HloPrograms};
use flopwatch_model::hlo::Instruction;
use flopwatch_model::ratio;

use super::category_of_instruction;
use super::result::HloUnmeasuredOperation;

/// An instruction that does work.
struct CountedInstruction<'a> {
    program: &'a HloProgram,
    instruction: &'a Instruction,
    cost: HloCost,
}

/// Up to `limit` operations of the programs whose name contains `name`, those of most work first,
/// and how many there are beside these.
pub(super) fn largest(programs: &HloPrograms, name: &str, limit: usize) -> (Vec<HloUnmeasuredOperation>, u64) {
    let chosen = programs.list.iter().filter(|program| program.name.contains(name));
    let mut all: Vec<CountedInstruction<'_>> = chosen.flat_map(counted).collect();
    let order = |one: &CountedInstruction<'_>| Reverse((one.cost.known_flops(), one.cost.bytes));
    all.sort_by(|a, b| (order(a), &a.instruction.name).cmp(&(order(b), &b.instruction.name)));
    let left_out = u64::try_from(all.len().saturating_sub(limit)).unwrap_or(u64::MAX);
    (all.iter().take(limit).map(operation).collect(), left_out)
}

/// The instructions of the computation that a program runs. One that calls others has their work
/// too, so these are not listed beside it; one without work (a parameter, a constant, a tuple) is
/// no operation.
fn counted(program: &HloProgram) -> impl Iterator<Item = CountedInstruction<'_>> {
    let entry = program.module.entry;
    let all = program.module.instructions();
    let own = all.filter(move |(location, _)| Some(location.computation) == entry);
    let with_work = own.map(move |(location, instruction)| CountedInstruction {
        program,
        instruction,
        cost: program.costs.at(location),
    });
    with_work.filter(|one| one.cost != HloCost::default())
}

fn operation(of: &CountedInstruction<'_>) -> HloUnmeasuredOperation {
    let (program, instruction) = (of.program, of.instruction);
    let flops = of.cost.known_flops();
    HloUnmeasuredOperation {
        operation: instruction.name.clone(),
        program: program.name.clone(),
        program_id: program.id.to_string(),
        opcode: instruction.opcode.clone(),
        category: category_of_instruction(instruction),
        shape: instruction.shape.to_string(),
        framework_op: instruction.op_name.trim_end_matches(':').to_owned(),
        source: program.source(instruction),
        flops,
        bytes: of.cost.bytes,
        intensity: flops.and_then(|flops| ratio(flops, of.cost.bytes)),
    }
}
