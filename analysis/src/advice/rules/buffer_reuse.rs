//! Memory that is asked of the driver although as much was given back before.

use std::collections::BTreeMap;

use flopwatch_measures::reuse::Reuse;
use flopwatch_model::{Allocation, MemoryKind};
use flopwatch_report::page::{Cell, TimelineLocation, Unit};

use crate::advice::wording::{bytes, share};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const REUSES: Threshold = Threshold::count(
    "allocations after the warm-up that a buffer given back before could serve",
    10,
    "ours: fewer cost nothing",
);
const SHARE: Threshold = Threshold::percent(
    "such allocations of all after the warm-up",
    50,
    "ours: a reuse ratio of 2; the contract with earlier tools sees no benefit near 1",
);

/// Fires where, after the warm-up, most requests to the driver could have been served from what was
/// given back to it before: an allocator that keeps memory would make none of them.
pub(super) static RULE: Rule = Rule {
    id: "buffer-reuse",
    title: "Buffers are not reused",
    area: Area::Memory,
    needs: &[],
    of_gpu_work: true,
    thresholds: &[REUSES, SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(true), || scene(false)],
};

/// Whose memory: process and device.
type Owner = (u32, u32);

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let mut requests = Reuse::in_window(facts.steady);
    let mut reserved: BTreeMap<Owner, u64> = BTreeMap::new();
    let mut is_known = false;
    for allocation in &facts.timeline.capture.allocations {
        let Some((owner, bytes)) = asked(allocation, &mut reserved) else {
            continue;
        };
        is_known = true;
        if bytes != 0 {
            requests.add(owner, bytes, allocation.t_ns);
        }
    }
    if !is_known {
        return Verdict::abstain(
            "what was asked of the driver was not recorded; profile with nsys --cuda-memory-usage=true or with profile_memory=True",
        );
    }
    let reuses = requests.reuses;
    if reuses < REUSES.value || !SHARE.reached(reuses, requests.allocations) {
        return Verdict::Quiet;
    }
    let mut sizes: Vec<_> = requests.sizes.iter().filter(|(_, of)| of.reuses > 0).collect();
    sizes.sort_by_key(|((owner, size), of)| (std::cmp::Reverse(of.reuses), *owner, *size));
    let rows = sizes
        .into_iter()
        .take(facts.rows)
        .map(|(((_, device), size), of)| Evidence {
            what: format!("allocations of {} on GPU {device} that reuse would save", bytes(*size)),
            value: Cell::from(of.reuses),
            unit: Unit::None,
            place: Some(TimelineLocation::new(of.first_ns, of.first_ns.saturating_add(1), None)),
        });
    let all = requests.allocations;
    FindingDraft::new(format!(
        "{} {all} allocations were asked of the driver; for {reuses} of them ({}; {} in all) a buffer of that size had been given back before.",
        facts.warm_up.0,
        share(reuses, all),
        bytes(requests.saved_bytes)
    ))
    .severity(Severity::Medium)
    .confidence(if facts.warm_up.1 { Confidence::High } else { Confidence::Low })
    .evidence("allocations", all, Unit::None)
    .evidence("of them such that reuse would save", reuses, Unit::None)
    .evidence("allocations per buffer that is needed", requests.ratio().unwrap_or(1.0), Unit::None)
    .at(rows)
    .do_this(facts.framework.pick(
        "Keep buffers and use them again: PyTorch's allocator without torch.cuda.empty_cache() in the loop.",
        "Keep buffers and use them again: donate arguments (donate_argnums of jax.jit), and leave XLA_PYTHON_CLIENT_PREALLOCATE on.",
        "Keep buffers and use them again: a pool (cudaMallocAsync with a release threshold, RMM).",
    ))
    .do_this(facts.framework.pick(
        "Where the caching allocator asks again and again, its memory is full or fragmented: PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.9), a smaller batch. What the calls cost is in the finding on allocation.",
        "Where the pool asks again and again, memory is full or fragmented: a smaller batch. What the calls cost is in the finding on allocation.",
        "Where a pool asks again and again, its memory is full or fragmented. What the calls cost is in the finding on allocation.",
    ))
    .into()
}

/// What the driver was asked for, in bytes: below 0 is given back. Of a framework's allocator that
/// is by how much its reservation changes.
fn asked(allocation: &Allocation, reserved: &mut BTreeMap<Owner, u64>) -> Option<(Owner, i64)> {
    let owner = (allocation.process, allocation.device?);
    if let Some(kind) = allocation.kind {
        return (kind != MemoryKind::DeviceStatic).then_some((owner, allocation.bytes));
    }
    let now = allocation.reserved?;
    let before = reserved.insert(owner, now).unwrap_or(now);
    let change = i64::try_from(now.abs_diff(before)).unwrap_or(i64::MAX);
    Some((owner, if now < before { -change } else { change }))
}

/// Twelve buffers of 4 KiB in a second, each given back at once or kept.
#[cfg(test)]
fn scene(gives_back: bool) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (0, 1000));
    for at in 0..12 {
        scene.allocation((200 + at * 20) * 1000, 4096);
        if gives_back {
            scene.allocation((210 + at * 20) * 1000, -4096);
        }
    }
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;

    #[test]
    fn a_reservation_that_shrinks_and_grows_by_as_much_is_not_reused() {
        let mut scene = crate::advice::scene::Scene::new();
        scene.kernel("gemm", (0, 1000));
        let mut timeline = scene.build();
        for at in 0..24 {
            timeline.capture.allocations.push(Allocation {
                t_ns: 200_000 + at * 1000,
                process: 1,
                device: Some(0),
                bytes: 512,
                allocated: Some(512),
                reserved: Some(if at % 2 == 0 { 2_097_152 } else { 4_194_304 }),
                ..Allocation::default()
            });
        }
        // Twelve growths; before the first nothing had been given back.
        let found = judge(&RULE, &Facts::of(&timeline, 5)).found();
        assert_eq!(
            (&found.evidence[0].value, &found.evidence[1].value),
            (&Cell::from(12_u64), &Cell::from(11_u64))
        );
    }
}
