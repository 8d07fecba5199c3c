//! What rules look at, as topics: a rule that could not look is told by its topic, since its title
//! says what it would have found.

use super::rule::Rule;

/// The topic of a rule in a few words; its title where none is listed.
pub(super) fn topic_of(rule: &Rule) -> &'static str {
    match rule.id {
        "allocations" => "allocations after the warm-up",
        "batch-size" => "batch size",
        "buffer-reuse" => "reuse of buffers",
        "capture-too-short" => "length of the capture",
        "collectives-unbalanced" => "waits of GPUs for each other in collectives",
        "communication-exposed" => "overlap of communication",
        "copies-not-overlapped" => "overlap of copies with the host",
        "cuda-graphs" => "use of CUDA graphs",
        "device-copies" => "copies within the GPU",
        "device-waits" => "waits of accelerators",
        "dominant-kernel" => "share of the longest kernel",
        "events-lost" => "completeness of the events",
        "failed-calls" => "return values of CUDA API calls",
        "garbage-collection" => "garbage collection",
        "gemm-shapes" => "shapes of matrices",
        "gpu-idle" => "GPU idle time",
        "gpus-unbalanced" => "balance between GPUs",
        "graph-breaks" => "graph breaks",
        "host-synchronisation" => "waits of the host for the GPU",
        "idle-between-iterations" => "GPU idle time between iterations",
        "input-bound" => "supply of data",
        "iterations-unbalanced" => "regularity of iterations",
        "launch-bound" => "pace of launches",
        "launches-unmatched" => "launches of the GPU work",
        "low-occupancy" => "occupancy of hot kernels",
        "memory-full" => "GPU memory headroom",
        "mfu-low" => "model FLOP utilization",
        "module-loading" => "loading of code after the warm-up",
        "no-gpu-work" => "kernels of the launches",
        "nsight-compute-rules" => "rules of Nsight Compute",
        "pageable-copies" => "copies of pageable memory",
        "profiler-overhead" => "overhead of the profiler",
        "recompilation" => "compilation in the capture",
        "small-copies" => "sizes of copies",
        "small-grids" => "sizes of grids",
        "small-kernels" => "lengths of kernels",
        "synchronous-copies" => "copies that the host waits for",
        "synchronous-sets" => "sets of memory that the host waits for",
        "tensor-cores" => "use of tensor cores",
        "unified-memory" => "migrations of unified memory",
        _ => rule.title,
    }
}

#[cfg(test)]
#[test]
fn no_topic_claims_what_the_rule_would_have_found() {
    for rule in super::rules::ALL {
        let topic = topic_of(rule);
        assert_ne!(topic, rule.title, "{} has no topic", rule.id);
        for claim in [" is ", " are ", " was ", " were ", " would "] {
            assert!(!topic.contains(claim), "{}: {topic}", rule.id);
        }
    }
}
