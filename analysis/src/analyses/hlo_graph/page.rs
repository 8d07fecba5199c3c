//! How people read the graph of a program.

use flopwatch_model::count;
use flopwatch_report::page::{Bars, Page, Table, Tile, Unit};

use super::HloGraphAnalysis;
use super::result::{HloGraph, HloGraphComputationKind};
use crate::definition::Analysis;

/// Opcodes of the bars, and rows of tables that would be long.
const MAX_BARS: usize = 20;
const MAX_ROWS: usize = 100;

pub(super) fn page(output: &HloGraph) -> Page {
    let title = if output.program.is_empty() {
        HloGraphAnalysis::TITLE.to_owned()
    } else {
        format!("Graph of {}", output.program)
    };
    let mut page = Page::of(&title, HloGraphAnalysis::ABOUT, &output.not_captured);
    if !output.program.is_empty() {
        let stage = if output.is_optimised {
            "after optimisation"
        } else {
            "before optimisation"
        };
        let in_fusions = output.opcodes.iter().filter_map(|opcode| opcode.in_fusions);
        page.tiles([
            Tile::new("Stage", stage),
            Tile::new("Instructions", output.instructions),
            Tile::new("Inside fusions", output.is_optimised.then(|| in_fusions.sum::<u64>())),
            Tile::new(
                "Computations",
                count(output.computations.len()) + output.computations_left_out,
            ),
            Tile::new("Fusions", count(output.fusions.len()) + output.fusions_left_out),
        ]);
        page.bars(opcodes(output));
        page.table_unless_empty(fusions(output));
        page.table(computations(output));
        page.table(nodes(output));
    }
    if output.programs.len() > 1 {
        page.table(flopwatch_measures::hlo_program::table(&output.programs));
    }
    page
}

fn opcodes(output: &HloGraph) -> Bars {
    let shown = output.opcodes.get(..MAX_BARS).unwrap_or(&output.opcodes);
    let mut bars = Bars::of("Instructions by opcode", Unit::None, shown, |opcode| {
        opcode.opcode.clone()
    })
    .series("before optimisation", |opcode| opcode.before)
    .series("after optimisation", |opcode| opcode.after)
    .build();
    bars.series.retain(|series| series.values.iter().any(Option::is_some));
    bars
}

fn fusions(output: &HloGraph) -> impl Into<Table> {
    let shown = output.fusions.get(..MAX_ROWS).unwrap_or(&output.fusions);
    Table::of("Fusions", shown)
        .about("Saved is what its instructions would read and write one by one, less what the fusion does.")
        .left_out(output.fusions_left_out + count(output.fusions.len() - shown.len()))
        .column("Fusion", |fusion| fusion.name.as_str())
        .column("Kind", |fusion| fusion.kind.as_str())
        .column("Holds", |fusion| fusion.holds.as_str())
        .column("Value", |fusion| fusion.shape.as_str())
        .figure("FLOP", Unit::Count, |fusion| fusion.flops)
        .figure("Traffic", Unit::Bytes, |fusion| fusion.bytes)
        .figure("Saved", Unit::Bytes, |fusion| fusion.saved_bytes)
        .column("Framework operation", |fusion| fusion.framework_op.as_str())
        .column("Source", |fusion| fusion.source.as_deref())
        .without_unknown()
}

fn computations(output: &HloGraph) -> impl Into<Table> {
    let shown = output.computations.get(..MAX_ROWS).unwrap_or(&output.computations);
    Table::of("Computations", shown)
        .left_out(output.computations_left_out + count(output.computations.len() - shown.len()))
        .column("Computation", |computation| computation.name.as_str())
        .column("Kind", |computation| match computation.kind {
            HloGraphComputationKind::Entry => "the program",
            HloGraphComputationKind::Fusion => "fusion",
            HloGraphComputationKind::Loop => "loop",
            HloGraphComputationKind::Call => "call",
            HloGraphComputationKind::Applied => "applied to elements",
            HloGraphComputationKind::Unused => "not called",
        })
        .column("Called by", |computation| computation.called_by.as_deref())
        .column("In", |computation| computation.caller.as_deref())
        .column("Depth", |computation| computation.depth)
        .column("Instructions", |computation| computation.instructions)
}

fn nodes(output: &HloGraph) -> impl Into<Table> {
    let shown = output.nodes.get(..MAX_ROWS).unwrap_or(&output.nodes);
    let takes = |at: u32| {
        let edges = output.edges.iter().filter(|edge| edge.to == at);
        let from = edges.filter_map(|edge| output.nodes.get(flopwatch_model::index(edge.from)));
        let names: Vec<&str> = from.map(|node| node.name.as_str()).take(8).collect();
        names.join(", ")
    };
    Table::of("Instructions", (0_u32..).zip(shown))
        .left_out(output.nodes_left_out + count(output.nodes.len() - shown.len()))
        .column("Instruction", |(_, node)| node.name.as_str())
        .column("Opcode", |(_, node)| node.opcode.as_str())
        .column("Value", |(_, node)| node.shape.as_str())
        .column("Takes", |(at, _)| takes(at))
        .column("Steps away", |(_, node)| node.distance)
        .figure("FLOP", Unit::Count, |(_, node)| node.flops)
        .figure("Traffic", Unit::Bytes, |(_, node)| node.bytes)
        .column("Framework operation", |(_, node)| node.framework_op.as_str())
        .column("Source", |(_, node)| node.source.as_deref())
        .without_unknown()
}
