//! Calls of the CUDA API that failed.

use std::collections::BTreeMap;

use flopwatch_model::Category;
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::count;
use crate::advice::{Area, Evidence, Facts, FindingDraft, Rule, Severity, Verdict};

/// `cudaErrorNotReady` and `CUDA_ERROR_NOT_READY`: the answer of a query, and no failure.
const NOT_READY: u64 = 600;
/// `cudaErrorMemoryAllocation` and `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u64 = 2;
/// `cudaErrorPeerAccessAlreadyEnabled` and its twin of the driver: frameworks ask for it again and
/// go on.
const ALREADY_ENABLED: u64 = 704;

/// Fires where calls returned an error, but for those that only ask whether work is done.
pub(super) static RULE: Rule = Rule {
    id: "failed-calls",
    title: "Calls of the CUDA API failed",
    area: Area::Host,
    needs: &[&[Category::CudaApi]],
    of_gpu_work: false,
    thresholds: &[],
    evaluate,
    #[cfg(test)]
    captures: [|| returned(OUT_OF_MEMORY), || returned(NOT_READY)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let says = facts
        .events(Category::CudaApi)
        .is_none_or(|calls| calls.is_empty() || calls.column(flopwatch_model::ColumnId::ReturnValue).is_some());
    if !says {
        return Verdict::abstain("the source does not say what calls returned, or every call succeeded");
    }
    let mut failed: BTreeMap<(&str, u64), (u64, Evidence)> = BTreeMap::new();
    for call in facts.calls.named(|_, _| true) {
        let code = facts.calls.returned(call.at).unwrap_or(0);
        if [0, NOT_READY, ALREADY_ENABLED].contains(&code) {
            continue;
        }
        let first = || Evidence {
            what: format!("{} returned {code}", call.name),
            value: Cell::Nothing,
            unit: Unit::None,
            place: Some(Facts::location(call.time, call.row)),
        };
        failed.entry((call.name, code)).or_insert_with(|| (0, first())).0 += 1;
    }
    let total: u64 = failed.values().map(|(number, _)| number).sum();
    if total == 0 {
        return Verdict::Quiet;
    }
    let memory = failed.keys().any(|(_, code)| *code == OUT_OF_MEMORY);
    let mut rows: Vec<(u64, Evidence)> = failed.into_values().collect();
    rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let rows = rows.into_iter().take(facts.rows).map(|(count, evidence)| Evidence {
        value: Cell::from(count),
        ..evidence
    });
    let found = FindingDraft::new(format!(
        "{} of the CUDA API returned an error.",
        count(total, "call", "calls")
    ))
    .severity(if memory { Severity::High } else { Severity::Medium })
    .at(rows);
    let found = if memory {
        found.do_this(facts.framework.pick(
            "Code 2 is out of memory: the allocator frees its cache and tries again, which stalls the GPU. Use a smaller batch, activation checkpointing, or expandable segments (PYTORCH_ALLOC_CONF=expandable_segments:True; PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.9).",
            "Code 2 is out of memory. Use a smaller batch, rematerialization (jax.checkpoint), or donated arguments (donate_argnums).",
            "Code 2 is out of memory. Use smaller pieces of the problem, or free what is no longer needed.",
        ))
    } else {
        found.do_this("Look the code up (cudaError_t, CUresult) and see whether the program means to go on after it.")
    };
    found.into()
}

#[cfg(test)]
fn returned(code: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 5));
    let call = scene.call("cudaMalloc", (20, 5));
    scene.number(call, flopwatch_model::ColumnId::ReturnValue, code);
    scene.build()
}
