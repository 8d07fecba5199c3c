//! The CUDA tracer: what it records of a program.

use flopwatch_model::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::KubeSchema;

/// A kind of work that the CUDA tracer records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum CudaKind {
    /// Kernels.
    Kernels,
    /// Copies of memory.
    Copies,
    /// Memsets.
    Memsets,
    /// Waits for the GPU.
    Waits,
    /// Calls of CUDA's runtime and driver.
    Calls,
    /// Launches of graphs as wholes.
    Graphs,
}

impl CudaKind {
    /// Every kind, in the order in which lists are written.
    pub const ALL: [Self; 6] = [
        Self::Kernels,
        Self::Copies,
        Self::Memsets,
        Self::Waits,
        Self::Calls,
        Self::Graphs,
    ];

    /// The categories of the timeline whose events it records.
    pub const fn records(self) -> &'static [Category] {
        match self {
            Self::Kernels => &[Category::CudaKernel],
            Self::Copies => &Category::MEMCPY,
            Self::Memsets => &[Category::CudaMemset],
            Self::Waits => &[Category::CudaSync],
            Self::Calls => &[Category::CudaApi],
            Self::Graphs => &[Category::CudaGraph],
        }
    }
}

/// How launches of CUDA graphs are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CudaGraphs {
    /// A launch is one event, from its first node to its last.
    #[default]
    Whole,
    /// Each node is an event, which costs far more. Needs a libcupti of 12.6 or later.
    Nodes,
}

/// Options of the CUDA tracer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CudaOptions {
    /// What is recorded; every kind where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub kinds: Vec<CudaKind>,
    /// How launches of CUDA graphs are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<CudaGraphs>,
}

impl CudaOptions {
    /// The kinds that are recorded.
    pub fn recorded(&self) -> &[CudaKind] {
        if self.kinds.is_empty() {
            &CudaKind::ALL
        } else {
            &self.kinds
        }
    }

    /// The categories of the timeline whose events are recorded. Nodes of graphs are kernels,
    /// copies and memsets of their own, and no graph is recorded as a whole beside them.
    pub fn records(&self) -> Vec<Category> {
        let is_by_nodes = self.graphs == Some(CudaGraphs::Nodes);
        let kinds = self.recorded().iter();
        let kinds = kinds.filter(|kind| !(is_by_nodes && **kind == CudaKind::Graphs));
        kinds.flat_map(|kind| kind.records()).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_recorded_where_none_is_named() {
        let all = CudaOptions::default().records();
        for kind in CudaKind::ALL {
            assert!(kind.records().iter().all(|category| all.contains(category)), "{kind:?}");
        }
        assert!(
            !all.contains(&Category::CudaMigration),
            "unified memory is not recorded"
        );
    }

    #[test]
    fn a_graph_is_recorded_as_a_whole_or_by_its_nodes_and_never_twice() {
        let options = CudaOptions {
            kinds: vec![CudaKind::Kernels, CudaKind::Graphs],
            graphs: None,
        };
        assert_eq!(options.records(), [Category::CudaKernel, Category::CudaGraph]);
        let by_nodes = CudaOptions {
            graphs: Some(CudaGraphs::Nodes),
            ..options
        };
        assert_eq!(by_nodes.records(), [Category::CudaKernel]);
    }
}
