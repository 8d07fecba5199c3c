//! Memory that is given out and taken back while the loop runs.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::{Calls, IdleOwner};
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "idle time in which memory is allocated or freed, of the window",
    1,
    "ours: a caching allocator makes no such call in the steady state",
);

/// Fires where the GPU is idle while the host allocates or frees, after the warm-up.
pub(super) static RULE: Rule = Rule {
    id: "allocations",
    title: "Memory is allocated after the warm-up",
    area: Area::Memory,
    needs: &[&[Category::CudaKernel, Category::CudaGraph], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene("cudaFree_v3020"), || scene("cudaFreeAsync_v11020")],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let calls = || {
        let allocations = facts.allocations();
        allocations.filter(|call| !call.time.intersect(facts.steady).is_empty())
    };
    let times = Calls::times(calls());
    let stalled = facts.shared(facts.idle_parts.total_within_ns(IdleOwner::Allocate, &times));
    let window = facts.window.len();
    if !SHARE.reached(stalled, window) {
        return Verdict::below(SHARE, stalled, window);
    }
    let number = u64::try_from(calls().count()).unwrap_or(u64::MAX);
    let rows = calls().map(|call| (call.time.len(), call.name, call.time, call.row));
    FindingDraft::new(format!(
        "{} {} took {}; the GPU was idle in {} of it ({} of the window).",
        facts.warm_up.0,
        count(number, "call that allocates or frees memory", "calls that allocate or free memory"),
        time(times.len_ns()),
        time(stalled),
        share(stalled, window)
    ))
    .worth(stalled, "the memory is kept and used again")
    .confidence(if facts.warm_up.1 { Confidence::High } else { Confidence::Low })
    .evidence("calls after the warm-up", number, Unit::None)
    .evidence("time in them", times.len_ns(), Unit::Ns)
    .evidence("GPU idle meanwhile", stalled, Unit::Ns)
    .at(facts.largest(rows, Unit::Ns))
    .do_this(facts.framework.pick(
        "Let PyTorch's allocator keep its memory: do not call torch.cuda.empty_cache() in the loop.",
        "Let XLA keep its pool: leave XLA_PYTHON_CLIENT_PREALLOCATE on and XLA_PYTHON_CLIENT_ALLOCATOR unset (platform allocates anew each time).",
        "Allocate before the loop, or use an allocator that keeps memory: cudaMallocAsync with a pool's release threshold, RMM.",
    ))
    .do_this(facts.framework.pick(
        "cudaFree waits for the whole GPU; shapes that change from step to step make the caching allocator call it: pad them, or set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.9).",
        "cudaFree waits for the whole GPU; shapes that change from step to step ask for other buffers: pad them.",
        "cudaFree waits for the whole GPU: free after the loop, or with cudaFreeAsync.",
    ))
    .into()
}

#[cfg(test)]
fn scene(call: &str) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 400));
    scene.call(call, (420, 100));
    scene.launch((521, 5), "gemm", (530, 400));
    scene.build()
}
