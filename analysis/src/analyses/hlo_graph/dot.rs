//! The graph as text of Graphviz.

use std::collections::BTreeMap;

use super::result::{HloEdgeKind, HloGraph};

/// A graph that `dot -Tsvg` draws: instructions as boxes, those of a computation in a frame of
/// their own.
pub(super) fn text(graph: &HloGraph) -> String {
    let mut lines = vec![
        format!("digraph {} {{", quoted(&graph.program)),
        "  rankdir=TB;".to_owned(),
        "  node [shape=box, fontsize=10];".to_owned(),
    ];
    let mut computations: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (number, node) in graph.nodes.iter().enumerate() {
        let label = quoted(&format!("{}\n{} {}", node.name, node.opcode, node.shape));
        let bold = if node.is_root { ", style=bold" } else { "" };
        let line = format!("    n{number} [label={label}{bold}];");
        computations.entry(&node.computation).or_default().push(line);
    }
    for (at, (computation, nodes)) in computations.into_iter().enumerate() {
        lines.push(format!("  subgraph cluster_{at} {{"));
        lines.push(format!("    label={};", quoted(computation)));
        lines.extend(nodes);
        lines.push("  }".to_owned());
    }
    for edge in &graph.edges {
        let style = match edge.kind {
            HloEdgeKind::Operand => "",
            HloEdgeKind::Called => " [style=dashed]",
        };
        lines.push(format!("  n{} -> n{}{style};", edge.from, edge.to));
    }
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// A text as Graphviz quotes it.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
