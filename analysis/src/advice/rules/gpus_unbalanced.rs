//! GPUs of which some work more than others.

use flopwatch_model::Category;
use flopwatch_report::page::{Cell, Unit};

use crate::advice::facts::GpuFacts;
use crate::advice::wording::{share, time};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "what the busiest GPU computes beyond the mean, of the window",
    5,
    "ours",
);

/// Fires where the GPUs of a capture do not compute for as long as each other.
pub(super) static RULE: Rule = Rule {
    id: "gpus-unbalanced",
    title: "GPUs compute for different lengths of time",
    area: Area::Communication,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(60), || scene(95)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    if facts.gpus.len() < 2 {
        return Verdict::abstain("the capture holds the work of one GPU");
    }
    let compute = |gpu: &GpuFacts| gpu.compute.len_ns();
    let mean = facts.per_gpu(compute);
    let max = facts.gpus.iter().max_by_key(|gpu| compute(gpu));
    let Some((busiest, max)) = max.map(|gpu| (gpu.gpu, compute(gpu))) else {
        return Verdict::Quiet;
    };
    let (beyond, window) = (max.saturating_sub(mean), facts.window.len());
    if !SHARE.reached(beyond, window) {
        return Verdict::Quiet;
    }
    let rows = facts.gpus.iter().map(|gpu| Evidence {
        what: format!("{} computes", gpu.gpu.label()),
        value: Cell::from(compute(gpu)),
        unit: Unit::Ns,
        place: None,
    });
    FindingDraft::new(format!(
        "{} computes for {}, {} more than the mean of {} GPUs ({} of the window); the others wait for it where they exchange data.",
        busiest.label(),
        time(max),
        time(beyond),
        facts.gpus.len(),
        share(beyond, window)
    ))
    .worth(beyond, "the same work is spread evenly, and the GPUs belong to one job")
    .confidence(Confidence::Low)
    .at(rows.take(facts.rows))
    .do_this("Balance pipeline stages, experts or sequence lengths between ranks; see whether the slow GPU has a lower clock.")
    .into()
}

#[cfg(test)]
fn scene(second: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel_on((0, 7), "gemm", (0, 100));
    scene.kernel_on((1, 7), "gemm", (0, second));
    scene.build()
}
