//! GPUs that wait for each other in collectives.

use std::collections::BTreeMap;

use flopwatch_measures::collective::{Collective, CollectiveOperation, Collectives};
use flopwatch_measures::gpu::Gpu;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent("waiting in collectives, of the window", 3, "ours");

/// Fires where the same collective takes longer on some GPUs than on the one that enters it last.
///
/// As TraceLens has it, the shortest of a collective's kernels is its latency, and what another one
/// takes beyond that is waiting.
pub(super) static RULE: Rule = Rule {
    id: "collectives-unbalanced",
    title: "GPUs wait for each other in collectives",
    area: Area::Communication,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(60), || scene(99)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    if facts.gpus.len() < 2 {
        return Verdict::abstain(
            "the capture holds the work of one GPU; compare the captures of all ranks with `stragglers`",
        );
    }
    let found = Collectives::of(facts.timeline);
    // By group and operation, the collectives of each GPU in their order.
    let mut lists: BTreeMap<(usize, CollectiveOperation), BTreeMap<Gpu, Vec<&Collective>>> = BTreeMap::new();
    for collective in found
        .all
        .iter()
        .filter(|collective| collective.operation.synchronises())
    {
        if let Some(gpu) = Gpu::of_row(facts.timeline, collective.row) {
            let list = lists.entry((collective.group, collective.operation)).or_default();
            list.entry(gpu).or_default().push(collective);
        }
    }
    lists.retain(|_, gpus| gpus.len() > 1);
    if lists.is_empty() {
        return Verdict::Quiet;
    }
    let equal = |gpus: &BTreeMap<Gpu, Vec<&Collective>>| {
        let mut counts = gpus.values().map(Vec::len);
        let first = counts.next();
        counts.all(|count| Some(count) == first)
    };
    let (paired, unpaired): (Vec<_>, Vec<_>) = lists.into_iter().partition(|(_, gpus)| equal(gpus));
    if paired.is_empty() {
        return Verdict::abstain(format!(
            "the GPUs ran different numbers of the collectives of {} groups, so that they cannot be paired",
            unpaired.len()
        ));
    }
    let mut waits = Vec::new();
    for (_, gpus) in &paired {
        let count = gpus.values().next().map_or(0, Vec::len);
        for position in 0..count {
            let same = || gpus.values().filter_map(|list| list.get(position));
            let latency = same().map(|collective| collective.time.len()).min().unwrap_or(0);
            waits.extend(same().map(|collective| {
                let wait = collective.time.len() - latency;
                (wait, collective.operation.name(), collective.time, collective.row)
            }));
        }
    }
    let waited = facts.shared(waits.iter().map(|(wait, ..)| wait).sum());
    let window = facts.window.len();
    if !SHARE.reached(waited, window) {
        return Verdict::Quiet;
    }
    let mut rows = facts.largest(waits.iter().copied(), Unit::Ns);
    for row in &mut rows {
        row.what.insert_str(0, "wait in ");
    }
    let number = u64::try_from(waits.len() / facts.gpus.len()).unwrap_or(u64::MAX);
    FindingDraft::new(format!(
        "In {} the GPUs waited {} for the one that came last ({} of the window, the mean of {} GPUs).",
        count(number, "collective", "collectives"),
        time(waited),
        share(waited, window),
        facts.gpus.len()
    ))
    .worth(waited, "all GPUs enter each collective at the same time")
    .confidence(Confidence::Medium)
    .evidence("waiting in collectives", waited, Unit::Ns)
    .at(rows)
    .do_this("Find why the last GPU is late: more work (sequence lengths, experts, stages), a slower host thread, a lower clock.")
    .into()
}

/// Both GPUs end an all-reduce at 120 us; the second one enters it at `early` us, the first at 100
/// us.
#[cfg(test)]
fn scene(early: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for (device, start) in [(0, 100), (1, early)] {
        scene.kernel_on((device, 7), "gemm", (0, start));
        scene.kernel_on(
            (device, 8),
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            (start, 120 - start),
        );
    }
    scene.build()
}
