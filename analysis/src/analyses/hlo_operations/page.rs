//! How people read operations of compiled programs.

use flopwatch_report::page::{Bars, Page, Table, Tile, Unit};

use super::HloOperationsAnalysis;
use super::result::{HloBound, HloFigureSource, HloOperations};
use crate::definition::Analysis;

/// Operations of the bars.
const MAX_BARS: usize = 15;

pub(super) fn page(output: &HloOperations) -> Page {
    let mut page = Page::of(
        HloOperationsAnalysis::TITLE,
        HloOperationsAnalysis::ABOUT,
        &output.not_captured,
    );
    page.table_unless_empty(unmeasured(output));
    if output.rows.is_empty() {
        return page;
    }
    page.tiles([
        Tile::new("Operations", output.operations),
        Tile::figure("Time of operations", Unit::Ns, output.self_ns),
        Tile::figure("GPU work of no operation", Unit::Ns, output.other_ns),
    ]);
    page.bars(bars(output));
    page.table(operations(output));
    page.table_unless_empty(kernels(output));
    page.text(
        "Where FLOP and bytes come from",
        "What the profiler states of an event goes first; what it does not state is counted from the program's instructions. FLOP of \
         a product (dot_general) that compiled.cost_analysis() gives are unreliable on GPUs: where the compiler made it a library's call, \
         or put it in a loop, they are missing or counted once.",
    );
    page
}

fn bars(output: &HloOperations) -> impl Into<Bars> {
    let shown = output.rows.iter().filter(|row| !row.is_asynchronous).take(MAX_BARS);
    Bars::of("Operations that take longest", Unit::Ns, shown, |row| {
        row.operation.clone()
    })
    .series("own time", |row| row.self_ns)
}

fn operations(output: &HloOperations) -> impl Into<Table> {
    Table::of("Operations", &output.rows)
        .about(
            "FLOP and bytes are of one run. An operation beside others has the time of others too, and no \
             share.",
        )
        .left_out(output.operations_left_out)
        .column("Operation", |row| row.operation.as_str())
        .column("Kind", |row| {
            if row.is_asynchronous {
                format!("{} (beside others)", row.category)
            } else {
                row.category.clone()
            }
        })
        .figure("Own time", Unit::Ns, |row| row.self_ns)
        .figure("Share", Unit::Ratio, |row| row.self_ratio)
        .column("Runs", |row| row.occurrences)
        .figure("Avg", Unit::Ns, |row| row.average_ns)
        .figure("Arithmetic", Unit::FlopPerSecond, |row| row.flops_per_second)
        .figure("Memory", Unit::BytesPerSecond, |row| row.bytes_per_second)
        .column("FLOP/byte", |row| row.intensity)
        .column("Bound by", |row| {
            row.bound.map(|bound| match bound {
                HloBound::Compute => "compute",
                HloBound::Memory => "memory",
            })
        })
        .figure("FLOP", Unit::Count, |row| row.flops)
        .figure("Bytes", Unit::Bytes, |row| row.bytes)
        .column("Work from", |row| {
            row.flops_source.or(row.bytes_source).map(|source| match source {
                HloFigureSource::Profiler => "profiler",
                HloFigureSource::Program => "program",
            })
        })
        .column("Source", |row| row.source.as_deref())
        .column("Framework operation", |row| row.framework_op.as_str())
        .column("Program", |row| row.program.as_str())
        .at(|row| row.place)
        .without_unknown()
}

fn unmeasured(output: &HloOperations) -> impl Into<Table> {
    Table::of("Operations, by counted work; no time was measured", &output.unmeasured)
        .about(
            "FLOP and bytes are of one run, counted from the program's instructions. A loop has \
             the work of all its turns, or of one where the compiler does not know how many.",
        )
        .left_out(output.unmeasured_left_out)
        .column("Operation", |row| row.operation.as_str())
        .column("Kind", |row| row.category.as_str())
        .figure("FLOP", Unit::Count, |row| row.flops)
        .figure("Bytes", Unit::Bytes, |row| row.bytes)
        .column("FLOP/byte", |row| row.intensity)
        .column("Shape", |row| row.shape.as_str())
        .column("Source", |row| row.source.as_deref())
        .column("Framework operation", |row| row.framework_op.as_str())
        .column("Program", |row| row.program.as_str())
        .without_unknown()
}

fn kernels(output: &HloOperations) -> impl Into<Table> {
    Table::of("Kernels of operations", &output.kernels)
        .left_out(output.kernels_left_out)
        .column("Kernel", |row| row.kernel.as_str())
        .figure("Time", Unit::Ns, |row| row.total_ns)
        .column("Launches", |row| row.launches)
        .figure("Avg", Unit::Ns, |row| row.average_ns)
        .column("Operation", |row| row.operation.as_str())
        .column("Source", |row| row.source.as_deref())
        .column("Framework operation", |row| row.framework_op.as_str())
        .column("Program", |row| row.program.as_str())
        .without_unknown()
}
