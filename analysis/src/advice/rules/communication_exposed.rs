//! Communication while nothing computes.

use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::Work;
use flopwatch_model::{Category, RowId};
use flopwatch_report::page::Unit;

use crate::advice::wording::{share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "communication beside which nothing computes, of the window",
    5,
    "XProf calls a step bound by collectives from 30 % on and names all-reduce from 6 %",
);

/// Fires where communication is not hidden behind computation.
pub(super) static RULE: Rule = Rule {
    id: "communication-exposed",
    title: "Communication is not overlapped",
    area: Area::Communication,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    // In the second the collective runs beside the kernel.
    #[cfg(test)]
    captures: [|| scene(90), || scene(10)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let exposed = facts.per_gpu(|gpu| gpu.exposed_communication.len_ns());
    let window = facts.window.len();
    if !SHARE.reached(exposed, window) {
        return Verdict::below(SHARE, exposed, window);
    }
    let all = facts.per_gpu(|gpu| gpu.communication.len_ns());
    let compute = facts.per_gpu(|gpu| gpu.compute.subtract(&gpu.communication).len_ns());
    let communicates = |work: &&Work| work.class == WorkClass::Communication;
    // Work of one stream runs one after the other: such communication cannot overlap whatever
    // else is done.
    let mut computing: Vec<RowId> = facts
        .work
        .all()
        .iter()
        .filter(|work| work.class == WorkClass::Compute)
        .map(|work| work.row)
        .collect();
    computing.sort_unstable();
    computing.dedup();
    let own_stream = facts.work.all().iter().filter(communicates);
    let shared: u64 = own_stream
        .filter(|work| computing.binary_search(&work.row).is_ok())
        .map(|work| work.time.len())
        .sum();
    let shared = facts.shared(shared);
    let found = FindingDraft::new(format!(
        "Communication takes {}, and nothing computes beside {} of it ({} of the window).",
        time(all),
        time(exposed),
        share(exposed, window)
    ))
    .worth(
        exposed.min(compute),
        "it hides behind computation, of which there is as much that runs beside no communication",
    )
    .confidence(Confidence::Medium)
    .evidence("communication", all, Unit::Ns)
    .evidence("beside no computation", exposed, Unit::Ns)
    .evidence("on streams that compute too", shared, Unit::Ns)
    .at(facts.longest_work("longest communication", facts.work.all().iter().filter(communicates)));
    let found = if shared > all / 2 {
        found.do_this("Move communication to a stream of its own: most of it is on a stream that computes too, where nothing can overlap.")
    } else {
        found
    };
    found
        .do_this(facts.framework.pick(
        "Start it earlier and in larger pieces: DDP bucket_cap_mb, FSDP backward and forward prefetch.",
        "Let XLA start it earlier: the latency-hiding scheduler (--xla_gpu_enable_latency_hiding_scheduler=true), and larger combined collectives (--xla_gpu_all_reduce_combine_threshold_bytes).",
        "Start it earlier and in larger pieces: ncclGroupStart and ncclGroupEnd, non-blocking MPI calls, halos before the interior.",
    ))
        .do_this(facts.framework.pick(
        "Communicate less: gradient accumulation, gradients of 16 bits, sharding that fits the links.",
        "Communicate less: gradient accumulation, gradients of 16 bits, a mesh that fits the links.",
        "Communicate less: fewer and larger exchanges, a decomposition that fits the links.",
    ))
        .into()
}

#[cfg(test)]
fn scene(start: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (0, 90));
    scene.kernel_on((0, 8), "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", (start, 20));
    scene.build()
}
