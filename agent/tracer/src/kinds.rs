//! Which of CUPTI's kinds of records a window enables.

use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

/// A kind of records as CUPTI numbers it, with what it is wanted for.
pub(crate) struct Enabled {
    pub(crate) kind: i32,
    pub(crate) wanted: Kinds,
}

const fn enabled(kind: i32, wanted: Kinds) -> Enabled {
    Enabled { kind, wanted }
}

/// CUPTI's number of records of graphs as wholes.
const GRAPH_TRACE: i32 = 51;

/// The kinds in the order in which they are enabled: what describes places first, kernels before
/// the calls that launch them.
pub(crate) const ENABLED: [Enabled; 13] = [
    enabled(8, Kinds::PLACES),
    enabled(9, Kinds::PLACES),
    enabled(37, Kinds::PLACES),
    enabled(GRAPH_TRACE, Kinds::GRAPHS),
    enabled(10, Kinds::KERNELS),
    enabled(1, Kinds::COPIES),
    enabled(22, Kinds::COPIES),
    enabled(2, Kinds::SETS),
    enabled(38, Kinds::SYNCS),
    enabled(39, Kinds::CORRELATIONS),
    enabled(5, Kinds::RUNTIME),
    enabled(4, Kinds::DRIVER),
    enabled(17, Kinds::OVERHEAD),
];

/// Whether a window enables a kind. Records of nodes come where graphs are not recorded as wholes.
pub(crate) fn is_wanted(kind: &Enabled, kinds: Kinds, graphs: GraphLevel) -> bool {
    let as_whole = graphs == GraphLevel::Whole && !kinds.is_empty();
    if kind.kind == GRAPH_TRACE {
        return as_whole && (kinds.has(Kinds::GRAPHS) || kinds.has(Kinds::KERNELS));
    }
    kinds.has(kind.wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kinds: Kinds, graphs: GraphLevel) -> Vec<i32> {
        let wanted = ENABLED.iter().filter(|kind| is_wanted(kind, kinds, graphs));
        wanted.map(|kind| kind.kind).collect()
    }

    #[test]
    fn kernels_come_with_whole_graphs_unless_nodes_are_wanted() {
        assert_eq!(of(Kinds::KERNELS, GraphLevel::Whole), [51, 10]);
        assert_eq!(of(Kinds::KERNELS, GraphLevel::Nodes), [10]);
        assert_eq!(of(Kinds::COPIES, GraphLevel::Whole), [1, 22]);
        assert_eq!(of(Kinds::ALL, GraphLevel::Whole).len(), ENABLED.len());
        assert!(of(Kinds::default(), GraphLevel::Whole).is_empty());
    }
}
