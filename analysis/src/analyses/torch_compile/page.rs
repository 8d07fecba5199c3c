//! How people read it.

use flopwatch_measures::compiled::{BreakReason, CompileId};
use flopwatch_report::page::{Bars, Cell, Page, Table, Tile, Unit};

use super::{CompileSide, TorchCompileResult};

/// Most bars of phases.
const MAX_BARS: usize = 10;

pub(super) fn of(title: &str, about: &str, result: &TorchCompileResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    let chosen = result
        .input
        .and_then(|at| result.captures.get(flopwatch_model::index(at)));
    let Some(side) = chosen else { return page };
    page.tiles([
        Tile::figure("Compile time", Unit::Ns, known(result.compile_ns)),
        Tile::new("Graph breaks", side.graph_breaks),
        Tile::new("Recompiles", side.recompiles),
        Tile::figure("GPU time in compiled code", Unit::Ratio, side.coverage_ratio),
        Tile::figure("Triton's part of kernels", Unit::Ratio, side.triton_ratio),
        Tile::figure("Avg cache lookup", Unit::Ns, result.mean_cache_lookup_ns),
        Tile::new("Break-even in runs", result.break_even_runs),
    ]);
    page.text("", sentence(result, side));
    if result.captures.len() > 1 {
        page.table(compared(&result.captures));
    }
    breaks(&mut page, result);
    given_up(&mut page, result);
    recompiles(&mut page, result);
    if !result.phases.is_empty() {
        phases(&mut page, result);
    }
    page.table(regions(result));
    page
}

/// Nothing where it is 0: what was compiled before the capture is not known.
fn known(ns: u64) -> Cell {
    (ns > 0).then_some(ns).into()
}

fn sentence(result: &TorchCompileResult, side: &CompileSide) -> String {
    let mut text = String::new();
    if result.captures.len() > 1 {
        text = format!("The lists are of {}. ", side.label);
    }
    text.push_str("A graph break is a run of compiled code inside another run: the program left its first graph and went on in the next. Runs side by side under one call of \
         torch.compile's code are one too: Dynamo gave up the function around them, as Python stacks show.");
    if result.graphs > 0 {
        let cached = result.graphs.saturating_sub(result.graphs_generated);
        let more = format!(
            " Inductor was asked for {} graphs, of which its cache had {cached}; Dynamo began {} traces again.",
            result.graphs, result.restarts
        );
        text.push_str(&more);
    }
    if result.break_even_runs.is_some_and(|runs| runs > 1000.0) {
        text.push_str(" Compilation took longer than 1,000 runs of what it compiled.");
    }
    text
}

fn compared(captures: &[CompileSide]) -> impl Into<Table> {
    Table::of("Captures", captures)
        .about(
            "The speed-up is against the first eager capture. Iterations leave out the first one and \
             those in which code was compiled.",
        )
        .number("Capture", 2, |side| side.label.as_str())
        .number("Compiled", 2, |side| side.is_compiled)
        .figure("Avg iteration", Unit::Ns, |side| side.mean_iteration_ns)
        .number("Iterations", 2, |side| side.iterations)
        .number("Speed-up", 2, |side| side.speedup)
        .figure("Compile time", Unit::Ns, |side| known(side.compile_ns))
        .number("Paid back after", 2, |side| side.iterations_to_pay_back)
        .number("Breaks", 2, |side| side.graph_breaks)
        .number("Recompiles", 2, |side| side.recompiles)
        .number("Kernels per iteration", 2, |side| side.kernels_per_iteration)
        .figure("Triton", Unit::Ratio, |side| side.triton_ratio)
        .number("CUDA graphs", 2, |side| side.graph_launches)
        .without_unknown()
}

fn id(code: Option<CompileId>) -> Cell {
    code.map(|code| code.to_string()).into()
}

fn breaks(page: &mut Page, result: &TorchCompileResult) {
    if result.graph_breaks.is_empty() {
        if !result.regions.is_empty() {
            page.text(
                "Graph breaks",
                "No run of compiled code lies inside another one, and no function was seen to run several: no graph was left.",
            );
        }
        return;
    }
    page.table(
        Table::of("Graph breaks", &result.graph_breaks)
            .left_out(result.graph_breaks_left_out)
            .column("From", |one| id(one.broken))
            .column("To", |one| id(one.resumed))
            .column("Reason", |one| one.reason.label())
            .column("Seen", |one| (!one.seen.is_empty()).then_some(one.seen.as_str()))
            .column("Where", |one| one.location.as_deref())
            .column("Runs", |one| one.runs)
            .figure("Between graphs", Unit::Ns, |one| one.between_ns)
            .at(|one| one.place)
            .without_unknown(),
    );
    let mut reasons: Vec<BreakReason> = result.graph_breaks.iter().map(|one| one.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    page.table(
        Table::of("What to do about them", reasons)
            .column("Where", BreakReason::label)
            .column("What to do", BreakReason::suggestion),
    );
}

fn given_up(page: &mut Page, result: &TorchCompileResult) {
    if result.given_up.is_empty() {
        return;
    }
    page.table(
        Table::of("Functions that were given up", &result.given_up)
            .about(
                "Dynamo began to compile them, gave up and runs them uncompiled; what they call is compiled \
                 by itself. A graph break in a loop or a with block does that; TORCH_LOGS=graph_breaks names \
                 it.",
            )
            .left_out(result.given_up_left_out)
            .column("Code", |one| id(Some(one.code)))
            .figure("Compile time", Unit::Ns, |one| one.compile_ns)
            .at(|one| one.place),
    );
}

fn recompiles(page: &mut Page, result: &TorchCompileResult) {
    if result.recompiles.is_empty() {
        return;
    }
    page.table(
        Table::of("Recompiles", &result.recompiles)
            .about("Function and how often it had been compiled before.")
            .left_out(result.recompiles_left_out)
            .column("Code", |one| id(Some(one.code)))
            .figure("Compile time", Unit::Ns, |one| one.compile_ns)
            .column("Runs", |one| one.runs)
            .column("What changed (inferred)", |one| one.changed.as_deref())
            .at(|one| one.place),
    );
}

fn phases(page: &mut Page, result: &TorchCompileResult) {
    let shown = result.phases.iter().take(MAX_BARS);
    page.bars(
        Bars::of(
            "Compile time by phase, without phases inside",
            Unit::Ns,
            shown,
            |phase| phase.name.clone(),
        )
        .series("own time", |phase| phase.own_ns),
    );
    page.table(
        Table::of("Phases", &result.phases)
            .left_out(result.phases_left_out)
            .column("Phase", |phase| phase.name.as_str())
            .column("Calls", |phase| phase.calls)
            .figure("Own time", Unit::Ns, |phase| phase.own_ns)
            .figure("With phases inside", Unit::Ns, |phase| phase.total_ns)
            .at(|phase| phase.longest),
    );
    if result.threads.len() > 1 {
        page.table(
            Table::of("Threads that compiled", &result.threads)
                .column("Process", |thread| thread.process)
                .column("Thread", |thread| thread.thread)
                .figure("Compile time", Unit::Ns, |thread| thread.compile_ns)
                .column("Pieces", |thread| thread.pieces)
                .at(|thread| thread.longest),
        );
    }
}

fn regions(result: &TorchCompileResult) -> impl Into<Table> {
    Table::of("Compiled code", &result.regions)
        .left_out(result.regions_left_out)
        .column("Code", |region| id(region.code))
        .column("Runs", |region| region.runs)
        .column("Behind a break", |region| region.inner_runs)
        .figure("Total", Unit::Ns, |region| region.total_ns)
        .figure("Compiled within", Unit::Ns, |region| region.compile_ns)
        .figure("GPU time of its own", Unit::Ns, |region| region.gpu_ns)
        .number("GPU operations per run", 1, |region| region.gpu_operations_per_run)
        .at(|region| region.longest)
        .without_unknown()
}
