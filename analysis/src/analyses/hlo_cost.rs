//! Work of compiled programs as their instructions state it, beside the time that was measured.

use std::collections::HashMap;

use flopwatch_measures::hlo_cost::{HloCosts, Loops, cost_analysis_bytes};
use flopwatch_measures::hlo_program::{HloProgram, HloPrograms};
use flopwatch_measures::hlo_time::{HLO_TIME, HloTime};
use flopwatch_model::{Needs, Timeline, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::definition::{Analysis, AnalysisError, NoParameters};
use crate::group::Group;
use crate::input::Inputs;

/// Work of compiled programs.
#[derive(Debug)]
pub struct HloCostAnalysis;

/// The result of the analysis `hlo-cost`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloCostResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// The programs, those that took longest first.
    pub rows: Vec<HloProgramCost>,
}

/// Work and time of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HloProgramCost {
    /// Name of the program.
    pub program: String,
    /// Its number, in decimal digits.
    pub program_id: String,
    /// Whether it is one after optimisation.
    pub is_optimised: bool,
    /// Floating-point operations of one run; loops count as often as they run, where the compiler
    /// knows that.
    pub flops: u64,
    /// Operations on integers and truth values of one run.
    pub integer_operations: u64,
    /// Transcendental functions of one run, one per element.
    pub transcendentals: u64,
    /// Bytes that its instructions read and write in one run, from whatever memory.
    pub bytes: u64,
    /// `flops` per byte.
    pub intensity: Option<f64>,
    /// Instructions whose operations are not known, such as library functions.
    pub unknown_instructions: u64,
    /// Loops whose number of runs is not known; each counts once.
    pub unknown_loops: u64,
    /// `flops` as `compiled.cost_analysis()` counts them: loops once, and operations on integers
    /// with the others.
    pub cost_analysis_flops: u64,
    /// `transcendentals` as `compiled.cost_analysis()` counts them.
    pub cost_analysis_transcendentals: u64,
    /// `bytes` as `compiled.cost_analysis()` counts them: loops once, 8 bytes for each pointer of a
    /// tuple, all of what a gather in a fusion takes from, and 1 byte less for each function of a
    /// library. It adds in floats of 32 bits, and so differs from this by the part that they round.
    pub cost_analysis_bytes: u64,
    /// How often it ran: as often as that of its operations outside of loops that ran most often;
    /// null where none was seen.
    pub runs: Option<u64>,
    /// Time in ns of its operations by themselves, of all runs and devices; null where none was
    /// seen.
    pub self_ns: Option<u64>,
    /// Floating-point operations per second of that time.
    pub flops_per_second: Option<f64>,
    /// Bytes per second of that time.
    pub bytes_per_second: Option<f64>,
}

impl Analysis for HloCostAnalysis {
    const NAME: &'static str = "hlo-cost";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "FLOP, bytes and intensity of each compiled program (JAX, XLA) counted from its instructions, beside cost_analysis and the time that was measured.";
    const TITLE: &'static str = "Work of compiled programs";
    const GROUP: Group = Group::Programs;
    const NEEDS: Needs = HLO_TIME;
    type Params = NoParameters;
    type Output = HloCostResult;

    fn run(inputs: &Inputs<'_>, _params: &NoParameters) -> Result<HloCostResult, AnalysisError> {
        Ok(of(inputs.first()))
    }

    fn page(output: &HloCostResult) -> Result<Page, AnalysisError> {
        Ok(page(output))
    }
}

/// Measured runs and time of a program.
#[derive(Debug, Clone, Copy, Default)]
struct ProgramTime {
    runs: u64,
    self_ns: u64,
}

/// The programs of a capture. It must hold what `hlo-cost` needs.
pub fn of(timeline: &Timeline) -> HloCostResult {
    let programs = HloPrograms::of(timeline);
    let time = HloTime::of(timeline);
    let mut measured: HashMap<(&str, u64), ProgramTime> = HashMap::new();
    for operation in time.operations.iter().filter(|one| !one.is_asynchronous) {
        let Some(program) = programs.find(operation.program_id, &operation.program) else {
            continue;
        };
        let sum = measured.entry((program.name.as_str(), program.id)).or_default();
        sum.self_ns = sum.self_ns.saturating_add(operation.self_ns);
        let location = program.location(&operation.name);
        // An operation of a loop runs more often than its program.
        if location.is_some_and(|location| Some(location.computation) == program.module.entry) {
            sum.runs = sum.runs.max(operation.occurrences());
        }
    }
    let mut rows: Vec<HloProgramCost> = programs
        .list
        .iter()
        .map(|program| row(program, measured.get(&(program.name.as_str(), program.id)).copied()))
        .collect();
    rows.sort_by(|a, b| (b.self_ns, b.flops, &a.program).cmp(&(a.self_ns, a.flops, &b.program)));
    let mut missing = programs.not_captured.clone();
    if measured.is_empty() && !rows.is_empty() {
        let reason = "no event names an operation of these programs; profile them with jax.profiler";
        missing.push(NotCaptured::new("measured time", reason));
    }
    HloCostResult {
        not_captured: missing,
        rows,
    }
}

fn row(program: &HloProgram, measured: Option<ProgramTime>) -> HloProgramCost {
    let cost = program.costs.module;
    let once = HloCosts::of(&program.module, Loops::Once).module;
    let runs = measured.map(|measured| measured.runs).filter(|runs| *runs > 0);
    let self_ns = measured.map(|measured| measured.self_ns);
    let per_second = |each: u64| {
        let per_ns = ratio(each.saturating_mul(runs?), self_ns?);
        per_ns.map(|per_ns| per_ns * 1e9)
    };
    HloProgramCost {
        program: program.name.clone(),
        program_id: program.id.to_string(),
        is_optimised: program.module.is_scheduled,
        flops: cost.flops,
        integer_operations: cost.integer_operations,
        transcendentals: cost.transcendentals,
        bytes: cost.bytes,
        intensity: ratio(cost.flops, cost.bytes),
        unknown_instructions: cost.unknown,
        unknown_loops: program.costs.unknown_loops,
        cost_analysis_flops: once.xla_flops(),
        cost_analysis_transcendentals: once.transcendentals,
        cost_analysis_bytes: cost_analysis_bytes(&program.module),
        runs,
        self_ns,
        flops_per_second: per_second(cost.flops),
        bytes_per_second: per_second(cost.bytes),
    }
}

fn page(output: &HloCostResult) -> Page {
    let mut page = Page::of(HloCostAnalysis::TITLE, HloCostAnalysis::ABOUT, &output.not_captured);
    if output.rows.is_empty() {
        return page;
    }
    page.table(
        Table::of("Programs", &output.rows)
            .about("Of one run each. Rates are those of the operations' own time, over all runs and devices.")
            .column("Program", |row| row.program.as_str())
            .column("Number", |row| row.program_id.as_str())
            .column("Optimised", |row| row.is_optimised)
            .figure("FLOP", Unit::Count, |row| row.flops)
            .figure("cost_analysis FLOP", Unit::Count, |row| row.cost_analysis_flops)
            .figure("Transcendentals", Unit::Count, |row| row.transcendentals)
            .figure("Integer operations", Unit::Count, |row| row.integer_operations)
            .figure("Bytes", Unit::Bytes, |row| row.bytes)
            .column("FLOP/byte", |row| row.intensity)
            .column("Not counted", |row| row.unknown_instructions)
            .column("Runs", |row| row.runs)
            .figure("Time of operations", Unit::Ns, |row| row.self_ns)
            .figure("Arithmetic", Unit::FlopPerSecond, |row| row.flops_per_second)
            .figure("Memory", Unit::BytesPerSecond, |row| row.bytes_per_second)
            .without_unknown(),
    );
    page.text(
        "Where cost_analysis differs",
        "compiled.cost_analysis() counts the body of a loop once, however often it runs, and operations on integers as floating-point \
         ones. Its FLOP of products (dot_general) are unreliable where the compiler made a library's call of them: it may not know what \
         the call does. The program's column FLOP counts loops as often as the compiler knows that they run, and such calls by their shapes.",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_without_programs_says_so() {
        let found = of(&Timeline::default());
        assert!(found.rows.is_empty() && found.not_captured.len() == 1);
    }
}
