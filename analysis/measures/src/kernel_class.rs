//! Classes of GPU work: computation, communication, memory. A table of patterns decides, which reports print.

use flopwatch_model::Category;
use schemars::JsonSchema;
use serde::Serialize;

/// What a piece of GPU work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkClass {
    /// A kernel that computes. First, because time that is shared counts for it.
    Compute,
    /// A kernel, or a copy between devices, that moves data between ranks.
    Communication,
    /// A copy or a memset.
    Memory,
}

impl WorkClass {
    /// Every class, the one that wins shared time first.
    pub const ALL: [Self; 3] = [Self::Compute, Self::Communication, Self::Memory];

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Memory => "memory",
        }
    }

    /// The class of GPU work of `category` and `name`; `None` of a category that is no GPU work.
    ///
    /// Copies and memsets are memory, but for copies between devices, by which NCCL's copy-engine collectives and pipeline stages exchange
    /// data. Kernels are communication where [`COMMUNICATION`] says so.
    pub fn of(category: Category, name: &str) -> Option<Self> {
        match category {
            Category::CudaKernel if is_communication(name) => Some(Self::Communication),
            Category::CudaKernel => Some(Self::Compute),
            Category::CudaMemcpyP2p => Some(Self::Communication),
            category if category.is_gpu_work() => Some(Self::Memory),
            _ => None,
        }
    }
}

/// How a kernel's name is matched; letters of either case are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// The name begins with it, return type and namespaces left out.
    Begins(&'static str),
    /// The name holds it anywhere.
    Holds(&'static str),
}

/// Kernels that communicate: NCCL and RCCL (old and new names), NVSHMEM, MSCCL++, DeepEP, the custom all-reduces of inference servers, and
/// XLA's collectives. The first two are HTA's rule (`hta/common/types.py`).
pub const COMMUNICATION: &[Pattern] = &[
    Pattern::Begins("nccl"),
    Pattern::Holds("ncclkernel"),
    Pattern::Holds("nccldevkernel"),
    Pattern::Begins("rccl"),
    Pattern::Begins("hccl"),
    Pattern::Holds("nvshmem"),
    Pattern::Holds("mscclpp"),
    Pattern::Holds("deep_ep::"),
    Pattern::Holds("cross_device_reduce"),
    Pattern::Holds("one_shot_all_reduce"),
    Pattern::Holds("two_shot_all_reduce"),
    Pattern::Begins("all-reduce"),
    Pattern::Begins("all-gather"),
    Pattern::Begins("reduce-scatter"),
    Pattern::Begins("collective-permute"),
    Pattern::Begins("all-to-all"),
];

fn is_communication(name: &str) -> bool {
    let holds = |text: &str| {
        let (name, text) = (name.as_bytes(), text.as_bytes());
        name.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text))
    };
    let begins = |text: &str| {
        let bare = name.strip_prefix("void ").unwrap_or(name);
        let start = bare.as_bytes().get(..text.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
    };
    COMMUNICATION.iter().any(|pattern| match pattern {
        Pattern::Begins(text) => begins(text),
        Pattern::Holds(text) => holds(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_collectives_communicate() {
        for name in [
            "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)",
            "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)",
            "void deep_ep::intranode::dispatch<8, 768>(int4*)",
            "all-reduce-start.7",
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
