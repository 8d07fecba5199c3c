//! How people read operations of compiled programs.

use super::HloOperationsAnalysis;
use super::result::{HloBound, HloFigureSource, HloOperations};
use crate::definition::Analysis;
use crate::model::approximate;
use crate::page::{Bars, Cell, Page, Series, Table, Unit};

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
        ("Program", Unit::None),
        ("Framework operation", Unit::None),
        ("Source", Unit::None),
        ("Runs", Unit::None),
        ("Own time", Unit::Ns),
        ("Share", Unit::Ratio),
        ("Average", Unit::Ns),
        ("FLOP", Unit::None),
        ("Bytes", Unit::Bytes),
        ("FLOP/byte", Unit::None),
        ("Arithmetic", Unit::FlopPerSecond),
        ("Memory", Unit::BytesPerSecond),
        ("Bound by", Unit::None),
        ("Work from", Unit::None),
    ];
    let mut table = Table::new("Operations", &columns);
    table.left_out = output.operations_left_out;
    for row in &output.rows {
        let kind = if row.is_asynchronous {
            format!("{} (beside others)", row.category)
        } else {
            row.category.clone()
        };
        let cells: [Cell; 16] = [
            row.operation.as_str().into(),
            kind.into(),
            row.program.as_str().into(),
            row.framework_op.as_str().into(),
            row.source.as_deref().into(),
            row.occurrences.into(),
            row.self_ns.into(),
            row.self_ratio.into(),
            row.average_ns.into(),
            row.flops.into(),
            row.bytes.into(),
            row.intensity.into(),
            row.flops_per_second.into(),
            row.bytes_per_second.into(),
            row.bound
                .map(|bound| match bound {
                    HloBound::Compute => "compute",
                    HloBound::Memory => "memory",
                })
                .into(),
            row.flops_source
                .or(row.bytes_source)
                .map(|source| match source {
                    HloFigureSource::Profiler => "profiler",
                    HloFigureSource::Program => "program",
                })
                .into(),
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
        ("Operation", Unit::None),
        ("Program", Unit::None),
        ("Framework operation", Unit::None),
        ("Source", Unit::None),
        ("Launches", Unit::None),
        ("Time", Unit::Ns),
        ("Average", Unit::Ns),
    ];
    let mut table = Table::new("Kernels of operations", &columns);
    table.left_out = output.kernels_left_out;
    for row in &output.kernels {
        table.push([
            row.kernel.as_str().into(),
            row.operation.as_str().into(),
            row.program.as_str().into(),
            row.framework_op.as_str().into(),
            row.source.as_deref().into(),
            row.launches.into(),
            row.total_ns.into(),
            row.average_ns.into(),
        ]);
    }
    table.without_unknown();
    table
}
