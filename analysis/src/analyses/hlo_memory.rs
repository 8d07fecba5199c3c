//! The memory of a compiled program: what is in it when, and at its peak.

mod page;

use flopwatch_measures::hlo_memory::{HloBufferUse, Life, PlannedMemory, instruction_of};
use flopwatch_measures::hlo_program::{HloProgram, HloProgramEntry, HloPrograms, source_of};
use flopwatch_model::{Needs, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// The memory of a compiled program.
#[derive(Debug)]
pub struct HloMemoryAnalysis;

/// Parameters of [`HloMemoryAnalysis`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HloMemoryParams {
    /// Only programs whose name contains this text; of several the one that takes most memory.
    #[schemars(length(max = 1024))]
    pub program: String,
    /// Number of the program in decimal digits, where several have its name; empty for any.
    #[schemars(length(max = 20))]
    pub program_id: String,
    /// Memory as the compiler numbers them: 0 is the device's ordinary memory, 5 that of the host
    /// on TPUs.
    #[schemars(range(max = 255))]
    pub memory_space: u32,
    /// Most values in each list, the largest.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for HloMemoryParams {
    fn default() -> Self {
        Self {
            program: String::new(),
            program_id: String::new(),
            memory_space: 0,
            limit: 200,
        }
    }
}

/// The result of the analysis `hlo-memory`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloMemory {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Reservations about the figures, as sentences.
    pub cautions: Vec<String>,
    /// The program; empty where there is none.
    pub program: String,
    /// Its number, in decimal digits.
    pub program_id: String,
    /// Bytes of all allocations, with the gaps between values.
    pub allocated_bytes: u64,
    /// Bytes of parameters.
    pub parameters_bytes: u64,
    /// Bytes of results that are in no parameter's memory.
    pub outputs_bytes: u64,
    /// Bytes of constants.
    pub constants_bytes: u64,
    /// Bytes of the allocations of temporaries.
    pub temporaries_bytes: u64,
    /// Most bytes of values at once.
    pub peak_bytes: u64,
    /// Step behind which the peak is, counted from 0; null where the values are the same
    /// throughout.
    pub peak_step: Option<u64>,
    /// Instruction of that step.
    pub peak_instruction: Option<String>,
    /// Bytes of values that are there from begin to end.
    pub fixed_bytes: u64,
    /// Bytes in use behind each step, in the order of the program: values begin and end at them.
    pub steps: Vec<HloMemoryStep>,
    /// Steps behind the list's limit of 100,000.
    pub steps_left_out: u64,
    /// The values at the peak, the largest first.
    pub at_peak: Vec<HloBuffer>,
    /// Values at the peak behind the list's limit.
    pub at_peak_left_out: u64,
    /// All values, the largest first.
    pub buffers: Vec<HloBuffer>,
    /// Values behind the list's limit.
    pub buffers_left_out: u64,
    /// The programs to choose from.
    pub programs: Vec<HloProgramEntry>,
}

/// A step of the program at which a value begins or ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HloMemoryStep {
    /// The instruction whose value it is.
    pub instruction: String,
    /// Bytes in use behind it.
    pub bytes: u64,
}

/// A value in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HloBuffer {
    /// The instruction whose value it is, with its part in braces where it is a tuple's; empty
    /// where the program names none.
    pub instruction: String,
    /// Opcode of the instruction.
    pub opcode: String,
    /// Shape of the value.
    pub shape: String,
    /// Size of the buffer, in bytes.
    pub bytes: u64,
    /// What it is for.
    pub kind: HloBufferUse,
    /// First step at which it is there.
    pub begin_step: u64,
    /// First step at which it is not; null of a value that is there to the end.
    pub end_step: Option<u64>,
    /// Number of its allocation.
    pub allocation: u64,
    /// Where it begins in the allocation.
    pub offset_bytes: u64,
    /// Operation of the framework; may be empty.
    pub framework_op: String,
    /// Line of source, `file:line`; null where it is not known.
    pub source: Option<String>,
}

/// Most steps in the result.
const MAX_STEPS: usize = 100_000;

impl Analysis for HloMemoryAnalysis {
    const NAME: &'static str = "hlo-memory";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Memory of a compiled program (JAX, XLA) as its compiler planned it: lifetimes of values, the peak, and what is in it.";
    const TITLE: &'static str = "Memory of a compiled program";
    const GROUP: Group = Group::Programs;
    const NEEDS: Needs = Needs::NOTHING.programs();
    type Params = HloMemoryParams;
    type Output = HloMemory;

    fn run(inputs: &Inputs<'_>, params: &HloMemoryParams) -> Result<HloMemory, AnalysisError> {
        Ok(of(inputs.first(), params))
    }

    fn page(output: &HloMemory) -> Result<Page, AnalysisError> {
        Ok(page::page(output))
    }
}

/// The memory of a program of a capture. Needs programs.
pub fn of(timeline: &Timeline, params: &HloMemoryParams) -> HloMemory {
    let programs = HloPrograms::of(timeline);
    let allocated = |program: &HloProgram| {
        let allocations = program.module.buffers.iter().flat_map(|buffers| &buffers.allocations);
        let counted = allocations.filter(|one| !one.is_thread_local);
        counted.map(|one| one.bytes).fold(0, u64::saturating_add)
    };
    let mut found = HloMemory {
        not_captured: programs.not_captured.clone(),
        programs: programs.entries(),
        ..HloMemory::default()
    };
    let Some(program) = programs.choose(&params.program, &params.program_id, allocated) else {
        if !programs.list.is_empty() {
            let reason = "the capture holds no program of that name or number; `programs` lists those that it holds";
            found
                .not_captured
                .push(NotCaptured::new("memory of the program", reason));
        }
        return found;
    };
    found.program.clone_from(&program.name);
    found.program_id = program.id.to_string();
    let Some(buffers) = &program.module.buffers else {
        let reason = "the program has no plan of its memory: it is one before optimisation, or a text without its \
                      `-buffer-assignment.txt` beside it; give the dump after optimisation, best as `.hlo.pb`";
        found
            .not_captured
            .push(NotCaptured::new("memory of the program", reason));
        return found;
    };
    let memory = PlannedMemory::of(buffers, params.memory_space.into());
    fill(&mut found, program, &memory, index(params.limit));
    found
}

fn fill(found: &mut HloMemory, program: &HloProgram, memory: &PlannedMemory<'_>, limit: usize) {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let (peak, step) = memory.peak();
    [
        found.parameters_bytes,
        found.outputs_bytes,
        found.constants_bytes,
        found.temporaries_bytes,
    ] = memory.bytes_of;
    found.allocated_bytes = memory.allocated_bytes;
    found.fixed_bytes = memory.fixed_bytes;
    found.peak_bytes = peak;
    found.peak_step = step.map(count);
    found.peak_instruction = step
        .and_then(|step| memory.steps.get(step))
        .map(|name| (*name).to_owned());
    let behind = memory.in_use.iter().skip(1);
    let steps = memory.steps.iter().zip(behind).take(MAX_STEPS);
    found.steps = steps
        .map(|(instruction, bytes)| HloMemoryStep {
            instruction: (*instruction).to_owned(),
            bytes: *bytes,
        })
        .collect();
    found.steps_left_out = count(memory.steps.len().saturating_sub(MAX_STEPS));
    let at_peak = memory.at(step);
    let shown = |life: &Life<'_>| buffer(life, program, memory.steps.len());
    found.at_peak = at_peak.iter().take(limit).map(shown).collect();
    found.at_peak_left_out = count(at_peak.len().saturating_sub(limit));
    let mut lives: Vec<&Life<'_>> = memory.lives.iter().collect();
    lives.sort_by_key(|life| (std::cmp::Reverse(life.bytes), life.begin, life.allocation));
    found.buffers = lives.iter().take(limit).map(|life| shown(life)).collect();
    found.buffers_left_out = count(lives.len().saturating_sub(limit));
    if memory.steps.is_empty() && found.temporaries_bytes > 0 {
        let reason =
            "the plan does not say when temporaries begin and end (it has no trace of the heap); they count as a whole";
        found
            .not_captured
            .push(NotCaptured::new("lifetimes of temporaries", reason));
    }
    if memory.other_traces > 0 {
        found.cautions.push(format!(
            "The plan has {} more traces of allocations that are used again. Their steps have no common order with those shown, and \
             these allocations count as a whole.",
            memory.other_traces
        ));
    }
}

fn buffer(life: &Life<'_>, program: &HloProgram, steps: usize) -> HloBuffer {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let instruction = life.buffer.and_then(|buffer| instruction_of(&program.module, buffer));
    let part = life.buffer.map_or(&[][..], |buffer| &buffer.shape_index);
    let shape = instruction.and_then(|instruction| instruction.shape.part(part));
    let name = instruction
        .map(|instruction| instruction.name.as_str())
        .unwrap_or_default();
    let named = if part.is_empty() || name.is_empty() {
        name.to_owned()
    } else {
        let parts: Vec<String> = part.iter().map(u64::to_string).collect();
        format!("{name}{{{}}}", parts.join(","))
    };
    HloBuffer {
        instruction: named,
        opcode: instruction.map(|of| of.opcode.clone()).unwrap_or_default(),
        shape: shape.map(ToString::to_string).unwrap_or_default(),
        bytes: life.bytes,
        kind: life.kind,
        begin_step: count(life.begin),
        end_step: (life.end < steps).then_some(count(life.end)),
        allocation: life.allocation,
        offset_bytes: life.offset,
        framework_op: instruction.map(|of| of.op_name.clone()).unwrap_or_default(),
        source: instruction.and_then(|of| source_of(&program.module, of)),
    }
}
