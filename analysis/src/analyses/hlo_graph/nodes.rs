//! Instructions, computations and fusions of the graph.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use flopwatch_measures::hlo_program::HloProgram;
use flopwatch_model::hlo::{Instruction, Module, Place};
use flopwatch_model::{count, index};
use flopwatch_report::NotCaptured;

use super::HloGraphParams;
use super::choice::Chosen;
use super::result::{
    HloComputation, HloEdge, HloEdgeKind, HloFusion, HloGraph, HloGraphComputationKind, HloNode, HloOpcodeCount,
};

/// Opcodes of what a fusion holds, in its text.
const MOST_OPCODES: usize = 8;

pub(super) fn fill(found: &mut HloGraph, chosen: &Chosen<'_>, params: &HloGraphParams) {
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
    let places = if params.around.is_empty() {
        all(&program.module, params.inside)
    } else {
        let Some(center) = program.place(&params.around) else {
            let reason = format!("the program {} has no instruction of that name", program.name);
            found
                .not_captured
                .push(NotCaptured::new(params.around.as_str(), reason));
            return;
        };
        around(&program.module, center, params)
    };
    found.nodes_left_out = count(places.len().saturating_sub(limit));
    let places = places.get(..limit).unwrap_or(&places);
    found.nodes = places.iter().filter_map(|place| node(program, *place)).collect();
    found.edges = edges(&program.module, places);
}

/// What calls each computation: the instruction, and its place.
fn callers(module: &Module) -> HashMap<usize, (Place, &Instruction)> {
    let mut callers = HashMap::new();
    for (place, instruction) in module.instructions() {
        for called in instruction.called.iter().filter_map(|id| module.computation_place(*id)) {
            callers.entry(called).or_insert((place, instruction));
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
    // Callers stand behind those that they call, so that the depth of a caller is known first from the end on.
    let mut depths: Vec<Option<u32>> = vec![None; module.computations.len()];
    for place in (0..module.computations.len()).rev() {
        let depth = if Some(place) == module.entry {
            Some(0)
        } else {
            let around = callers.get(&place).map(|(caller, _)| caller.computation);
            let depth = around
                .filter(|around| *around > place)
                .and_then(|around| *depths.get(around)?);
            depth.map(|depth| depth + 1)
        };
        if let Some(slot) = depths.get_mut(place) {
            *slot = depth;
        }
    }
    let mut found: Vec<HloComputation> = Vec::new();
    for ((place, computation), depth) in module.computations.iter().enumerate().zip(depths) {
        let caller = callers.get(&place);
        let is_entry = Some(place) == module.entry;
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

fn opcodes(chosen: &Chosen<'_>) -> Vec<HloOpcodeCount> {
    let mut before: BTreeMap<&str, u64> = BTreeMap::new();
    // All, and those inside fusions.
    let mut after: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (_, instruction) in chosen.before.iter().flat_map(|program| program.module.instructions()) {
        *before.entry(&instruction.opcode).or_default() += 1;
    }
    if let Some(program) = chosen.after {
        let callers = callers(&program.module);
        for (place, instruction) in program.module.instructions() {
            let (all, fused) = after.entry(&instruction.opcode).or_default();
            *all += 1;
            let is_fused = callers
                .get(&place.computation)
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
    for (place, instruction) in module.instructions().filter(|(_, one)| one.opcode == "fusion") {
        let called = instruction.called.first().and_then(|id| module.computation_place(*id));
        let Some((computation, inside)) = called.and_then(|place| Some((place, module.computations.get(place)?)))
        else {
            continue;
        };
        let mut holds: BTreeMap<&str, u64> = BTreeMap::new();
        let mut alone = 0_u64;
        for (at, one) in inside.instructions.iter().enumerate() {
            alone = alone.saturating_add(program.costs.at(Place { computation, at }).bytes);
            if !matches!(one.opcode.as_str(), "parameter" | "constant") {
                *holds.entry(&one.opcode).or_default() += 1;
            }
        }
        let cost = program.costs.at(place);
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
    let more = holds.len().saturating_sub(MOST_OPCODES);
    let shown = holds.iter().take(MOST_OPCODES);
    let mut parts: Vec<String> = shown.map(|(opcode, count)| format!("{opcode} {count}")).collect();
    if more > 0 {
        parts.push(format!("{more} more opcodes"));
    }
    parts.join(", ")
}

/// Instructions of the whole program, with none of called computations unless `inside` asks for them.
fn all(module: &Module, inside: bool) -> Vec<(Place, Option<u32>)> {
    let shown = module
        .instructions()
        .filter(|(place, _)| inside || Some(place.computation) == module.entry);
    shown.map(|(place, _)| (place, None)).collect()
}

/// Instructions at most `distance` steps from one, over operands and users, and with `inside` over calls too.
fn around(module: &Module, center: Place, params: &HloGraphParams) -> Vec<(Place, Option<u32>)> {
    let mut users: HashMap<Place, Vec<Place>> = HashMap::new();
    for (place, instruction) in module.instructions() {
        for used in neighbours(module, instruction, params.inside) {
            users.entry(used).or_default().push(place);
        }
    }
    let mut steps: HashMap<Place, u32> = HashMap::from([(center, 0)]);
    let mut open = VecDeque::from([center]);
    while let Some(place) = open.pop_front() {
        let step = steps.get(&place).copied().unwrap_or(0);
        if step >= params.distance || steps.len() > index(params.limit) {
            continue;
        }
        let used = module
            .at(place)
            .map(|of| neighbours(module, of, params.inside))
            .unwrap_or_default();
        for next in used.into_iter().chain(users.get(&place).into_iter().flatten().copied()) {
            steps.entry(next).or_insert_with(|| {
                open.push_back(next);
                step + 1
            });
        }
    }
    let mut found: Vec<(Place, Option<u32>)> = Vec::with_capacity(steps.len());
    // Places are in the order of the module, and of a module too large the nearest are kept.
    let mut steps: Vec<(u32, Place)> = steps.into_iter().map(|(place, step)| (step, place)).collect();
    steps.sort_unstable();
    steps.truncate(index(params.limit));
    steps.sort_unstable_by_key(|(_, place)| *place);
    found.extend(steps.into_iter().map(|(step, place)| (place, Some(step))));
    found
}

/// What an instruction takes values from: its operands, and the values of computations that it calls.
fn neighbours(module: &Module, of: &Instruction, calls: bool) -> Vec<Place> {
    let operands = of.operands.iter().filter_map(|id| module.place(*id));
    let called = of.called.iter().filter(|_| calls);
    let roots = called.filter_map(|id| module.place(module.computation(*id)?.root));
    operands.chain(roots).collect()
}

fn node(program: &HloProgram, (place, distance): (Place, Option<u32>)) -> Option<HloNode> {
    let computation = program.module.computations.get(place.computation)?;
    let instruction = program.module.at(place)?;
    let cost = program.costs.at(place);
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

fn edges(module: &Module, places: &[(Place, Option<u32>)]) -> Vec<HloEdge> {
    let numbered = (0_u32..).zip(places).map(|(number, (place, _))| (*place, number));
    let number_of: HashMap<Place, u32> = numbered.collect();
    let mut edges: Vec<HloEdge> = Vec::new();
    for (to, (place, _)) in (0_u32..).zip(places) {
        let Some(instruction) = module.at(*place) else { continue };
        let operands = instruction.operands.iter().filter_map(|id| module.place(*id));
        let operands = operands.map(|place| (place, HloEdgeKind::Operand));
        let called = instruction
            .called
            .iter()
            .filter_map(|id| module.place(module.computation(*id)?.root));
        let called = called.map(|place| (place, HloEdgeKind::Called));
        for (place, kind) in operands.chain(called) {
            if let Some(from) = number_of.get(&place) {
                edges.push(HloEdge { from: *from, to, kind });
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}
