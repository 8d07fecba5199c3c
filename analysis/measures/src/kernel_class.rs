//! Classes of GPU work: computation, communication and memory operations.

use flopwatch_model::Category;
use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::communication::communicates;

/// The purpose of a piece of GPU work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WorkClass {
    /// A kernel that computes, and a whole CUDA graph, of whose nodes nothing else is known. First,
    /// because time that is shared counts for it.
    Compute,
    /// A kernel, or a copy between devices, that moves data between ranks.
    Communication,
    /// A copy or a memset.
    Memory,
}

impl WorkClass {
    /// Every class, the one that wins shared time first.
    pub const ALL: [Self; 3] = [Self::Compute, Self::Communication, Self::Memory];

    /// The class's name in JSON, as `compute`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The class of GPU work of `category` and `name`; `None` of a category that is no GPU work.
    ///
    /// Copies and memsets are memory, but for copies between devices, by which NCCL's copy-engine
    /// collectives and pipeline stages exchange data. Kernels are communication where a table of
    /// libraries knows their names.
    pub fn of(category: Category, name: &str) -> Option<Self> {
        match category {
            Category::CudaKernel if communicates(name) => Some(Self::Communication),
            Category::CudaKernel | Category::CudaGraph => Some(Self::Compute),
            Category::CudaMemcpyP2p => Some(Self::Communication),
            category if category.is_gpu_work() => Some(Self::Memory),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_collectives_communicate() {
        for name in [
            "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        ] {
            assert_eq!(
                WorkClass::of(Category::CudaKernel, name),
                Some(WorkClass::Communication),
                "{name}"
            );
        }
    }

    #[test]
    fn other_kernels_compute_and_copies_move_memory() {
        assert_eq!(
            WorkClass::of(Category::CudaKernel, "void gemm<float>(float*)"),
            Some(WorkClass::Compute)
        );
        assert_eq!(
            WorkClass::of(Category::CudaMemcpyH2d, "Memcpy HtoD"),
            Some(WorkClass::Memory)
        );
        assert_eq!(WorkClass::of(Category::CudaMemset, "Memset"), Some(WorkClass::Memory));
        assert_eq!(
            WorkClass::of(Category::CudaMemcpyP2p, "Memcpy PtoP"),
            Some(WorkClass::Communication)
        );
        assert_eq!(WorkClass::of(Category::CudaApi, "ncclAllReduce"), None);
    }
}
