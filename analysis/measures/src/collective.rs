//! Collectives: what ranks do together, how many bytes they move by it, and how much of the links'
//! bandwidth that is.

mod find;

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

pub use find::{Collective, Collectives, Group};

/// What ranks do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CollectiveOperation {
    /// Every rank gets the reduction of all inputs.
    AllReduce,
    /// Every rank gets all inputs.
    AllGather,
    /// Every rank gets a part of the reduction.
    ReduceScatter,
    /// Every rank gives a part of its input to each other one.
    AllToAll,
    /// All get the input of one.
    Broadcast,
    /// One gets the reduction.
    Reduce,
    /// One gets all inputs.
    Gather,
    /// One gives a part of its input to each.
    Scatter,
    /// A rank sends to another.
    Send,
    /// A rank receives from another.
    Receive,
    /// A rank sends and receives: NCCL's kernel for both, which also makes up all-to-all.
    SendReceive,
    /// Each rank sends to one other, as XLA's `collective-permute`.
    Permute,
    /// Ranks wait for each other.
    Barrier,
    /// Any other, or one of which the source does not say what it is.
    Other,
}

/// Letters that names of collectives hold, the longer words before those that they contain.
const WORDS: &[(&str, CollectiveOperation)] = &[
    ("allreduce", CollectiveOperation::AllReduce),
    ("crossdevicereduce", CollectiveOperation::AllReduce),
    ("allgather", CollectiveOperation::AllGather),
    ("reducescatter", CollectiveOperation::ReduceScatter),
    ("alltoall", CollectiveOperation::AllToAll),
    ("dispatch", CollectiveOperation::AllToAll),
    ("combine", CollectiveOperation::AllToAll),
    ("sendrecv", CollectiveOperation::SendReceive),
    ("permute", CollectiveOperation::Permute),
    ("broadcast", CollectiveOperation::Broadcast),
    ("bcast", CollectiveOperation::Broadcast),
    ("barrier", CollectiveOperation::Barrier),
    ("scatter", CollectiveOperation::Scatter),
    ("gather", CollectiveOperation::Gather),
    ("reduce", CollectiveOperation::Reduce),
    ("send", CollectiveOperation::Send),
    ("recv", CollectiveOperation::Receive),
];

impl CollectiveOperation {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What a kernel's or a collective's name says: `ncclDevKernel_AllGather_RING_LL(...)`,
    /// `_allgather_base`, `all-gather-start.3`.
    pub fn of(name: &str) -> Self {
        let named = name.replace("(anonymous namespace)", "");
        let without_arguments = named.split('(').next().unwrap_or(&named);
        let letters = without_arguments.chars().filter(char::is_ascii_alphabetic);
        let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        let found = WORDS.iter().find(|(word, _)| letters.contains(word));
        found.map_or(Self::Other, |(_, operation)| *operation)
    }

    /// What the bandwidth that the program sees is multiplied with to get that of the links, for
    /// `ranks` ranks: the factors of nccl-tests (`doc/PERFORMANCE.md`).
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let ranks = f64::from(ranks.max(1));
        match self {
            Self::AllReduce => 2.0 * (ranks - 1.0) / ranks,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::Gather | Self::Scatter => {
                (ranks - 1.0) / ranks
            }
            _ => 1.0,
        }
    }

    /// Whether no rank can end before every other one has begun.
    pub const fn synchronises(self) -> bool {
        matches!(
            self,
            Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::Barrier
        )
    }

    /// The message's bytes of what a rank gives and receives: of gathers what is received,
    /// otherwise what is given.
    pub const fn message_bytes(self, given: Option<u64>, received: Option<u64>) -> Option<u64> {
        match (self, given, received) {
            (Self::AllGather | Self::Gather | Self::Receive, _, Some(bytes)) | (_, Some(bytes), _) => Some(bytes),
            _ => received,
        }
    }
}

/// Bytes of an element, by the name of its type in PyTorch (`Float`, `BFloat16`) or NCCL
/// (`ncclFloat32`); `None` of a type that is not known.
pub fn element_bytes(element_type: &str) -> Option<u64> {
    let name = element_type.trim_start_matches("c10::").trim_start_matches("nccl");
    let name = name.to_ascii_lowercase();
    if name.starts_with("float8") {
        return Some(1);
    }
    match name.as_str() {
        "byte" | "char" | "bool" | "int8" | "uint8" => Some(1),
        "half" | "bfloat16" | "short" | "float16" | "int16" | "uint16" => Some(2),
        "float" | "int" | "float32" | "int32" | "uint32" | "complexhalf" => Some(4),
        "double" | "long" | "float64" | "int64" | "uint64" | "complexfloat" => Some(8),
        "complexdouble" => Some(16),
        _ => None,
    }
}

/// Bytes per second of `bytes` in `duration_ns`; `None` of no time.
pub fn bytes_per_second(bytes: u64, duration_ns: u64) -> Option<f64> {
    use flopwatch_model::approximate;
    (duration_ns > 0).then(|| approximate(u128::from(bytes)) * 1e9 / approximate(u128::from(duration_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kernels_and_collectives_say_what_ranks_do() {
        use CollectiveOperation as Operation;
        for (name, operation) in [
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)",
                Operation::AllReduce,
            ),
            (
                "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Operation::AllGather,
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)",
                Operation::ReduceScatter,
            ),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", Operation::Reduce),
            (
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                Operation::SendReceive,
            ),
            (
                "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
                Operation::Other,
            ),
            (
                "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(x)",
                Operation::AllReduce,
            ),
            ("void deep_ep::intranode::dispatch<8, 768>(int4*)", Operation::AllToAll),
            (
                "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
                Operation::AllReduce,
            ),
            (
                "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)",
                Operation::ReduceScatter,
            ),
            ("collective-permute-start.7", Operation::Permute),
            ("_allgather_base", Operation::AllGather),
            ("_reduce_scatter_base", Operation::ReduceScatter),
            ("all_to_allv", Operation::AllToAll),
            ("allreduce_coalesced", Operation::AllReduce),
            ("nccl:_all_gather_base", Operation::AllGather),
            ("recv", Operation::Receive),
        ] {
            assert_eq!(Operation::of(name), operation, "{name}");
        }
    }

    #[test]
    fn factors_of_the_bus_are_those_of_nccl_tests() {
        let factor = |operation: CollectiveOperation, ranks| operation.bus_factor(ranks);
        assert!((factor(CollectiveOperation::AllReduce, 4) - 1.5).abs() < 1e-12);
        assert!((factor(CollectiveOperation::AllGather, 4) - 0.75).abs() < 1e-12);
        assert!((factor(CollectiveOperation::Broadcast, 4) - 1.0).abs() < 1e-12);
        assert!(factor(CollectiveOperation::AllReduce, 1).abs() < 1e-12);
    }

    #[test]
    fn the_message_of_a_gather_is_what_is_received() {
        let bytes = |operation: CollectiveOperation| operation.message_bytes(Some(10), Some(40));
        assert_eq!(bytes(CollectiveOperation::AllGather), Some(40));
        assert_eq!(bytes(CollectiveOperation::ReduceScatter), Some(10));
        assert_eq!(CollectiveOperation::AllReduce.message_bytes(None, Some(40)), Some(40));
    }

    #[test]
    fn elements_of_eight_bits_are_known_and_unknown_types_are_not() {
        assert_eq!(element_bytes("Float8_e4m3fn"), Some(1));
        assert_eq!(element_bytes("BFloat16"), Some(2));
        assert_eq!(element_bytes("ncclFloat32"), Some(4));
        assert_eq!(element_bytes("Quantised"), None);
    }
}
