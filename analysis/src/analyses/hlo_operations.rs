//! Operations of compiled programs (HLO): their time, their work, what bounds them, and the kernels
//! and lines of source behind them. Of programs without a profile, such as a dump of XLA, their
//! work alone.

mod page;
mod result;
mod roofline;
mod unmeasured;

use flopwatch_measures::hlo_cost::HloCost;
use flopwatch_measures::hlo_program::{HloProgram, HloPrograms};
use flopwatch_measures::hlo_time::{HLO_TIME, HloTime, MeasuredOperation, begins_or_awaits};
use flopwatch_model::hlo::Instruction;
use flopwatch_model::{Needs, Timeline, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;
use roofline::Peaks;

pub use result::{HloBound, HloFigureSource, HloKernel, HloOperation, HloOperations, HloUnmeasuredOperation};

/// Operations of compiled programs.
#[derive(Debug)]
pub struct HloOperationsAnalysis;

/// Parameters of [`HloOperationsAnalysis`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HloOperationsParams {
    /// Only programs whose name contains this text.
    #[schemars(length(max = 1024))]
    pub program: String,
    /// Most operations, and most kernels, in the result: those that take longest, or those of most
    /// work where no time was measured.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for HloOperationsParams {
    fn default() -> Self {
        Self {
            program: String::new(),
            limit: 200,
        }
    }
}

impl Analysis for HloOperationsAnalysis {
    const NAME: &'static str = "hlo-operations";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "Operations of compiled programs (JAX, XLA): time, FLOP and bytes, intensity, what bounds them, and the kernels and lines of source behind them.";
    const TITLE: &'static str = "Operations of compiled programs";
    const GROUP: Group = Group::Programs;
    const NEEDS: Needs = HLO_TIME;
    type Params = HloOperationsParams;
    type Output = HloOperations;

    fn run(inputs: &Inputs<'_>, params: &HloOperationsParams) -> Result<HloOperations, AnalysisError> {
        Ok(of(inputs.first(), params))
    }

    fn page(output: &HloOperations) -> Result<Page, AnalysisError> {
        Ok(page::page(output))
    }
}

/// The operations of a capture. It must hold what `hlo-operations` needs.
pub fn of(timeline: &Timeline, params: &HloOperationsParams) -> HloOperations {
    let time = HloTime::of(timeline);
    let programs = HloPrograms::of(timeline);
    let peaks = Peaks::of(timeline);
    let mut missing = missing(&time, &programs, &peaks);
    let measured = time
        .operations
        .iter()
        .filter(|one| one.program.contains(&params.program));
    let mut measured: Vec<&MeasuredOperation> = measured.collect();
    measured.sort_by(|a, b| (b.self_ns, &a.name).cmp(&(a.self_ns, &b.name)));
    let own = measured.iter().filter(|one| !one.is_asynchronous);
    let self_ns = own.map(|one| one.self_ns).fold(0, u64::saturating_add);
    let limit = index(params.limit);
    let shown = measured.iter().take(limit);
    let rows: Vec<HloOperation> = shown.map(|one| operation(one, &programs, &peaks, self_ns)).collect();
    let mut kernels = kernels(&measured, &programs);
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let kernels_left_out = count(kernels.len().saturating_sub(limit));
    kernels.truncate(limit);
    let (unmeasured, unmeasured_left_out) = if time.operations.is_empty() {
        unmeasured::largest(&programs, &params.program, limit)
    } else {
        (Vec::new(), 0)
    };
    let without_program = rows.iter().any(|row| row.opcode.is_none());
    if without_program && !programs.list.is_empty() {
        let reason = "the capture does not hold the programs of some operations, or their names are none of the program's instructions";
        missing.push(NotCaptured::new("opcodes and counted work of some operations", reason));
    }
    HloOperations {
        not_captured: missing,
        operations: count(measured.len()),
        self_ns,
        other_ns: time.other_ns,
        other_events: time.other_events,
        operations_left_out: count(measured.len().saturating_sub(limit)),
        rows,
        kernels,
        kernels_left_out,
        unmeasured,
        unmeasured_left_out,
    }
}

fn missing(time: &HloTime, programs: &HloPrograms, peaks: &Peaks<'_>) -> Vec<NotCaptured> {
    let mut missing = programs.not_captured.clone();
    if time.operations.is_empty() {
        let reason =
            "no event names an operation of a compiled program; profile a program of JAX or XLA with jax.profiler";
        missing.push(NotCaptured::new("time of operations", reason));
    } else if !peaks.is_known() {
        let reason = "the capture does not say how much its device can compute and how fast its memory is";
        missing.push(NotCaptured::new("what bounds operations", reason));
    }
    missing
}

fn operation(of: &MeasuredOperation, programs: &HloPrograms, peaks: &Peaks<'_>, self_ns: u64) -> HloOperation {
    let program = programs.find(of.program_id, &of.program);
    let location = program.and_then(|program| program.location(&of.name));
    let found = program.zip(location);
    let instruction = found.and_then(|(program, location)| program.module.at(location));
    let occurrences = of.occurrences();
    // What another operation waits for is counted at that one.
    let counted = found
        .map(|(program, location)| program.costs.at(location))
        .filter(|_| !of.is_asynchronous);
    let stated = |sum: Option<u64>| sum.map(|sum| sum / of.events.max(1));
    let counted_flops = counted.and_then(HloCost::known_flops);
    let counted_bytes = counted.map(|cost| cost.bytes);
    let (flops, flops_source) = stated_or_counted(stated(of.flops), counted_flops);
    let (bytes, bytes_source) = stated_or_counted(stated(of.bytes), counted_bytes);
    // What only begins or awaits work that runs beside others does that work in no time, or in any.
    let opcode = instruction.map_or(of.name.as_str(), |instruction| instruction.opcode.as_str());
    let is_own_work = of.is_asynchronous || !begins_or_awaits(opcode);
    let per_second = |each: Option<u64>| {
        let all = each.filter(|_| is_own_work)?.saturating_mul(occurrences);
        ratio(all, of.total_ns).map(|per_ns| per_ns * 1e9)
    };
    let intensity = flops.zip(bytes).and_then(|(flops, bytes)| ratio(flops, bytes));
    let element = found.and_then(|(program, _)| roofline::element(&program.module, instruction?));
    let framework_op = Some(of.framework_op.as_str()).filter(|name| !name.is_empty());
    let framework_op = framework_op.or_else(|| instruction.map(|of| of.op_name.as_str()));
    let name_of = |program: &HloProgram| program.name.clone();
    HloOperation {
        operation: of.name.clone(),
        program: if of.program.is_empty() {
            program.map(name_of).unwrap_or_default()
        } else {
            of.program.clone()
        },
        program_id: of.program_id.to_string(),
        opcode: instruction.map(|of| of.opcode.clone()),
        category: category(of, instruction),
        shape: instruction.map(|of| of.shape.to_string()),
        framework_op: framework_op.unwrap_or_default().trim_end_matches(':').to_owned(),
        source: found.and_then(|(program, _)| program.source(instruction?)),
        is_asynchronous: of.is_asynchronous,
        occurrences,
        events: of.events,
        total_ns: of.total_ns,
        self_ns: of.self_ns,
        average_ns: ratio(of.total_ns, occurrences),
        self_ratio: ratio(of.self_ns, self_ns).filter(|_| !of.is_asynchronous),
        flops,
        flops_source,
        bytes,
        bytes_source,
        flops_per_second: per_second(flops),
        bytes_per_second: per_second(bytes),
        intensity,
        bound: intensity
            .filter(|_| is_own_work)
            .and_then(|intensity| peaks.bound(of.device?, element, intensity)),
        place: of
            .longest
            .map(|(row, time)| TimelineLocation::new(time.start, time.end, Some(row))),
    }
}

/// What the profiler states goes before what is counted.
fn stated_or_counted(stated: Option<u64>, counted: Option<u64>) -> (Option<u64>, Option<HloFigureSource>) {
    match (stated, counted) {
        (Some(figure), _) => (Some(figure), Some(HloFigureSource::Profiler)),
        (None, Some(figure)) => (Some(figure), Some(HloFigureSource::Program)),
        (None, None) => (None, None),
    }
}

/// Kind of an operation, in the profiler's words or in the same words made of the program.
fn category(of: &MeasuredOperation, instruction: Option<&Instruction>) -> String {
    if !of.category.is_empty() {
        return of.category.clone();
    }
    instruction.map(category_of_instruction).unwrap_or_default()
}

/// Kind of an instruction, in the profiler's words: `loop fusion`.
fn category_of_instruction(of: &Instruction) -> String {
    if of.opcode == "fusion" {
        let kind = of.fusion_kind.trim_start_matches('k').to_lowercase();
        return format!("{kind} fusion");
    }
    of.opcode.clone()
}

/// Kernels of the operations, the longest first.
fn kernels(measured: &[&MeasuredOperation], programs: &HloPrograms) -> Vec<HloKernel> {
    let mut kernels: Vec<HloKernel> = Vec::new();
    for of in measured {
        let program = programs.find(of.program_id, &of.program);
        let instruction = program.and_then(|program| program.module.at(program.location(&of.name)?));
        let source = program.zip(instruction).and_then(|(program, of)| program.source(of));
        kernels.extend(of.kernels.iter().map(|kernel| HloKernel {
            kernel: kernel.name.clone(),
            operation: of.name.clone(),
            program: of.program.clone(),
            framework_op: of.framework_op.trim_end_matches(':').to_owned(),
            source: source.clone(),
            launches: kernel.launches,
            total_ns: kernel.total_ns,
            average_ns: ratio(kernel.total_ns, kernel.launches),
        }));
    }
    kernels.sort_by(|a, b| (b.total_ns, &a.kernel, &a.operation).cmp(&(a.total_ns, &b.kernel, &b.operation)));
    kernels
}

#[cfg(test)]
mod tests;
