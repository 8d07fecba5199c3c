//! How people read operations of compiled programs.

use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Unit};

use super::HloOperationsAnalysis;
use super::result::{HloBound, HloFigureSource, HloOperations};
use crate::definition::Analysis;

/// Operations of the bars.
const BARS: usize = 15;

pub(super) fn page(output: &HloOperations) -> Page {
    let mut page = Page::new("Operations of compiled programs", HloOperationsAnalysis::ABOUT);
    page.not_captured.clone_from(&output.not_captured);
    if output.rows.is_empty() {
        return page;
    }
    page.tiles([
        ("Operations", output.operations.into(), Unit::None),
        ("Time of operations", output.self_ns.into(), Unit::Ns),
        ("GPU work of no operation", output.other_ns.into(), Unit::Ns),
    ]);
    page.bars(bars(output));
    page.table(operations(output));
    if !output.kernels.is_empty() {
        page.table(kernels(output));
    }
    page.text(
        "Where FLOP and bytes come from",
        "What the profiler states of an event goes first; what it does not state is counted from the program's instructions. FLOP of \
         a product (dot_general) that compiled.cost_analysis() gives are unreliable on GPUs: where the compiler made it a library's call, \
         or put it in a loop, they are missing or counted once.",
    );
    page
}

fn bars(output: &HloOperations) -> Bars {
    let shown = output.rows.iter().filter(|row| !row.is_asynchronous).take(BARS);
    let (labels, values) = shown
        .map(|row| (row.operation.clone(), Some(approximate(row.self_ns.into()))))
        .unzip();
    Bars {
        title: "Operations that take longest".to_owned(),
        unit: Unit::Ns,
        stacked: false,
        labels,
        series: vec![Series {
            name: "own time".to_owned(),
            values,
        }],
    }
}

fn operations(output: &HloOperations) -> Table {
    let columns = [
        ("Operation", Unit::None),
        ("Kind", Unit::None),
        ("Own time", Unit::Ns),
        ("Share", Unit::Ratio),
        ("Runs", Unit::None),
        ("Average", Unit::Ns),
        ("Arithmetic", Unit::FlopPerSecond),
        ("Memory", Unit::BytesPerSecond),
        ("FLOP/byte", Unit::None),
        ("Bound by", Unit::None),
        ("FLOP", Unit::Count),
        ("Bytes", Unit::Bytes),
        ("Work from", Unit::None),
        ("Source", Unit::None),
        ("Framework operation", Unit::None),
        ("Program", Unit::None),
    ];
    let mut table = Table::new("Operations", &columns);
    "FLOP and bytes are of one run. An operation beside others has the time of others too, and no share."
        .clone_into(&mut table.about);
    table.left_out = output.operations_left_out;
    for row in &output.rows {
        let kind = if row.is_asynchronous {
            format!("{} (beside others)", row.category)
        } else {
            row.category.clone()
        };
        let bound = row.bound.map(|bound| match bound {
            HloBound::Compute => "compute",
            HloBound::Memory => "memory",
        });
        let from = row.flops_source.or(row.bytes_source).map(|source| match source {
            HloFigureSource::Profiler => "profiler",
            HloFigureSource::Program => "program",
        });
        let cells: [Cell; 16] = [
            row.operation.as_str().into(),
            kind.into(),
            row.self_ns.into(),
            row.self_ratio.into(),
            row.occurrences.into(),
            row.average_ns.into(),
            row.flops_per_second.into(),
            row.bytes_per_second.into(),
            row.intensity.into(),
            bound.into(),
            row.flops.into(),
            row.bytes.into(),
            from.into(),
            row.source.as_deref().into(),
            row.framework_op.as_str().into(),
            row.program.as_str().into(),
        ];
        match row.place {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    table.without_unknown();
    table
}

fn kernels(output: &HloOperations) -> Table {
    let columns = [
        ("Kernel", Unit::None),
        ("Time", Unit::Ns),
        ("Launches", Unit::None),
        ("Average", Unit::Ns),
        ("Operation", Unit::None),
        ("Source", Unit::None),
        ("Framework operation", Unit::None),
        ("Program", Unit::None),
    ];
    let mut table = Table::new("Kernels of operations", &columns);
    table.left_out = output.kernels_left_out;
    for row in &output.kernels {
        table.push([
            row.kernel.as_str().into(),
            row.total_ns.into(),
            row.launches.into(),
            row.average_ns.into(),
            row.operation.as_str().into(),
            row.source.as_deref().into(),
            row.framework_op.as_str().into(),
            row.program.as_str().into(),
        ]);
    }
    table.without_unknown();
    table
}
