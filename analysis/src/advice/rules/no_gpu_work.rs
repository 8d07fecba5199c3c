//! A program that uses the GPU, in a capture without a kernel.

use flopwatch_measures::api_call::ApiCall;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::count;
use crate::advice::{Area, Facts, FindingDraft, Rule, Severity, Verdict};

/// Fires where calls launched work and no kernel was recorded.
pub(super) static RULE: Rule = Rule {
    id: "no-gpu-work",
    title: "Launches without kernels",
    area: Area::Capture,
    needs: &[&[Category::CudaApi]],
    of_gpu_work: false,
    thresholds: &[],
    evaluate,
    #[cfg(test)]
    captures: [fires, quiet],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let is_there = |category| facts.events(category).is_some_and(|events| !events.is_empty());
    let launches = facts.calls.of_kind(ApiCall::Launch).count();
    if is_there(Category::CudaKernel) || is_there(Category::CudaGraph) || launches == 0 {
        return Verdict::Quiet;
    }
    let graphs = facts.calls.named(|name, _| name.contains("GraphLaunch")).count();
    let found = FindingDraft::new(format!(
        "{} launched work and no kernel was recorded: nothing can be said of the GPU's time.",
        count(u64::try_from(launches).unwrap_or(u64::MAX), "call", "calls")
    ))
    .severity(Severity::High)
    .evidence("launch calls", launches, Unit::None)
    .evidence("of them launches of CUDA graphs", graphs, Unit::None);
    let found = if graphs > 0 {
        found.do_this("Capture again with CUDA graphs traced by node (nsys: --cuda-graph-trace=node).")
    } else {
        found.do_this("Capture again with GPU activity traced, on a driver that lets the profiler read it.")
    };
    found.into()
}

#[cfg(test)]
fn fires() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.call("cudaGraphLaunch_v10000", (0, 10));
    scene.build()
}

#[cfg(test)]
fn quiet() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 5));
    scene.build()
}
