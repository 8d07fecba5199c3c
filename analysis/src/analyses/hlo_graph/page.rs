//! How people read the graph of a program.

use flopwatch_model::{approximate, count};
use flopwatch_report::page::{Bars, Page, Series, Table, Unit};

use super::HloGraphAnalysis;
use super::result::{HloGraph, HloGraphComputationKind};
use crate::definition::Analysis;

/// Opcodes of the bars, and rows of tables that would be long.
const BARS: usize = 20;
const ROWS: usize = 100;

pub(super) fn page(output: &HloGraph) -> Page {
    let title = if output.program.is_empty() {
        "Graph of a compiled program".to_owned()
    } else {
        format!("Graph of {}", output.program)
    };
    let mut page = Page::new(&title, HloGraphAnalysis::ABOUT);
    page.not_captured.clone_from(&output.not_captured);
    if !output.program.is_empty() {
        let stage = if output.is_optimised {
            "after optimisation"
        } else {
            "before optimisation"
        };
        let in_fusions = output.opcodes.iter().filter_map(|opcode| opcode.in_fusions);
        page.tiles([
            ("Stage", stage.into(), Unit::None),
            ("Instructions", output.instructions.into(), Unit::None),
            (
                "Inside fusions",
                output.is_optimised.then(|| in_fusions.sum::<u64>()).into(),
                Unit::None,
            ),
            (
                "Computations",
                (count(output.computations.len()) + output.computations_left_out).into(),
                Unit::None,
            ),
            (
                "Fusions",
                (count(output.fusions.len()) + output.fusions_left_out).into(),
                Unit::None,
            ),
        ]);
        page.bars(opcodes(output));
        if !output.fusions.is_empty() {
            page.table(fusions(output));
        }
        page.table(computations(output));
        page.table(nodes(output));
    }
    if output.programs.len() > 1 {
        page.table(flopwatch_measures::hlo_program::table(&output.programs));
    }
    page
}

fn opcodes(output: &HloGraph) -> Bars {
    let shown = output.opcodes.get(..BARS).unwrap_or(&output.opcodes);
    let series = |name: &str, values: Vec<Option<f64>>| Series {
        name: name.to_owned(),
        values,
    };
    let number = |count: Option<u64>| count.map(|count| approximate(count.into()));
    let before: Vec<Option<f64>> = shown.iter().map(|opcode| number(opcode.before)).collect();
    let after: Vec<Option<f64>> = shown.iter().map(|opcode| number(opcode.after)).collect();
    let all = [("before optimisation", before), ("after optimisation", after)];
    let known = all.into_iter().filter(|(_, values)| values.iter().any(Option::is_some));
    Bars {
        title: "Instructions by opcode".to_owned(),
        unit: Unit::None,
        stacked: false,
        labels: shown.iter().map(|opcode| opcode.opcode.clone()).collect(),
        series: known.map(|(name, values)| series(name, values)).collect(),
    }
}

fn fusions(output: &HloGraph) -> Table {
    let columns = [
        ("Fusion", Unit::None),
        ("Kind", Unit::None),
        ("Holds", Unit::None),
        ("Value", Unit::None),
        ("FLOP", Unit::Count),
        ("Traffic", Unit::Bytes),
        ("Saved", Unit::Bytes),
        ("Framework operation", Unit::None),
        ("Source", Unit::None),
    ];
    let mut table = Table::new("Fusions", &columns);
    "Saved is what its instructions would read and write one by one, less what the fusion does."
        .clone_into(&mut table.about);
    let shown = output.fusions.get(..ROWS).unwrap_or(&output.fusions);
    table.left_out = output.fusions_left_out + count(output.fusions.len() - shown.len());
    for fusion in shown {
        table.push([
            fusion.name.as_str().into(),
            fusion.kind.as_str().into(),
            fusion.holds.as_str().into(),
            fusion.shape.as_str().into(),
            fusion.flops.into(),
            fusion.bytes.into(),
            fusion.saved_bytes.into(),
            fusion.framework_op.as_str().into(),
            fusion.source.as_deref().into(),
        ]);
    }
    table.without_unknown();
    table
}

fn computations(output: &HloGraph) -> Table {
    let columns = [
        ("Computation", Unit::None),
        ("Kind", Unit::None),
        ("Called by", Unit::None),
        ("In", Unit::None),
        ("Depth", Unit::None),
        ("Instructions", Unit::None),
    ];
    let mut table = Table::new("Computations", &columns);
    let shown = output.computations.get(..ROWS).unwrap_or(&output.computations);
    table.left_out = output.computations_left_out + count(output.computations.len() - shown.len());
    for computation in shown {
        let kind = match computation.kind {
            HloGraphComputationKind::Entry => "the program",
            HloGraphComputationKind::Fusion => "fusion",
            HloGraphComputationKind::Loop => "loop",
            HloGraphComputationKind::Call => "call",
            HloGraphComputationKind::Applied => "applied to elements",
            HloGraphComputationKind::Unused => "not called",
        };
        table.push([
            computation.name.as_str().into(),
            kind.into(),
            computation.called_by.as_deref().into(),
            computation.caller.as_deref().into(),
            computation.depth.into(),
            computation.instructions.into(),
        ]);
    }
    table
}

fn nodes(output: &HloGraph) -> Table {
    let columns = [
        ("Instruction", Unit::None),
        ("Opcode", Unit::None),
        ("Value", Unit::None),
        ("Takes", Unit::None),
        ("Steps away", Unit::None),
        ("FLOP", Unit::Count),
        ("Traffic", Unit::Bytes),
        ("Framework operation", Unit::None),
        ("Source", Unit::None),
    ];
    let mut table = Table::new("Instructions", &columns);
    let shown = output.nodes.get(..ROWS).unwrap_or(&output.nodes);
    table.left_out = output.nodes_left_out + count(output.nodes.len() - shown.len());
    for (at, node) in (0_u32..).zip(shown) {
        let edges = output.edges.iter().filter(|edge| edge.to == at);
        let from = edges.filter_map(|edge| output.nodes.get(flopwatch_model::index(edge.from)));
        let takes: Vec<&str> = from.map(|node| node.name.as_str()).take(8).collect();
        table.push([
            node.name.as_str().into(),
            node.opcode.as_str().into(),
            node.shape.as_str().into(),
            takes.join(", ").into(),
            node.distance.into(),
            node.flops.into(),
            node.bytes.into(),
            node.framework_op.as_str().into(),
            node.source.as_deref().into(),
        ]);
    }
    table.without_unknown();
    table
}
