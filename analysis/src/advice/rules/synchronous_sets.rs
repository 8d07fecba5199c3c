//! Sets of memory for which the host waits.

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::work::Work;
use flopwatch_model::{Category, ColumnId, MemoryKind, index};
use flopwatch_report::page::Unit;

use crate::advice::facts::Calls;
use crate::advice::wording::{count, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Severity, Verdict};

/// Fires on nsys's rule `cuda_memset_sync`: a set that is not asynchronous, of pinned or managed
/// memory.
pub(super) static RULE: Rule = Rule {
    id: "synchronous-sets",
    title: "Synchronous sets of memory",
    area: Area::Transfers,
    needs: &[&[Category::CudaMemset], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(MemoryKind::Managed), || scene(MemoryKind::Device)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(sets) = facts.events(Category::CudaMemset) else {
        return Verdict::Quiet;
    };
    let Some(kinds) = sets.column(ColumnId::DstMemoryKind) else {
        return Verdict::abstain("the source does not say which kind of memory was set");
    };
    let call = |work: &Work| {
        let call = facts.calls.get(work.launch(facts.timeline)?)?;
        (call.kind == ApiCall::Set && !call.name.contains("Async")).then_some(call)
    };
    let waits = facts.work.all().iter().filter(|work| {
        let kind = || kinds.get(index(work.at)).and_then(MemoryKind::from_number);
        let of_host = |kind| matches!(kind, MemoryKind::Pinned | MemoryKind::Managed);
        work.category == Category::CudaMemset && kind().is_some_and(of_host) && call(work).is_some()
    });
    let waits: Vec<Work> = waits.copied().collect();
    if waits.is_empty() {
        return Verdict::Quiet;
    }
    let blocked = Calls::times(waits.iter().filter_map(call)).len_ns();
    let number = u64::try_from(waits.len()).unwrap_or(u64::MAX);
    FindingDraft::new(format!(
        "{} of pinned or managed memory blocked the host for {}.",
        count(number, "synchronous set", "synchronous sets"),
        time(blocked)
    ))
    .severity(Severity::Low)
    .confidence(Confidence::High)
    .evidence("host blocked in them", blocked, Unit::Ns)
    .at(facts.longest_work("longest set", &waits))
    .do_this("Use cudaMemsetAsync on the stream that works with the memory.")
    .into()
}

#[cfg(test)]
fn scene(kind: MemoryKind) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    let set = scene.copy(Category::CudaMemset, "cudaMemset_v3020", (0, 50), (10, 30), 4096);
    scene.number(set, ColumnId::DstMemoryKind, kind.number().into());
    scene.build()
}
