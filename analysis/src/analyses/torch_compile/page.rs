//! How people read it.

use flopwatch_measures::compiled::{BreakReason, CompileId};
use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Unit};

use super::{CompileSide, TorchCompileResult};

/// Most bars of phases.
const MOST_BARS: usize = 10;

pub(super) fn of(about: &str, result: &TorchCompileResult) -> Page {
    let mut page = Page::new("torch.compile", about);
    page.not_captured.clone_from(&result.not_captured);
    let chosen = result
        .input
        .and_then(|at| result.captures.get(flopwatch_model::index(at)));
    let Some(side) = chosen else { return page };
    page.tiles([
        ("Compile time", known(result.compile_ns), Unit::Ns),
        ("Graph breaks", side.graph_breaks.into(), Unit::None),
        ("Recompiles", side.recompiles.into(), Unit::None),
        ("GPU time in compiled code", side.coverage_ratio.into(), Unit::Ratio),
        ("Triton's part of kernels", side.triton_ratio.into(), Unit::Ratio),
        ("Mean cache lookup", result.mean_cache_lookup_ns.into(), Unit::Ns),
        ("Break-even in runs", result.break_even_runs.into(), Unit::None),
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

fn compared(captures: &[CompileSide]) -> Table {
    let columns = [
        ("Capture", Unit::None),
        ("Compiled", Unit::None),
        ("Mean iteration", Unit::Ns),
        ("Iterations", Unit::None),
        ("Speed-up", Unit::None),
        ("Compile time", Unit::Ns),
        ("Paid back after", Unit::None),
        ("Breaks", Unit::None),
        ("Recompiles", Unit::None),
        ("Kernels per iteration", Unit::None),
        ("Triton", Unit::Ratio),
        ("CUDA graphs", Unit::None),
    ];
    let mut table = Table::new("Captures", &columns);
    "The speed-up is against the first eager capture. Iterations leave out the first one and those in which code was compiled."
        .clone_into(&mut table.about);
    for column in &mut table.columns {
        column.decimals = (column.unit == Unit::None).then_some(2);
    }
    for side in captures {
        table.push([
            side.label.as_str().into(),
            side.is_compiled.into(),
            side.mean_iteration_ns.into(),
            side.iterations.into(),
            side.speedup.into(),
            known(side.compile_ns),
            side.iterations_to_pay_back.into(),
            side.graph_breaks.into(),
            side.recompiles.into(),
            side.kernels_per_iteration.into(),
            side.triton_ratio.into(),
            side.graph_launches.into(),
        ]);
    }
    table.without_unknown();
    table
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
    let columns = [
        ("From", Unit::None),
        ("To", Unit::None),
        ("Reason", Unit::None),
        ("Seen", Unit::None),
        ("Where", Unit::None),
        ("Runs", Unit::None),
        ("Between graphs", Unit::Ns),
    ];
    let mut table = Table::new("Graph breaks", &columns);
    table.left_out = result.graph_breaks_left_out;
    for one in &result.graph_breaks {
        table.push_at(
            one.place,
            [
                id(one.broken),
                id(one.resumed),
                one.reason.label().into(),
                (!one.seen.is_empty()).then_some(one.seen.as_str()).into(),
                one.location.as_deref().into(),
                one.runs.into(),
                one.between_ns.into(),
            ],
        );
    }
    table.without_unknown();
    page.table(table);
    let mut reasons: Vec<BreakReason> = result.graph_breaks.iter().map(|one| one.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let mut remedies = Table::new(
        "What to do about them",
        &[("Where", Unit::None), ("What to do", Unit::None)],
    );
    for reason in reasons {
        remedies.push([reason.label().into(), reason.suggestion().into()]);
    }
    page.table(remedies);
}

fn given_up(page: &mut Page, result: &TorchCompileResult) {
    if result.given_up.is_empty() {
        return;
    }
    let columns = [("Code", Unit::None), ("Compile time", Unit::Ns)];
    let mut table = Table::new("Functions that were given up", &columns);
    "Dynamo began to compile them, gave up and runs them uncompiled; what they call is compiled by itself. A graph break in a loop or a with block does that; \
     TORCH_LOGS=graph_breaks names it."
        .clone_into(&mut table.about);
    table.left_out = result.given_up_left_out;
    for one in &result.given_up {
        let cells = [id(Some(one.code)), one.compile_ns.into()];
        match one.place {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    page.table(table);
}

fn recompiles(page: &mut Page, result: &TorchCompileResult) {
    if result.recompiles.is_empty() {
        return;
    }
    let columns = [
        ("Code", Unit::None),
        ("Compile time", Unit::Ns),
        ("Runs", Unit::None),
        ("What changed (inferred)", Unit::None),
    ];
    let mut table = Table::new("Recompiles", &columns);
    "Function and how often it had been compiled before.".clone_into(&mut table.about);
    table.left_out = result.recompiles_left_out;
    for one in &result.recompiles {
        let cells = [
            id(Some(one.code)),
            one.compile_ns.into(),
            one.runs.into(),
            one.changed.as_deref().into(),
        ];
        match one.place {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    page.table(table);
}

fn phases(page: &mut Page, result: &TorchCompileResult) {
    let shown = || result.phases.iter().take(MOST_BARS);
    page.bars(Bars {
        title: "Compile time by phase, without phases inside".to_owned(),
        unit: Unit::Ns,
        stacked: false,
        labels: shown().map(|phase| phase.name.clone()).collect(),
        series: vec![Series {
            name: "own time".to_owned(),
            values: shown().map(|phase| Some(approximate(phase.own_ns.into()))).collect(),
        }],
    });
    let columns = [
        ("Phase", Unit::None),
        ("Calls", Unit::None),
        ("Own time", Unit::Ns),
        ("With phases inside", Unit::Ns),
    ];
    let mut table = Table::new("Phases", &columns);
    table.left_out = result.phases_left_out;
    for phase in &result.phases {
        table.push_at(
            phase.longest,
            [
                phase.name.as_str().into(),
                phase.calls.into(),
                phase.own_ns.into(),
                phase.total_ns.into(),
            ],
        );
    }
    page.table(table);
    if result.threads.len() > 1 {
        let columns = [
            ("Process", Unit::None),
            ("Thread", Unit::None),
            ("Compile time", Unit::Ns),
            ("Pieces", Unit::None),
        ];
        let mut table = Table::new("Threads that compiled", &columns);
        for thread in &result.threads {
            table.push_at(
                thread.longest,
                [
                    thread.process.into(),
                    thread.thread.into(),
                    thread.compile_ns.into(),
                    thread.pieces.into(),
                ],
            );
        }
        page.table(table);
    }
}

fn regions(result: &TorchCompileResult) -> Table {
    let columns = [
        ("Code", Unit::None),
        ("Runs", Unit::None),
        ("Behind a break", Unit::None),
        ("Total", Unit::Ns),
        ("Compiled within", Unit::Ns),
        ("GPU time of its own", Unit::Ns),
        ("GPU operations per run", Unit::None),
    ];
    let mut table = Table::new("Compiled code", &columns);
    table.left_out = result.regions_left_out;
    if let Some(column) = table.columns.last_mut() {
        column.decimals = Some(1);
    }
    for region in &result.regions {
        table.push_at(
            region.longest,
            [
                id(region.code),
                region.runs.into(),
                region.inner_runs.into(),
                region.total_ns.into(),
                region.compile_ns.into(),
                region.gpu_ns.into(),
                region.gpu_operations_per_run.into(),
            ],
        );
    }
    table.without_unknown();
    table
}
