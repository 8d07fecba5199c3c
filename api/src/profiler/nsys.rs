//! Nsight Systems: its words for what it traces, and the categories of the timeline that come of each.

use flopwatch_model::Category;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A category that Nsight Systems can trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceCategory {
    /// Kernels, copies, memory operations and the CUDA API.
    Cuda,
    /// NVTX ranges.
    Nvtx,
    /// Blocking calls of the operating system's runtime libraries.
    Osrt,
    /// cuBLAS calls.
    Cublas,
    /// cuDNN calls.
    Cudnn,
    /// MPI calls.
    Mpi,
}

impl TraceCategory {
    /// Every category, in the order in which lists are written.
    pub const ALL: [Self; 6] = [Self::Cuda, Self::Nvtx, Self::Osrt, Self::Cublas, Self::Cudnn, Self::Mpi];

    /// The name as Nsight Systems' `--trace` and our manifests write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Nvtx => "nvtx",
            Self::Osrt => "osrt",
            Self::Cublas => "cublas",
            Self::Cudnn => "cudnn",
            Self::Mpi => "mpi",
        }
    }

    /// The category of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == name)
    }

    /// The categories of the timeline whose events it records; empty for those that reach the profiler's own report alone.
    pub const fn records(self) -> &'static [Category] {
        match self {
            Self::Cuda => &Category::CUDA,
            Self::Nvtx => &[Category::NvtxRange],
            Self::Osrt => &[Category::OsRuntime],
            Self::Cublas | Self::Cudnn | Self::Mpi => &[],
        }
    }

    /// The one that must be traced for events of a category of the timeline; none where Nsight Systems records no such events.
    pub fn recording(category: Category) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|traced| traced.records().contains(&category))
    }
}

/// Options of Nsight Systems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NsysOptions {
    /// Categories that the capture must have been able to record. They are fixed when the container starts (pod
    /// annotation `flopwatch.dev/nsys-trace`, default `cuda,nvtx`); asking for more fails and names the annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub trace: Vec<TraceCategory>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_is_recorded_by_one_word_at_most() {
        for category in Category::ALL {
            let words: Vec<_> = TraceCategory::ALL
                .into_iter()
                .filter(|word| word.records().contains(&category))
                .collect();
            assert!(words.len() <= 1, "{category:?}: {words:?}");
            assert_eq!(TraceCategory::recording(category), words.first().copied());
        }
        assert_eq!(TraceCategory::recording(Category::CudaSync), Some(TraceCategory::Cuda));
        assert_eq!(TraceCategory::recording(Category::CpuOp), None);
    }
}
