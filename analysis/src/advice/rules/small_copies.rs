//! Many copies of little data.

use std::collections::BTreeMap;

use flopwatch_measures::interval::Intervals;
use flopwatch_measures::work::Work;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{bytes, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SIZE: Threshold = Threshold::new(
    "size up to which a copy is small",
    65_536,
    Unit::Bytes,
    "CUDA: up to 64 KiB the fixed cost of a copy outweighs the transfer",
);
const MANY: Threshold = Threshold::count(
    "small copies in one direction",
    100,
    "ours: one per step of a usual capture is fine",
);
const SHARE: Threshold = Threshold::percent("small copies beside which nothing computes, of the window", 1, "ours");

/// Fires where many small copies in one direction take time beside no kernel.
pub(super) static RULE: Rule = Rule {
    id: "small-copies",
    title: "Many small copies",
    area: Area::Transfers,
    needs: &[&[
        Category::CudaMemcpyH2d,
        Category::CudaMemcpyD2h,
        Category::CudaMemcpyD2d,
    ]],
    of_gpu_work: true,
    thresholds: &[SIZE, MANY, SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(100), || scene(99)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let mut by_category: BTreeMap<Category, Vec<Work>> = BTreeMap::new();
    for work in facts.work.all() {
        let size = || work.bytes(facts.timeline);
        if Category::MEMCPY.contains(&work.category) && size().is_some_and(|size| size <= SIZE.value) {
            by_category.entry(work.category).or_default().push(*work);
        }
    }
    let many = |list: &&(Category, Vec<Work>)| u64::try_from(list.1.len()).is_ok_and(|count| count >= MANY.value);
    let all: Vec<(Category, Vec<Work>)> = by_category.into_iter().collect();
    let copies: Vec<Work> = all.iter().filter(many).flat_map(|(_, list)| list).copied().collect();
    let times: Intervals = copies.iter().map(|work| work.time).collect();
    let exposed = facts.per_gpu(|gpu| times.intersect(&gpu.exposed_memory).len_ns());
    let window = facts.window.len();
    if !SHARE.reached(exposed, window) {
        return Verdict::Quiet;
    }
    // All have a size, or they would not be known to be small.
    let moved = facts.moved(&copies).bytes;
    let count = u64::try_from(copies.len()).unwrap_or(u64::MAX);
    FindingDraft::new(format!(
        "{count} copies of at most 64 KiB move {} together and take {} beside no kernel ({} of the window).",
        bytes(moved),
        time(exposed),
        share(exposed, window)
    ))
    .worth(exposed, "the data is moved in a few large copies, whose own time is small beside it")
    .confidence(Confidence::Medium)
    .evidence("small copies", count, Unit::None)
    .evidence("mean size", moved.checked_div(count).unwrap_or(0), Unit::Bytes)
    .evidence("small copies without computation beside them", exposed, Unit::Ns)
    .at(facts.longest_work("longest small copy", &copies))
    .do_this(facts.framework.pick(
        "Gather the data in one buffer and copy it once; keep scalars on the GPU (each .item() or .tolist() is such a copy).",
        "Gather the data in one array and copy it once; keep scalars on the GPU (each float() or np.asarray() is such a copy).",
        "Gather the data in one buffer and copy it once; keep scalars on the GPU.",
    ))
    .into()
}

#[cfg(test)]
fn scene(copies: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for at in 0..copies {
        scene.copy(
            Category::CudaMemcpyD2h,
            "cudaMemcpyAsync",
            (at * 10, 3),
            (at * 10 + 4, 2),
            4,
        );
    }
    scene.kernel("gemm", (2000, 10));
    scene.build()
}
