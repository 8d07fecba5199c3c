//! Instructions, computations and fusions of the graph.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use flopwatch_measures::hlo_program::HloProgram;
use flopwatch_model::hlo::{Instruction, InstructionLocation, Module};
use flopwatch_model::{count, index};
use flopwatch_report::NotCaptured;

use super::HloGraphParams;
use super::choice::ProgramChoice;
use super::result::{
    HloComputation, HloEdge, HloEdgeKind, HloFusion, HloGraph, HloGraphComputationKind, HloNode, HloOpcodeCount,
};

/// Opcodes of what a fusion holds, in its text.
const MAX_OPCODES: usize = 8;

pub(super) fn fill(found: &mut HloGraph, chosen: &ProgramChoice<'_>, params: &HloGraphParams) {
    let program = chosen.shown;
    let limit = index(params.limit);
    found.program.clone_from(&program.name);
    found.program_id = program.id.to_string();
    found.is_optimised = program.module.is_scheduled;
    found.instructions = count(program.module.instructions().count());
    found.computations = computations(&program.module);
    found.computations_left_out = count(found.computations.len().saturating_sub(limit));
    found.computations.truncate(limit);
    found.opcodes = opcodes(chosen);
    found.fusions = fusions(program);
    found.fusions_left_out = count(found.fusions.len().saturating_sub(limit));
    found.fusions.truncate(limit);
    let locations = if params.around.is_empty() {
        all(&program.module, params.inside)
    } else {
        let Some(center) = program.location(&params.around) else {
            let reason = format!("the program {} has no instruction of that name", program.name);
            found
                .not_captured
                .push(NotCaptured::new(params.around.as_str(), reason));
            return;
        };
        around(&program.module, center, params)
    };
    found.nodes_left_out = count(locations.len().saturating_sub(limit));
    let locations = locations.get(..limit).unwrap_or(&locations);
    found.nodes = locations
        .iter()
        .filter_map(|location| node(program, *location))
        .collect();
    found.edges = edges(&program.module, locations);
}

/// What calls each computation: the instruction, and its place.
fn callers(module: &Module) -> HashMap<usize, (InstructionLocation, &Instruction)> {
    let mut callers = HashMap::new();
    for (location, instruction) in module.instructions() {
        for called in instruction
            .called
            .iter()
            .filter_map(|id| module.computation_number(*id))
        {
            callers.entry(called).or_insert((location, instruction));
        }
    }
    callers
}

fn kind_of(opcode: &str) -> HloGraphComputationKind {
    match opcode {
        "fusion" => HloGraphComputationKind::Fusion,
        "while" => HloGraphComputationKind::Loop,
        "call" | "conditional" | "async-start" | "custom-call" => HloGraphComputationKind::Call,
        _ => HloGraphComputationKind::Applied,
    }
}

fn computations(module: &Module) -> Vec<HloComputation> {
    let callers = callers(module);
    // Callers stand behind those that they call, so that the depth of a caller is known first from
    // the end on.
    let mut depths: Vec<Option<u32>> = vec![None; module.computations.len()];
    for location in (0..module.computations.len()).rev() {
        let depth = if Some(location) == module.entry {
            Some(0)
        } else {
            let around = callers.get(&location).map(|(caller, _)| caller.computation);
            let depth = around
                .filter(|around| *around > location)
                .and_then(|around| *depths.get(around)?);
            depth.map(|depth| depth + 1)
        };
        if let Some(slot) = depths.get_mut(location) {
            *slot = depth;
        }
    }
    let mut found: Vec<HloComputation> = Vec::new();
    for ((location, computation), depth) in module.computations.iter().enumerate().zip(depths) {
        let caller = callers.get(&location);
        let is_entry = Some(location) == module.entry;
        let kind = match caller {
            _ if is_entry => HloGraphComputationKind::Entry,
            Some((_, instruction)) => kind_of(&instruction.opcode),
            None => HloGraphComputationKind::Unused,
        };
        let around = caller.and_then(|(caller, _)| module.computations.get(caller.computation));
        found.push(HloComputation {
            name: computation.name.clone(),
            kind,
            called_by: caller.map(|(_, instruction)| instruction.name.clone()),
            caller: around.map(|around| around.name.clone()),
            depth,
            instructions: count(computation.instructions.len()),
        });
    }
    found.sort_by_key(|one| {
        (
            one.kind != HloGraphComputationKind::Entry,
            std::cmp::Reverse(one.instructions),
        )
    });
    found
}

fn opcodes(chosen: &ProgramChoice<'_>) -> Vec<HloOpcodeCount> {
    let mut before: BTreeMap<&str, u64> = BTreeMap::new();
    // All, and those inside fusions.
    let mut after: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (_, instruction) in chosen.before.iter().flat_map(|program| program.module.instructions()) {
        *before.entry(&instruction.opcode).or_default() += 1;
    }
    if let Some(program) = chosen.after {
        let callers = callers(&program.module);
        for (location, instruction) in program.module.instructions() {
            let (all, fused) = after.entry(&instruction.opcode).or_default();
            *all += 1;
            let is_fused = callers
                .get(&location.computation)
                .is_some_and(|(_, caller)| caller.opcode == "fusion");
            *fused += u64::from(is_fused);
        }
    }
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let both = |opcode| after.get(opcode).copied().unwrap_or_default();
    let mut counts: Vec<HloOpcodeCount> = names
        .into_iter()
        .map(|opcode| HloOpcodeCount {
            opcode: opcode.to_owned(),
            before: chosen.before.map(|_| before.get(opcode).copied().unwrap_or(0)),
            after: chosen.after.map(|_| both(opcode).0),
            in_fusions: chosen.after.map(|_| both(opcode).1),
        })
        .collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.after.max(count.before)));
    counts
}

fn fusions(program: &HloProgram) -> Vec<HloFusion> {
    let module = &program.module;
    let mut fusions: Vec<HloFusion> = Vec::new();
    for (location, instruction) in module.instructions().filter(|(_, one)| one.opcode == "fusion") {
        let called = instruction.called.first().and_then(|id| module.computation_number(*id));
        let Some((computation, inside)) =
            called.and_then(|location| Some((location, module.computations.get(location)?)))
        else {
            continue;
        };
        let mut holds: BTreeMap<&str, u64> = BTreeMap::new();
        let mut alone = 0_u64;
        for (at, one) in inside.instructions.iter().enumerate() {
            alone = alone.saturating_add(program.costs.at(InstructionLocation { computation, at }).bytes);
            if !matches!(one.opcode.as_str(), "parameter" | "constant") {
                *holds.entry(&one.opcode).or_default() += 1;
            }
        }
        let cost = program.costs.at(location);
        fusions.push(HloFusion {
            name: instruction.name.clone(),
            kind: instruction.fusion_kind.clone(),
            instructions: holds.values().sum(),
            holds: listed(holds),
            shape: instruction.shape.to_string(),
            flops: cost.flops,
            bytes: cost.bytes,
            saved_bytes: alone.saturating_sub(cost.bytes),
            framework_op: instruction.op_name.clone(),
            source: program.source(instruction),
        });
    }
    fusions.sort_by(|a, b| (b.saved_bytes, b.bytes, &a.name).cmp(&(a.saved_bytes, a.bytes, &b.name)));
    fusions
}

fn listed(holds: BTreeMap<&str, u64>) -> String {
    let mut holds: Vec<(&str, u64)> = holds.into_iter().collect();
    holds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = holds.len().saturating_sub(MAX_OPCODES);
    let shown = holds.iter().take(MAX_OPCODES);
    let mut parts: Vec<String> = shown.map(|(opcode, count)| format!("{opcode} {count}")).collect();
    if more > 0 {
        parts.push(format!("{more} more opcodes"));
    }
    parts.join(", ")
}

/// Instructions of the whole program, with none of called computations unless `inside` asks for
/// them.
fn all(module: &Module, inside: bool) -> Vec<(InstructionLocation, Option<u32>)> {
    let shown = module
        .instructions()
        .filter(|(location, _)| inside || Some(location.computation) == module.entry);
    shown.map(|(location, _)| (location, None)).collect()
}

/// Instructions at most `distance` steps from one, over operands and users, and with `inside` over
/// calls too.
fn around(
    module: &Module,
    center: InstructionLocation,
    params: &HloGraphParams,
) -> Vec<(InstructionLocation, Option<u32>)> {
    let mut users: HashMap<InstructionLocation, Vec<InstructionLocation>> = HashMap::new();
    for (location, instruction) in module.instructions() {
        for used in neighbours(module, instruction, params.inside) {
            users.entry(used).or_default().push(location);
        }
    }
    let mut steps: HashMap<InstructionLocation, u32> = HashMap::from([(center, 0)]);
    let mut open = VecDeque::from([center]);
    while let Some(location) = open.pop_front() {
        let step = steps.get(&location).copied().unwrap_or(0);
        if step >= params.distance || steps.len() > index(params.limit) {
            continue;
        }
        let used = module
            .at(location)
            .map(|of| neighbours(module, of, params.inside))
            .unwrap_or_default();
        for next in used
            .into_iter()
            .chain(users.get(&location).into_iter().flatten().copied())
        {
            steps.entry(next).or_insert_with(|| {
                open.push_back(next);
                step + 1
            });
        }
    }
    let mut found: Vec<(InstructionLocation, Option<u32>)> = Vec::with_capacity(steps.len());
    // Places are in the order of the module, and of a module too large the nearest are kept.
    let mut steps: Vec<(u32, InstructionLocation)> =
        steps.into_iter().map(|(location, step)| (step, location)).collect();
    steps.sort_unstable();
    steps.truncate(index(params.limit));
    steps.sort_unstable_by_key(|(_, location)| *location);
    found.extend(steps.into_iter().map(|(step, location)| (location, Some(step))));
    found
}

/// What an instruction takes values from: its operands, and the values of computations that it
/// calls.
fn neighbours(module: &Module, of: &Instruction, calls: bool) -> Vec<InstructionLocation> {
    let operands = of.operands.iter().filter_map(|id| module.location(*id));
    let called = of.called.iter().filter(|_| calls);
    let roots = called.filter_map(|id| module.location(module.computation(*id)?.root));
    operands.chain(roots).collect()
}

fn node(program: &HloProgram, (location, distance): (InstructionLocation, Option<u32>)) -> Option<HloNode> {
    let computation = program.module.computations.get(location.computation)?;
    let instruction = program.module.at(location)?;
    let cost = program.costs.at(location);
    Some(HloNode {
        name: instruction.name.clone(),
        opcode: instruction.opcode.clone(),
        shape: instruction.shape.to_string(),
        computation: computation.name.clone(),
        is_root: computation.root == instruction.id,
        flops: cost.flops,
        bytes: cost.bytes,
        framework_op: instruction.op_name.clone(),
        source: program.source(instruction),
        distance,
    })
}

fn edges(module: &Module, locations: &[(InstructionLocation, Option<u32>)]) -> Vec<HloEdge> {
    let numbered = (0_u32..)
        .zip(locations)
        .map(|(number, (location, _))| (*location, number));
    let number_of: HashMap<InstructionLocation, u32> = numbered.collect();
    let mut edges: Vec<HloEdge> = Vec::new();
    for (to, (location, _)) in (0_u32..).zip(locations) {
        let Some(instruction) = module.at(*location) else {
            continue;
        };
        let operands = instruction.operands.iter().filter_map(|id| module.location(*id));
        let operands = operands.map(|location| (location, HloEdgeKind::Operand));
        let called = instruction
            .called
            .iter()
            .filter_map(|id| module.location(module.computation(*id)?.root));
        let called = called.map(|location| (location, HloEdgeKind::Called));
        for (location, kind) in operands.chain(called) {
            if let Some(from) = number_of.get(&location) {
                edges.push(HloEdge { from: *from, to, kind });
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}
