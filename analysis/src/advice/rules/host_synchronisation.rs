//! A host that waits for the GPU and so leaves it without work.

use std::collections::BTreeMap;

use flopwatch_measures::api_call::ApiCall;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::{Calls, IdleOwner};
use crate::advice::wording::{count as counted, share, time};
use crate::advice::{Area, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "idle time that begins in a synchronising call and ends with work that is launched after it, at most the call's length, of the window",
    2,
    "nsys-ai 0.3.0: synchronisation of 2 % of GPU time; here only the part that leaves the GPU idle",
);

/// Fires where the GPU runs dry while the host waits for it.
///
/// The time that the host is blocked is no cost by itself: a host that waits while the GPU works
/// loses nothing. What counts is idle time that begins while the host waits and ends with work that
/// is launched after the wait; and no more of a gap than its wait took, for without it the host
/// would be ahead by that and no more.
pub(super) static RULE: Rule = Rule {
    id: "host-synchronisation",
    title: "Host synchronisation drains the GPU",
    area: Area::Host,
    needs: &[&[Category::CudaKernel, Category::CudaGraph], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [fires, quiet],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let calls = || facts.calls.of_kind(ApiCall::Synchronize);
    let blocked = Calls::times(calls());
    let gaps = facts.idle_parts.gaps_of(IdleOwner::Synchronize);
    let idle = facts.gap_time(&gaps);
    let cost = facts.shared(facts.idle_parts.total_ns(IdleOwner::Synchronize));
    let window = facts.window.len();
    if !SHARE.reached(cost, window) {
        return Verdict::below(SHARE, cost, window);
    }
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for call in calls() {
        *by_name.entry(call.name).or_default() += 1;
    }
    let count: u64 = by_name.values().sum();
    let max = by_name
        .iter()
        .max_by_key(|(_, count)| **count)
        .map_or("", |(name, _)| name);
    FindingDraft::new(format!(
        "{}, most of them {max}, blocked the host for {}; {} of the GPU began meanwhile, ended with work that was launched afterwards and lasted {}, of which the waits explain at most {} ({} of the window).",
        counted(count, "synchronising call", "synchronising calls"),
        time(blocked.len_ns()),
        counted(u64::try_from(gaps.len()).unwrap_or(u64::MAX), "idle gap", "idle gaps"),
        time(idle),
        time(cost),
        share(cost, window)
    ))
    .worth(cost, "without the wait the next work would be queued when the GPU gets there; no more of a gap is counted than its wait took, for the host would be ahead by that")
    .evidence("synchronising calls", count, Unit::None)
    .evidence("host blocked in them", blocked.len_ns(), Unit::Ns)
    .evidence("idle gaps that began in them", idle, Unit::Ns)
    .evidence("idle time that they explain", cost, Unit::Ns)
    .at(facts.longest_gaps(&gaps))
    .do_this(facts.framework.pick(
        "Find what waits: .item(), .cpu(), print of a tensor, torch.cuda.synchronize(), boolean masks and nonzero in the loop.",
        "Find what waits: block_until_ready(), float(), np.asarray() and print of an array in the loop.",
        "Find what waits: calls of cudaStreamSynchronize, cudaDeviceSynchronize and cudaEventSynchronize in the loop.",
    ))
    .do_this(facts.framework.pick(
        "Log and check every N steps, keep scalars on the GPU, copy results to pinned memory with non_blocking=True and wait for an event later.",
        "Log and check every N steps, and read results one step late (copy_to_host_async()), so that the next step is dispatched first.",
        "Check results every N rounds, order streams among each other by cudaStreamWaitEvent instead of the host, and wait for an event later.",
    ))
    .into()
}

#[cfg(test)]
fn fires() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for at in 0..5 {
        scene.launch((at * 100, 5), "gemm", (at * 100 + 8, 70));
        scene.call("cudaStreamSynchronize_v3020", (at * 100 + 6, 73));
    }
    scene.build()
}

/// The host waits as long, but the next kernel is queued already.
#[cfg(test)]
fn quiet() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for at in 0..5 {
        scene.launch((at * 5, 5), "gemm", (at * 100 + 30, 100));
    }
    scene.call("cudaStreamSynchronize_v3020", (26, 300));
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;

    /// Four gaps of 130 us, each begun in a wait of 9 us: without its wait the host would be ahead
    /// by 9 us at each and no more.
    #[test]
    fn waits_are_worth_no_more_than_they_took() {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..5 {
            scene.launch((at * 200, 5), "gemm", (at * 200 + 8, 70));
            scene.call("cudaStreamSynchronize_v3020", (at * 200 + 70, 9));
        }
        let timeline = scene.build();
        let found = judge(&RULE, &Facts::of(&timeline, 5)).found();
        assert_eq!(found.gain.map(|(gain_ns, _)| gain_ns), Some(36_000));
        assert!(found.sentence.contains("4 idle gaps"), "{}", found.sentence);
    }

    /// Kernels that another thread launches while this one waits, as a thread does that waits for
    /// the end of it all.
    #[test]
    fn a_wait_that_ends_behind_the_launch_is_no_cause_of_the_gap() {
        let mut scene = crate::advice::scene::Scene::new();
        let track = flopwatch_model::Track::CudaApi;
        scene.on_thread(2, track, Category::CudaApi, "cudaDeviceSynchronize", (0, 600));
        for at in 0..5 {
            scene.launch((at * 100, 5), "gemm", (at * 100 + 8, 70));
        }
        let timeline = scene.build();
        assert_eq!(judge(&RULE, &Facts::of(&timeline, 5)), Verdict::Quiet);
    }

    #[test]
    fn a_wait_of_another_thread_counts_where_the_launch_follows_it() {
        let mut scene = crate::advice::scene::Scene::new();
        let track = flopwatch_model::Track::CudaApi;
        for at in 0..5 {
            scene.launch((at * 100, 5), "gemm", (at * 100 + 8, 70));
            scene.on_thread(2, track, Category::CudaApi, "cudaStreamSynchronize", (at * 100 + 6, 73));
        }
        let timeline = scene.build();
        let verdict = judge(&RULE, &Facts::of(&timeline, 5));
        assert!(matches!(verdict, Verdict::Fires(_)), "{verdict:?}");
    }
}
