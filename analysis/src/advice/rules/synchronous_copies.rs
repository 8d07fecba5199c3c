//! Copies for which the host waits.

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::interval::Intervals;
use flopwatch_measures::work::Work;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::Calls;
use crate::advice::wording::{count, share, time};
use crate::advice::{About, Area, Facts, Found, Rule, Threshold, Verdict};

/// Fires where `cudaMemcpy` and its kin that are not asynchronous leave the GPU without kernels.
#[derive(Debug)]
pub(super) struct SynchronousCopies;

const SHARE: Threshold = Threshold::percent(
    "time of such copies beside no kernel, and of the idle time that begins in their calls, at most the time in these calls, of the window",
    1,
    "ours; the condition is nsys's rule cuda_memcpy_sync, which has no threshold",
);
const EXEMPT: Threshold = Threshold::new(
    "size up to which a copy to the GPU does not wait",
    64_000,
    Unit::Bytes,
    "nsys's rule cuda_memcpy_sync",
);

static ABOUT: About = About {
    id: "synchronous-copies",
    title: "Synchronous copies",
    area: Area::Transfers,
    needs: &[&[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE, EXEMPT],
};

impl Rule for SynchronousCopies {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let waits = |work: &&Work| {
            let exempt = match work.category {
                Category::CudaMemcpyH2d => {
                    // One whose size is not known may be small.
                    let size = work.bytes(facts.timeline);
                    size.is_none_or(|size| size <= EXEMPT.value)
                }
                Category::CudaMemcpyD2d => true,
                category => !Category::MEMCPY.contains(&category),
            };
            !exempt && call(facts, work).is_some()
        };
        let copies: Vec<Work> = facts.work.all().iter().filter(waits).copied().collect();
        let calls = Calls::times(copies.iter().filter_map(|work| call(facts, work)));
        // What the copies take beside no kernel, and the gaps that begin before their calls return.
        let gaps = facts.gaps_begun_in(&calls);
        let idle = facts.gap_time(&gaps).min(calls.len_ns());
        let times: Intervals = copies.iter().map(|work| work.time).collect();
        let exposed = facts.per_gpu(|gpu| times.intersect(&gpu.exposed_memory).len_ns());
        let cost = exposed + idle;
        let compute = facts.per_gpu(|gpu| gpu.compute.len_ns());
        let window = facts.window.len();
        if !SHARE.reached(cost, window) {
            return Verdict::Quiet;
        }
        let gain = exposed.min(compute) + idle;
        let mut found = Found::new(format!(
            "The host waited {} for {}; the GPU ran no kernel for {} because of them ({} of the window).",
            time(calls.len_ns()),
            count(
                u64::try_from(copies.len()).unwrap_or(u64::MAX),
                "synchronous copy",
                "synchronous copies"
            ),
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
        .do_this("Use cudaMemcpyAsync with pinned memory on a stream of its own (PyTorch: non_blocking=True), and wait for an event where the data is used.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        scene("cudaMemcpy_v3020", 64_001)
    }

    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        scene("cudaMemcpy_v3020", 64_000)
    }
}

/// The call that asked for a copy, where it is not asynchronous.
fn call<'a>(facts: &Facts<'a>, work: &Work) -> Option<crate::advice::facts::Call<'a>> {
    let call = facts.calls.get(work.launch(facts.timeline)?)?;
    (call.kind == ApiCall::Copy && !call.name.contains("Async")).then_some(call)
}

#[cfg(test)]
fn scene(call: &str, bytes: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 90));
    scene.copy(Category::CudaMemcpyH2d, call, (20, 100), (100, 18), bytes);
    scene.launch((121, 5), "gemm", (130, 90));
    scene.build()
}
