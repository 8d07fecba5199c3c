//! Names of kernels that communicate.

use Pattern::{Begins, Holds, Spells, Within};

use crate::kernel_name::short;

/// How a kernel's name is matched; letters of either case are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// The function's own name begins with it.
    Begins(&'static str),
    /// The name holds it anywhere.
    Holds(&'static str),
    /// The function is of this namespace, or of one in it.
    Within(&'static str),
    /// The function's own name holds it from the beginning of a word on: `all_reduce`, `AllReduce`
    /// and `all-reduce` are the same, `small_reduce` is another.
    Spells(&'static str),
}

/// Kernels of one library.
#[derive(Debug)]
struct Library {
    patterns: &'static [Pattern],
    /// Names that captures and libraries have.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by people and held by a test"))]
    examples: &'static [&'static str],
}

/// Every library. The first two patterns are HTA's rule (`hta/common/types.py`).
const LIBRARIES: &[Library] = &[
    // NCCL and RCCL, old and new.
    Library {
        patterns: &[
            Begins("nccl"),
            Holds("ncclkernel"),
            Holds("nccldevkernel"),
            Begins("rccl"),
        ],
        examples: &[
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
            "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
            "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        ],
    },
    // MSCCL and MSCCL++, NVSHMEM and rocSHMEM, oneCCL, HCCL.
    Library {
        patterns: &[
            Begins("msccl"),
            Holds("mscclpp"),
            Holds("nvshmem"),
            Holds("rocshmem"),
            Holds("oneccl"),
            Begins("hccl"),
        ],
        examples: &[
            "mscclKernel_Sum_float_Simple(ncclDevComm*, mscclAlgoMeta*, mscclWork*)",
            "void mscclpp::collective::allreduceAllToAll<(mscclpp::ReduceOp)0, float>(float*)",
            "nvshmemi_barrier_on_stream_kernel(int)",
        ],
    },
    // Collectives of any program that names them so: PyTorch's symmetric memory, the all-reduces of
    // vLLM, SGLang, TensorRT-LLM, FlashInfer and AITER, Transformer Engine's user buffers, XLA.
    Library {
        patterns: &[
            Spells("allreduce"),
            Spells("allgather"),
            Spells("reducescatter"),
            Spells("alltoall"),
            Spells("crossdevice"),
            Spells("lamport"),
            Begins("multimem_"),
            Begins("put_signal_kernel"),
            Begins("wait_signal_kernel"),
            Begins("moea2a"),
            Begins("userbuffers_"),
            Begins("kuserbuffers_"),
            Begins("collective-permute"),
            Begins("collective-broadcast"),
        ],
        examples: &[
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
            "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16*)",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)",
            "void sglang::cross_device_reduce_2stage<__nv_bfloat16, 8>(sglang::RankData*)",
            "void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8>(tensorrt_llm::kernels::AllReduceParams)",
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, false>(int)",
            "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<(unsigned char)8, __nv_bfloat16, true>(__nv_bfloat16*)",
            "void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel<true>(int)",
            "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)",
            "_ZN5aiter33reduce_scatter_cross_device_storeIDF16bLi8EEEvPNS_8RankDataE",
            "put_signal_kernel(unsigned int**, int, int, int, int, unsigned long)",
            "userbuffers_fp16_sum_inplace_gpu_rw",
            "all-reduce-start.7",
            "collective-permute-start.7",
        ],
    },
    // Expert parallelism, whose kernels are called dispatch and combine, and AMD's quick reduce.
    Library {
        patterns: &[
            Within("deep_ep"),
            Within("dpsk::ep"),
            Within("mori"),
            Within("quickreduce"),
            Holds("quick_reduce"),
        ],
        examples: &[
            "void deep_ep::intranode::dispatch<8, 768>(int4*)",
            "void dpsk::ep::internode::combine<false, 8, __nv_bfloat16>(int4*)",
            "void dpsk::ep::internode::notify_dispatch<false, 4>(int const*, long*, int)",
            "_ZN7deep_ep13internode_ll7combineILi7168EEEvPv",
            "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half> >(half const*)",
        ],
    },
];

/// What the compiler calls kernels of fused operators by: the operators whose results they use are
/// in the name too.
const FUSED: [&str; 4] = ["triton_poi_", "triton_red_", "triton_per_", "triton_tem_"];

/// Whether a kernel of that name moves data between ranks. A product of matrices into which a
/// collective is fused computes.
pub(crate) fn communicates(name: &str) -> bool {
    let whole = name.to_ascii_lowercase();
    let (own, written) = (short(&whole), short(name));
    let computes = own.contains("gemm") || FUSED.iter().any(|begin| own.starts_with(begin));
    LIBRARIES
        .iter()
        .flat_map(|library| library.patterns)
        .any(|pattern| match pattern {
            Begins(text) => own.starts_with(text),
            Holds(text) => whole.contains(text),
            Within(path) => is_within(&whole, path),
            Spells(text) => !computes && is_spelled(written, text),
        })
}

/// Whether `text`, in small letters, stands in `own` from the beginning of a word on, whatever
/// joins the words.
fn is_spelled(own: &str, text: &str) -> bool {
    let bytes = own.as_bytes();
    let begins_word = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let is_capital = bytes.get(*at).is_some_and(u8::is_ascii_uppercase);
        is_capital || before.is_none_or(|before| !before.is_ascii_alphabetic())
    };
    (0..bytes.len()).filter(begins_word).any(|at| {
        let letters = bytes.iter().skip(at).filter(|byte| !matches!(**byte, b'_' | b'-'));
        letters.map(u8::to_ascii_lowercase).take(text.len()).eq(text.bytes())
    })
}

/// Whether a function's name begins with the namespace `path`, behind what it returns; names as the
/// linker has them say lengths in place of colons.
fn is_within(name: &str, path: &str) -> bool {
    let begins_here = |at: usize| {
        let before = name.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|letter| !letter.is_ascii_alphanumeric() && letter != '_')
    };
    let qualified = format!("{path}::");
    if name.match_indices(&qualified).any(|(at, _)| begins_here(at)) {
        return true;
    }
    let mut rest = name.strip_prefix("_zn");
    for part in path.split("::") {
        let length = part.len().to_string();
        rest = rest.and_then(|rest| rest.strip_prefix(length.as_str())?.strip_prefix(part));
    }
    rest.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_communicates_and_every_library_has_some() {
        for library in LIBRARIES {
            assert!(!library.examples.is_empty(), "{:?}", library.patterns);
            for example in library.examples {
                assert!(communicates(example), "{example}");
            }
        }
    }

    #[test]
    fn what_only_has_a_word_in_common_does_not() {
        for name in [
            "void gemm<float>(float*)",
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(float*)",
            "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
            "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)",
            "triton_red_fused_add_all_reduce_wait_tensor_3",
            "gemm_allreduce_kernel",
            "void small_reduce_kernel<float>(float*)",
            "void index::smallGatherKernel<float>(float*)",
            "multi_memset_kernel",
            "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128> >(int)",
            "void notdpsk::ep::scan<int>(int*)",
            "void memory_efficient::dispatch<int>(int*)",
        ] {
            assert!(!communicates(name), "{name}");
        }
    }
}
