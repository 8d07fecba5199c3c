//! What CUPTI's numbers mean, which exports of Nsight Systems and the CUDA tracer's file share. No
//! number has changed its meaning from CUPTI 11.8 to 13.5.

use flopwatch_model::{Category, MemoryKind};

/// "No stream" of CUPTI, stored in 32 bits.
pub(crate) const NO_STREAM: u64 = 0xFFFF_FFFF;

/// Category and name of each copy kind, by its number. The names are those of `nsys stats` since
/// 2023.
pub(crate) const COPY_KINDS: [(Category, &str); 14] = [
    (Category::CudaMemcpyOther, "[CUDA memcpy Unknown]"),
    (Category::CudaMemcpyH2d, "[CUDA memcpy Host-to-Device]"),
    (Category::CudaMemcpyD2h, "[CUDA memcpy Device-to-Host]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Host-to-Array]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Array-to-Host]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Array-to-Array]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Array-to-Device]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Device-to-Array]"),
    (Category::CudaMemcpyD2d, "[CUDA memcpy Device-to-Device]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Host-to-Host]"),
    (Category::CudaMemcpyP2p, "[CUDA memcpy Peer-to-Peer]"),
    (Category::CudaMigration, "[CUDA memcpy Unified Host-to-Device]"),
    (Category::CudaMigration, "[CUDA memcpy Unified Device-to-Host]"),
    (Category::CudaMigration, "[CUDA memcpy Unified Device-to-Device]"),
];

/// What a synchronisation waits for, by its number.
pub(crate) const SYNCS: [&str; 5] = [
    "Unknown sync",
    "Event sync",
    "Stream wait sync",
    "Stream sync",
    "Context sync",
];

/// Kinds of memory, by their numbers, which are not those of Nsight Systems.
const MEMORY_KINDS: [MemoryKind; 8] = [
    MemoryKind::Unknown,
    MemoryKind::Pageable,
    MemoryKind::Pinned,
    MemoryKind::Device,
    MemoryKind::Array,
    MemoryKind::Managed,
    MemoryKind::DeviceStatic,
    MemoryKind::ManagedStatic,
];

/// What CUPTI itself does, by the upper 16 bits of its number.
const OVERHEADS: [&str; 8] = [
    "CUPTI overhead",
    "Activity Buffer Flush",
    "CUPTI Instrumentation",
    "CUPTI Resource Allocation",
    "Runtime Triggered Module Loading",
    "Lazy Function Loading",
    "Command Buffer Full",
    "Activity Buffer Request",
];

/// The memory kind of a number.
pub(crate) fn memory_kind(number: u32) -> MemoryKind {
    let known = usize::try_from(number).ok().and_then(|at| MEMORY_KINDS.get(at));
    known.copied().unwrap_or(MemoryKind::Unknown)
}

/// What CUPTI does in an overhead of a kind.
pub(crate) fn overhead(kind: u32) -> &'static str {
    if kind == 1 {
        return "Driver Compiler";
    }
    let known = usize::try_from(kind >> 16).ok().and_then(|at| OVERHEADS.get(at));
    known.copied().unwrap_or("CUPTI overhead")
}

/// The name of a whole graph, by the numbers that the program's CUDA gave it; 0 for none.
pub(crate) fn graph_name(graph: u32, executable: u32) -> String {
    match (graph, executable) {
        (0, 0) => "[CUDA graph]".to_owned(),
        (0, _) => format!("[CUDA graph executable {executable}]"),
        (_, 0) => format!("[CUDA graph {graph}]"),
        _ => format!("[CUDA graph {graph} executable {executable}]"),
    }
}

/// `cudaMemcpy_v3020` and `cudaGraphLaunch_v10000` are CUPTI's names of `cudaMemcpy` and
/// `cudaGraphLaunch`: four digits or more say since which CUDA. `cuMemAlloc_v2` is a name of its
/// own.
pub(crate) fn unversioned(mut name: String) -> String {
    let bare = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let digits = name.len() - bare.len();
    let function = bare.strip_suffix("_v").filter(|_| digits >= 4).map(str::len);
    if let Some(length) = function {
        name.truncate(length);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::unversioned;

    #[test]
    fn a_call_has_the_name_that_the_program_knows() {
        for (recorded, known) in [
            ("cudaMemcpy_v3020", "cudaMemcpy"),
            ("cudaGraphLaunch_v10000", "cudaGraphLaunch"),
            ("cudaGraphLaunch_ptsz_v10000", "cudaGraphLaunch_ptsz"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("cuda_v123", "cuda_v123"),
            ("_v10000", ""),
            ("12345", "12345"),
        ] {
            assert_eq!(unversioned(recorded.to_owned()), known, "{recorded}");
        }
    }
}
