//! Kernels that use a part of the GPU only.

use flopwatch_model::{Category, NameId};
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::{share, short, time};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "time of multiprocessors without a block, of the window",
    3,
    "ours; ncu's rule calls such a grid too small",
);

/// Fires where compute kernels have fewer blocks than the GPU has multiprocessors, and nothing else
/// runs beside them.
pub(super) static RULE: Rule = Rule {
    id: "small-grids",
    title: "Grids are smaller than the GPU",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(33), || scene(132)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let grids = facts.grids();
    if grids.known == 0 {
        return Verdict::abstain("the source says no grids of kernels, or not how many multiprocessors the GPU has");
    }
    let (unused, window) = (facts.shared(grids.all_unused_ns()), facts.window.len());
    if !SHARE.reached(unused, window) {
        return Verdict::Quiet;
    }
    let mut names: Vec<(NameId, u64)> = grids.unused_ns.into_iter().collect();
    names.sort_by_key(|(_, unused)| std::cmp::Reverse(*unused));
    let rows = names.into_iter().take(facts.rows).map(|(name, unused)| Evidence {
        what: format!("share of the GPU without a block in {}", short(self::name(facts, name))),
        value: Cell::from(unused),
        unit: Unit::Ns,
        place: None,
    });
    FindingDraft::new(format!(
        "Kernels with fewer blocks than the GPU has multiprocessors ran alone; the idle multiprocessors make {} ({} of the window).",
        time(unused),
        share(unused, window)
    ))
    .worth(unused, "the same work is spread over all multiprocessors and scales with them: an upper bound")
    .confidence(Confidence::Medium)
    .evidence("idle part of the GPU", unused, Unit::Ns)
    .at(rows)
    .do_this("Use a larger batch, or a kernel that splits the reduction dimension (split-K, stream-K, flash-decoding).")
    .do_this("Run independent small kernels on several streams side by side.")
    .into()
}

fn name<'a>(facts: &Facts<'a>, id: NameId) -> &'a str {
    let kernels = facts.events(Category::CudaKernel);
    let name = kernels.and_then(|kernels| kernels.names.get(id.index()));
    name.map_or("", String::as_str)
}

#[cfg(test)]
fn scene(blocks: u64) -> flopwatch_model::Timeline {
    use flopwatch_model::ColumnId;

    let mut scene = crate::advice::scene::Scene::new();
    scene.device((9, 0), 132);
    for at in 0..4 {
        let kernel = scene.kernel("gemm", (at * 100, 90));
        for (id, value) in [(ColumnId::GridX, blocks), (ColumnId::GridY, 1), (ColumnId::GridZ, 1)] {
            scene.number(kernel, id, value);
        }
    }
    scene.build()
}
