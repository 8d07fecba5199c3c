//! The rule `copies-not-overlapped`: copies between host and GPU during which the GPU computes
//! nothing.

use flopwatch_measures::interval::Intervals;
use flopwatch_measures::work::Work;
use flopwatch_model::{Category, ratio};
use flopwatch_report::page::Unit;

use crate::advice::facts::CopySizes;
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "copies with the host beside which nothing computes, of the window",
    5,
    "XProf: 5 % of the step is a moderate input pipeline",
);

const BOUND: Threshold = Threshold::percent(
    "such copies, of the window, from which on the program is bound by them where computation cannot hide them",
    50,
    "ours: the larger part",
);

/// Fires where copies from and to the host are not hidden behind kernels.
pub(super) static RULE: Rule = Rule {
    id: "copies-not-overlapped",
    title: "Copies with the host are not overlapped",
    area: Area::Transfers,
    needs: &[&[Category::CudaMemcpyH2d, Category::CudaMemcpyD2h]],
    of_gpu_work: true,
    thresholds: &[SHARE, BOUND],
    evaluate,
    // In the second the copy runs beside the kernel.
    #[cfg(test)]
    captures: [|| scene(7), || scene(20)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let exposed = |gpu: &crate::advice::facts::GpuFacts| {
        let copies: Intervals = gpu
            .work
            .all()
            .iter()
            .filter(|work| is_copy(work))
            .map(|work| work.time)
            .collect();
        copies.subtract(&gpu.compute).subtract(&gpu.communication).len_ns()
    };
    let exposed = facts.per_gpu(exposed);
    let window = facts.window.len();
    if !SHARE.reached(exposed, window) {
        return Verdict::below(SHARE, exposed, window);
    }
    let copies = || facts.work.all().iter().filter(|work| is_copy(work));
    let moved = facts.moved(copies());
    let total: Intervals = copies().map(|work| work.time).collect();
    let compute = facts.per_gpu(|gpu| gpu.compute.len_ns());
    let number = u64::try_from(copies().count()).unwrap_or(u64::MAX);
    let told = format!(
        "{} between host and GPU ({}) took {}; nothing computes beside {} of it ({} of the window)",
        count(number, "copy", "copies"),
        moved.text(),
        time(total.len_ns()),
        time(exposed),
        share(exposed, window)
    );
    if BOUND.reached(exposed, window) && exposed > compute {
        return bound_by_copies(facts, &told, (exposed, compute), moved);
    }
    let found = FindingDraft::new(format!("{told}."));
    moved
        .add_evidence(found)
    .worth(exposed.min(compute), "the copies run beside kernels, of which there are enough")
    .evidence("copies without computation beside them", exposed, Unit::Ns)
    .at(facts.longest_work("longest copy", copies()))
    .do_this(facts.framework.pick(
        "Prefetch the next batch: pinned memory (pin_memory=True), .to(device, non_blocking=True), a stream of its own.",
        "Prefetch the next batch: jax.device_put it while the current step runs; keep parameters and state on the device.",
        "Copy the next piece while this one is computed: pinned memory, cudaMemcpyAsync, a stream of its own, two buffers.",
    ))
    .do_this("Keep on the GPU what is copied again and again; copy results rarely, asynchronously and into pinned memory.")
    .into()
}

fn is_copy(work: &Work) -> bool {
    matches!(work.category, Category::CudaMemcpyH2d | Category::CudaMemcpyD2h)
}

/// What is to be said where copies are most of the time, and computation too little to hide them:
/// only copying less helps.
fn bound_by_copies(facts: &Facts<'_>, told: &str, (exposed, compute): (u64, u64), moved: CopySizes) -> Verdict {
    let h2d = facts.per_gpu(|gpu| gpu.exposed_copies(Category::CudaMemcpyH2d).len_ns());
    let direction = if h2d > exposed / 2 {
        "from the host to the GPU"
    } else {
        "from the GPU to the host"
    };
    let found = FindingDraft::new(format!(
        "The program is bound by copies {direction}: {told}. The GPU computes for {} in all, so beside kernels no more than that can hide.",
        time(compute)
    ));
    let copies = || facts.work.all().iter().filter(|work| is_copy(work));
    let copying: u64 = copies().map(|work| work.time.len()).sum();
    let rate = ratio(moved.bytes, copying).map(|per_ns| per_ns * 1e9);
    let found = moved
        .add_evidence(found)
        .worth(
            exposed,
            "the data stays on the GPU instead of being copied again; copies that are needed take their time",
        )
        .evidence("copies without computation beside them", exposed, Unit::Ns)
        .evidence("computation, which could hide copies", compute, Unit::Ns);
    let found = match rate.filter(|_| moved.known > 0 && moved.unknown == 0) {
        Some(rate) => found.evidence("mean rate of a copy", rate, Unit::BytesPerSecond),
        None => found,
    };
    found
        .at(facts.longest_work("longest copy", copies()))
        .do_this(facts.framework.pick(
            "Copy less: keep weights, caches and batches that come back on the GPU instead of offloading them; prepare data in the type of number that is computed with.",
            "Copy less: keep parameters and state on the device (device_put once, donated arguments), and offload only what does not fit.",
            "Copy less: keep on the GPU what is copied again and again, and compute there what is copied back only to be copied again.",
        ))
        .do_this("Where the copies are needed: pin the host's memory, which about doubles their rate, and copy smaller types of numbers; overlap hides no more than the computation.")
        .into()
}

#[cfg(test)]
fn scene(start: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.copy(Category::CudaMemcpyH2d, "cudaMemcpyAsync", (0, 5), (start, 10), 1 << 20);
    scene.kernel("gemm", (17, 90));
    scene.build()
}

#[cfg(test)]
mod tests {
    use flopwatch_report::page::Cell;

    use super::*;

    #[test]
    fn a_program_bound_by_copies_is_told_so_and_what_copying_less_is_worth() {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..9 {
            scene.copy(
                Category::CudaMemcpyH2d,
                "cudaMemcpyAsync",
                (at * 100, 5),
                (at * 100 + 10, 90),
                9_000_000,
            );
            scene.launch((at * 100 + 6, 2), "gemm", (at * 100 + 100, 10));
        }
        let timeline = scene.build();
        let facts = Facts::of(&timeline, 5);
        let found = evaluate(&facts).found();
        let beginning = "The program is bound by copies from the host to the GPU: 9 copies";
        assert!(found.sentence.starts_with(beginning), "{}", found.sentence);
        // 90 us of kernels could hide 90 of 810 us of copies: copying less is what helps.
        assert_eq!(found.gain.as_ref().map(|(gain_ns, _)| *gain_ns), Some(810_000));
        assert!(found.actions[0].starts_with("Copy less"), "{:?}", found.actions);
        let rate = found.evidence.iter().find(|one| one.what == "mean rate of a copy");
        assert_eq!(rate.map(|one| one.value.clone()), Some(Cell::from(1e11)));
    }
}
