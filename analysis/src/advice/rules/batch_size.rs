//! A batch that is too small for the GPU.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{bytes, share};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const UNUSED: Threshold = Threshold::percent(
    "idle time and time of multiprocessors without a block, of the window",
    50,
    "ours: a batch twice as large could run in the same time",
);
const SHORT: Threshold = Threshold::percent(
    "kernels below 10 µs of all kernels",
    50,
    "ours; 10 µs as of the rule small-kernels",
);
const SMALL: Threshold = Threshold::percent(
    "time of kernels with fewer blocks than the GPU has multiprocessors, of kernels that compute",
    50,
    "ours; ncu's rule calls such a grid too small",
);
const RESERVED: Threshold = Threshold::percent(
    "memory that the framework reserved, of the GPU's, up to which it fires",
    50,
    "ours: memory grows in proportion to the batch at most, so that one twice as large fits",
);
/// As of the rule small-kernels.
const SHORT_NS: u64 = 10_000;

/// Fires where the GPU is little used, its kernels are short, their grids do not fill it, and its
/// memory is half empty: all four, for each alone has other causes.
pub(super) static RULE: Rule = Rule {
    id: "batch-size",
    title: "The batch may be too small",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[UNUSED, SHORT, SMALL, RESERVED],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(40_000_000_000), || scene(40_000_000_001)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(kernels) = facts.events(Category::CudaKernel) else {
        return Verdict::Quiet;
    };
    let grids = facts.grids();
    if grids.known == 0 {
        return Verdict::abstain("the source says no grids of kernels, or not how many multiprocessors the GPU has");
    }
    let reserved = facts.reserved();
    // Of several GPUs the fullest one decides.
    let full = |of: &(u64, u64)| u128::from(of.0) * 1_000_000 / u128::from(of.1.max(1));
    let known = reserved.values().filter_map(|one| Some((one.bytes, one.memory_bytes?)));
    let Some((reserved, memory)) = known.max_by_key(full) else {
        return Verdict::abstain(
            "how much of the GPU's memory is used was not recorded; profile with profile_memory=True",
        );
    };
    let window = facts.window.len();
    let idle = facts.per_gpu(|gpu| gpu.idle.len_ns());
    let unused = idle + facts.shared(grids.all_unused_ns());
    let short = kernels.duration_ns.iter().filter(|length| **length < SHORT_NS).count();
    let short = u64::try_from(short).unwrap_or(u64::MAX);
    let fits = u128::from(reserved) * 100 <= u128::from(RESERVED.value) * u128::from(memory);
    let holds = UNUSED.reached(unused, window)
        && SHORT.reached(short, kernels.count())
        && SMALL.reached(grids.small_ns, grids.known_ns)
        && fits;
    if !holds {
        return Verdict::Quiet;
    }
    FindingDraft::new(format!(
        "Idle time and multiprocessors without a block make {} of the window; {} of kernels run for less than 10 µs, {} of the time of kernels is of grids smaller \
         than the GPU, and {} of its {} of memory is reserved.",
        share(unused, window),
        share(short, kernels.count()),
        share(grids.small_ns, grids.known_ns),
        bytes(reserved),
        bytes(memory)
    ))
    .severity(Severity::Medium)
    .confidence(Confidence::Low)
    .evidence("idle", idle, Unit::Ns)
    .evidence("multiprocessors without a block", unused - idle, Unit::Ns)
    .evidence("kernels below 10 µs", short, Unit::None)
    .evidence("time of grids smaller than the GPU", grids.small_ns, Unit::Ns)
    .evidence("memory reserved", reserved, Unit::Bytes)
    .do_this("Double the batch, capture again, and compare the time per sample (analysis `compare`): while it falls, go on, as far as memory and convergence allow.")
    .do_this("Where one request must be fast (inference), the batch is not to blame: look at its launches (analysis `launches`) and at the lengths of its kernels.")
    .into()
}

/// Kernels of 16 blocks on 132 multiprocessors that run 5 of 20 us, with so much of 80 GB reserved.
#[cfg(test)]
fn scene(reserved: u64) -> flopwatch_model::Timeline {
    use flopwatch_model::{Allocation, ColumnId};

    let mut scene = crate::advice::scene::Scene::new();
    scene.device((9, 0), 132);
    for at in 0..10 {
        let kernel = scene.kernel("add", (at * 20, 5));
        for (id, value) in [(ColumnId::GridX, 16), (ColumnId::GridY, 1), (ColumnId::GridZ, 1)] {
            scene.number(kernel, id, value);
        }
    }
    let mut timeline = scene.build();
    timeline.capture.allocations.push(Allocation {
        t_ns: 5,
        process: 1,
        device: Some(0),
        bytes: 4096,
        reserved: Some(reserved),
        ..Allocation::default()
    });
    timeline
}
