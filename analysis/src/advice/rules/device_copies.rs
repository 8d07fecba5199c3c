//! Copies within a GPU.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "copies within the GPU beside which nothing computes, of the window",
    5,
    "ours, as of copies with the host",
);

/// Fires where copies within the GPU take a part of the window.
pub(super) static RULE: Rule = Rule {
    id: "device-copies",
    title: "Copies within the GPU",
    area: Area::Transfers,
    needs: &[&[Category::CudaMemcpyD2d]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(10), || scene(4)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let exposed = facts.per_gpu(|gpu| gpu.exposed_copies(Category::CudaMemcpyD2d).len_ns());
    let window = facts.window.len();
    if !SHARE.reached(exposed, window) {
        return Verdict::below(SHARE, exposed, window);
    }
    let copies = || {
        facts
            .work
            .all()
            .iter()
            .filter(|work| work.category == Category::CudaMemcpyD2d)
    };
    let moved = facts.moved(copies());
    let found = FindingDraft::new(format!(
        "{} within the GPU moved {} and took {} beside no kernel ({} of the window): they only move what is there already.",
        count(u64::try_from(copies().count()).unwrap_or(u64::MAX), "copy", "copies"),
        moved.text(),
        time(exposed),
        share(exposed, window)
    ));
    moved
        .add_evidence(found)
    .worth(exposed, "the copies are not needed")
    .confidence(Confidence::Medium)
    .evidence("copies without computation beside them", exposed, Unit::Ns)
    .at(facts.longest_work("longest copy", copies()))
    .do_this(facts.framework.pick(
        "Write results where they belong: out= and in-place operators, views in place of torch.cat and .contiguous(), gradients as views of the buckets (gradient_as_bucket_view=True).",
        "Let results take the place of arguments: donate buffers (donate_argnums of jax.jit), and look for copy operations in the analysis `hlo-operations`.",
        "Write results where they belong: let kernels write to the final buffer, and swap pointers instead of copying.",
    ))
    .into()
}

#[cfg(test)]
fn scene(length: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (0, 90));
    scene.copy(
        Category::CudaMemcpyD2d,
        "cudaMemcpyAsync",
        (0, 5),
        (90, length),
        1 << 20,
    );
    scene.build()
}
