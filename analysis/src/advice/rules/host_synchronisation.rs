//! A host that waits for the GPU and so leaves it without work.

use std::collections::BTreeMap;

use crate::advice::facts::Calls;
use crate::advice::wording::{count as counted, share, time};
use crate::advice::{About, Area, Facts, Found, Rule, Threshold, Verdict};
use crate::measures::api_call::ApiCall;
use crate::model::Category;
use crate::page::Unit;

/// Fires where the GPU runs dry while the host waits for it.
///
/// The time that the host is blocked is no cost by itself: a host that waits while the GPU works loses nothing. What counts is the idle
/// time that begins while the host waits, for then nothing can have been launched ahead; and of each such gap no more than the wait took, for
/// without it the host would be ahead by that and no more.
#[derive(Debug)]
pub(super) struct HostSynchronisation;

const SHARE: Threshold = Threshold::percent(
    "idle time that begins in a synchronising call, of each gap at most the length of the call, of the window",
    2,
    "nsys-ai 0.3.0: synchronisation of 2 % of GPU time; here only the part that leaves the GPU idle",
);

static ABOUT: About = About {
    id: "host-synchronisation",
    title: "Host synchronisation drains the GPU",
    area: Area::Host,
    needs: &[&[Category::CudaKernel], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

impl Rule for HostSynchronisation {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let calls = || facts.calls.of_kind(ApiCall::Synchronize);
        let blocked = Calls::times(calls());
        let gaps = facts.gaps_begun_in(&blocked);
        let cost = facts.shared(gaps.iter().map(|gap| gap.gain_ns).sum());
        let idle = facts.gap_time(gaps.iter().map(|gap| &gap.gap));
        let window = facts.window.len();
        if !SHARE.reached(cost, window) {
            return Verdict::Quiet;
        }
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for call in calls() {
            *by_name.entry(call.name).or_default() += 1;
        }
        let count: u64 = by_name.values().sum();
        let most = by_name
            .iter()
            .max_by_key(|(_, count)| **count)
            .map_or("", |(name, _)| name);
        Found::new(format!(
            "{}, most of them {most}, blocked the host for {}; {} of the GPU began meanwhile and lasted {}, of which the waits explain {} ({} of the window).",
            counted(count, "synchronising call", "synchronising calls"),
            time(blocked.len_ns()),
            counted(u64::try_from(gaps.len()).unwrap_or(u64::MAX), "idle gap", "idle gaps"),
            time(idle),
            time(cost),
            share(cost, window)
        ))
        .worth(cost, "without the wait the next work would be queued when the GPU gets there; of each gap no more than the length of its wait is counted")
        .evidence("synchronising calls", count, Unit::None)
        .evidence("host blocked in them", blocked.len_ns(), Unit::Ns)
        .evidence("idle time that began in them", idle, Unit::Ns)
        .at(facts.longest_gaps(gaps.iter().map(|gap| &gap.gap)))
        .do_this("Find what waits: .item(), .cpu(), print of a tensor, torch.cuda.synchronize(), boolean masks and nonzero in the loop.")
        .do_this("Log and check every N steps, keep scalars on the GPU, copy results to pinned memory with non_blocking=True and wait for an event later.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> crate::model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..5 {
            scene.launch((at * 100, 5), "gemm", (at * 100 + 8, 70));
            scene.call("cudaStreamSynchronize_v3020", (at * 100 + 6, 73));
        }
        scene.build()
    }

    /// The host waits as long, but the next kernel is queued already.
    #[cfg(test)]
    fn quiet(&self) -> crate::model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..5 {
            scene.launch((at * 5, 5), "gemm", (at * 100 + 30, 100));
        }
        scene.call("cudaStreamSynchronize_v3020", (26, 300));
        scene.build()
    }
}
