//! Kernels so short that the GPU spends its time between them.

use flopwatch_measures::gap::{IdleClass, KERNEL_WAIT_NS};
use flopwatch_model::Category;
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::{share, short, time};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHORT: Threshold = Threshold::ns(
    "length below which a kernel is short",
    10_000,
    "nsys-ai 0.3.0: kernels averaging less than 10 µs",
);
const MANY: Threshold = Threshold::percent("short kernels of all kernels", 50, "ours: the usual kernel is short");
const GAPS: Threshold = Threshold::percent(
    "gaps below 30 µs after which a short kernel runs that was launched in time, of the window",
    2,
    "ours: the noise of one run",
);

/// Fires where most kernels are short and the gaps between kernels add up.
pub(super) static RULE: Rule = Rule {
    id: "small-kernels",
    title: "Many small kernels",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHORT, MANY, GAPS],
    evaluate,
    #[cfg(test)]
    captures: [|| scene("add", 10, 4), || scene("gemm", 110, 100)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(kernels) = facts.events(Category::CudaKernel) else {
        return Verdict::Quiet;
    };
    let is_short = |length: u64| length < SHORT.value;
    let mut by_name = vec![(0_u64, 0_u64); kernels.names.len()];
    let mut count = 0_u64;
    for (name, length) in kernels.name.iter().zip(&kernels.duration_ns) {
        if is_short(*length) {
            count += 1;
            if let Some(entry) = by_name.get_mut(name.index()) {
                entry.0 += 1;
                entry.1 += length;
            }
        }
    }
    // Gaps that end with a short kernel and are short themselves, and that no late launch has
    // made: one kernel after another, with nothing else in the way.
    let before_short = facts.gaps().filter(|gap| {
        gap.time.len() < KERNEL_WAIT_NS
            && matches!(gap.class, IdleClass::KernelWait | IdleClass::LaunchNotRecorded)
            && facts
                .behind(gap)
                .is_some_and(|work| work.category == Category::CudaKernel && is_short(work.time.len()))
    });
    let gaps = facts.gap_time(before_short);
    let window = facts.window.len();
    if !MANY.reached(count, kernels.count()) || !GAPS.reached(gaps, window) {
        return Verdict::Quiet;
    }
    let names = kernels.names.iter().zip(by_name);
    let mut names: Vec<(&String, (u64, u64))> = names.filter(|(_, (count, _))| *count > 0).collect();
    names.sort_by_key(|(_, (count, total))| std::cmp::Reverse((*count, *total)));
    let rows = names.into_iter().take(facts.rows).map(|(name, (count, _))| Evidence {
        what: format!("launches of {}", short(name)),
        value: Cell::from(count),
        unit: Unit::None,
        place: None,
    });
    FindingDraft::new(format!(
        "{count} of {} kernels ({}) run for less than 10 µs; the short gaps before them add up to {} ({} of the window).",
        kernels.count(),
        share(count, kernels.count()),
        time(gaps),
        share(gaps, window)
    ))
    .worth(gaps, "the small kernels are fused into their neighbours, so that the gaps before them go; their own time is not counted")
    .confidence(Confidence::Medium)
    .evidence("kernels below 10 µs", count, Unit::None)
    .evidence("gaps before them", gaps, Unit::Ns)
    .at(rows)
    .do_this(facts.framework.pick(
        "Fuse element-wise work: torch.compile, fused optimizers (fused=True, foreach), fused layer norm and attention.",
        "Put the whole step into one jax.jit, so that XLA fuses element-wise work; use fused attention (jax.nn.dot_product_attention).",
        "Fuse kernels that follow each other on the same data.",
    ))
    .do_this("Where the sequence repeats with the same shapes, record it as a CUDA graph.")
    .into()
}

#[cfg(test)]
fn scene(name: &str, every: u64, length: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for at in 0..10 {
        scene.launch((at, 1), name, (at * every + 20, length));
    }
    scene.build()
}
