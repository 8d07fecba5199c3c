//! A GPU whose memory is almost full.

use flopwatch_report::page::{Cell, TimelineLocation, Unit};

use crate::advice::wording::{bytes, share};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const FULL: Threshold = Threshold::percent(
    "memory that the framework reserved, of the GPU's",
    90,
    "ours: the rest is for the CUDA context, NCCL and libraries",
);

/// Fires where the framework has reserved most of a GPU's memory.
pub(super) static RULE: Rule = Rule {
    id: "memory-full",
    title: "The GPU's memory is almost full",
    area: Area::Memory,
    needs: &[],
    of_gpu_work: false,
    thresholds: &[FULL],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(72_000_000_000), || scene(71_999_999_999)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let max = facts.reserved();
    if max.is_empty() {
        return Verdict::abstain(
            "the reservations of the framework's allocator were not recorded; profile with profile_memory=True",
        );
    }
    let known = max
        .into_iter()
        .filter_map(|(device, max)| Some((device, max, max.memory_bytes?)));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return Verdict::abstain("the source does not say how much memory the GPU has");
    }
    let full = known.iter().filter(|(_, max, size)| FULL.reached(max.bytes, *size));
    let full: Vec<_> = full.collect();
    let Some((device, first, size)) = full.first() else {
        return Verdict::Quiet;
    };
    let given = first.allocated_bytes.map_or(String::new(), |allocated| {
        format!(", of which {} are given out", bytes(allocated))
    });
    let rows = full.iter().take(facts.rows).map(|(device, max, _)| Evidence {
        what: format!("reserved on GPU {device}"),
        value: Cell::from(max.bytes),
        unit: Unit::Bytes,
        place: Some(TimelineLocation::new(max.t_ns, max.t_ns.saturating_add(1), None)),
    });
    FindingDraft::new(format!(
        "The framework has reserved {} of {} on GPU {device} ({}){given}: a longer sequence or another library's buffer fails.",
        bytes(first.bytes),
        bytes(*size),
        share(first.bytes, *size)
    ))
    .severity(Severity::Medium)
    .confidence(Confidence::High)
    .at(rows)
    .do_this("Use activation checkpointing, a smaller batch with gradient accumulation, or sharded optimiser state.")
    .do_this("Where much more is reserved than given out, memory is fragmented: PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.9).")
    .into()
}

/// A GPU of 80 GB, and a reservation.
#[cfg(test)]
fn scene(reserved: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.device((9, 0), 132);
    scene.kernel("gemm", (0, 100));
    let mut timeline = scene.build();
    timeline.capture.allocations.push(flopwatch_model::Allocation {
        t_ns: 5,
        process: 1,
        device: Some(0),
        bytes: 4096,
        allocated: Some(4096),
        reserved: Some(reserved),
        ..flopwatch_model::Allocation::default()
    });
    timeline
}
