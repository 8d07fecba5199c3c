//! Copies for which the host waits.

use flopwatch_measures::interval::Intervals;
use flopwatch_measures::work::Work;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::{Calls, IdleOwner, MAX_UNWAITED_COPY};
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "time of such copies beside no kernel, and of the idle time that begins in their calls and ends with work that is launched after them, at most the calls' length, of the window",
    1,
    "ours; the condition is nsys's rule cuda_memcpy_sync, which has no threshold",
);
const EXEMPT: Threshold = Threshold::new(
    "size up to which a copy to the GPU does not wait",
    MAX_UNWAITED_COPY,
    Unit::Bytes,
    "nsys's rule cuda_memcpy_sync",
);

/// Fires where `cudaMemcpy` and its kin that are not asynchronous leave the GPU without kernels.
pub(super) static RULE: Rule = Rule {
    id: "synchronous-copies",
    title: "Synchronous copies",
    area: Area::Transfers,
    needs: &[&[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE, EXEMPT],
    evaluate,
    #[cfg(test)]
    captures: [
        || scene("cudaMemcpy_v3020", 64_001),
        || scene("cudaMemcpy_v3020", 64_000),
    ],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let waits = |work: &&Work| facts.synchronous_copy(work).is_some();
    let copies: Vec<Work> = facts.work.all().iter().filter(waits).copied().collect();
    let calls = Calls::times(copies.iter().filter_map(|work| facts.synchronous_copy(work)));
    // What the copies take beside no kernel, and the gaps that begin before their calls return.
    let idle = facts.shared(facts.idle_parts.total_ns(IdleOwner::SynchronousCopy));
    let times: Intervals = copies.iter().map(|work| work.time).collect();
    let exposed = facts.per_gpu(|gpu| times.intersect(&gpu.exposed_memory).len_ns());
    let cost = exposed + idle;
    let compute = facts.per_gpu(|gpu| gpu.compute.len_ns());
    let window = facts.window.len();
    if !SHARE.reached(cost, window) {
        return Verdict::below(SHARE, cost, window);
    }
    let gain = exposed.min(compute) + idle;
    let number = u64::try_from(copies.len()).unwrap_or(u64::MAX);
    let mut found = FindingDraft::new(format!(
        "The host waited {} for {}; the GPU ran no kernel for {} because of them ({} of the window).",
        time(calls.len_ns()),
        count(number, "synchronous copy", "synchronous copies"),
        time(cost),
        share(cost, window)
    ));
    if gain > 0 {
        found = found.worth(gain, "the copies become asynchronous and run beside kernels, as far as there are any; of idle time no more is counted than the host was blocked");
    }
    found
    .evidence("host waiting in the calls", calls.len_ns(), Unit::Ns)
    .evidence("copies without kernels beside them", exposed, Unit::Ns)
    .evidence("idle time that the waits explain", idle, Unit::Ns)
    .at(facts.longest_work("longest copy", &copies))
    .do_this(facts.framework.pick(
        "Copy with non_blocking=True from and to pinned memory, and wait for an event where the data is used.",
        "Copy asynchronously: jax.device_put returns at once; read results (np.asarray, float) only where they are needed, or start with copy_to_host_async().",
        "Use cudaMemcpyAsync with pinned memory on a stream of its own, and wait for an event where the data is used.",
    ))
    .into()
}

#[cfg(test)]
fn scene(call: &str, bytes: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 90));
    scene.copy(Category::CudaMemcpyH2d, call, (20, 100), (100, 18), bytes);
    scene.launch((121, 5), "gemm", (130, 90));
    scene.build()
}
