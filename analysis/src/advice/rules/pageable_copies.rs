//! Asynchronous copies that are none, because the host's memory is pageable.

use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::Intervals;
use flopwatch_measures::work::Work;
use flopwatch_model::{Category, ColumnId, MemoryKind, index};
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "such copies beside which nothing computes, of the window",
    1,
    "ours; the condition is nsys's rule cuda_memcpy_async, which has no threshold",
);

/// Fires where `cudaMemcpy*Async` copies from or to pageable memory.
pub(super) static RULE: Rule = Rule {
    id: "pageable-copies",
    title: "Asynchronous copies of pageable memory",
    area: Area::Transfers,
    needs: &[&[Category::CudaMemcpyH2d, Category::CudaMemcpyD2h]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(MemoryKind::Pageable), || scene(MemoryKind::Pinned)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let recorded = Category::MEMCPY.iter().filter_map(|category| facts.events(*category));
    let mut recorded = recorded.peekable();
    if recorded.peek().is_some() && !recorded.any(|copies| copies.column(ColumnId::SrcMemoryKind).is_some()) {
        return Verdict::abstain("the source does not say which kind of memory was copied");
    }
    let kind = |work: &Work, id| work.events(facts.timeline)?.column(id)?.get(index(work.at));
    let is_pageable = |work: &Work, id| kind(work, id).and_then(MemoryKind::from_number) == Some(MemoryKind::Pageable);
    let found = facts.work.all().iter().filter(|work| {
        Category::MEMCPY.contains(&work.category)
            && (is_pageable(work, ColumnId::SrcMemoryKind) || is_pageable(work, ColumnId::DstMemoryKind))
            && call_name(facts, work).is_some_and(|name| name.contains("Memcpy") && name.contains("Async"))
    });
    let copies: Vec<Work> = found.copied().collect();
    let exposed: u64 = facts
        .gpus
        .iter()
        .map(|gpu| {
            let own = copies
                .iter()
                .filter(|work| Gpu::of_row(facts.timeline, work.row) == Some(gpu.gpu));
            let own: Intervals = own.map(|work| work.time).collect();
            own.subtract(&gpu.compute).subtract(&gpu.communication).len_ns()
        })
        .sum();
    let (exposed, window) = (facts.shared(exposed), facts.window.len());
    if !SHARE.reached(exposed, window) {
        return Verdict::below(SHARE, exposed, window);
    }
    let moved = facts.moved(&copies);
    let number = u64::try_from(copies.len()).unwrap_or(u64::MAX);
    let found = FindingDraft::new(format!(
        "{} ({}) used pageable memory, so the driver copies twice and the call waits; {} of it is not hidden by kernels ({} of the window).",
        count(number, "asynchronous copy", "asynchronous copies"),
        moved.text(),
        time(exposed),
        share(exposed, window)
    ));
    moved
        .add_evidence(found)
    .worth(exposed / 2, "pinned memory halves the time of the copies; that they can then overlap is not counted")
    .confidence(Confidence::High)
    .evidence("copies without computation beside them", exposed, Unit::Ns)
    .at(facts.longest_work("longest copy", &copies))
    .do_this(facts.framework.pick(
        "Pin the host's memory: DataLoader(pin_memory=True), tensor.pin_memory().",
        "Copy from pinned memory: keep arrays in the memory kind pinned_host (jax.sharding with memory_kind), or hand over arrays of a library that pins.",
        "Pin the host's memory: cudaHostAlloc or cudaHostRegister.",
    ))
    .into()
}

/// The name of the call that asked for a copy.
fn call_name<'a>(facts: &Facts<'a>, work: &Work) -> Option<&'a str> {
    Some(facts.calls.get(work.launch(facts.timeline)?)?.name)
}

#[cfg(test)]
fn scene(kind: MemoryKind) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    let copy = scene.copy(
        Category::CudaMemcpyH2d,
        "cudaMemcpyAsync_v3020",
        (0, 5),
        (7, 10),
        1 << 20,
    );
    scene.number(copy, ColumnId::SrcMemoryKind, kind.number().into());
    scene.number(copy, ColumnId::DstMemoryKind, MemoryKind::Device.number().into());
    scene.kernel("gemm", (17, 90));
    scene.build()
}
