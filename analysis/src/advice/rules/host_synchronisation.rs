//! A host that waits for the GPU and so leaves it without work.

use std::collections::BTreeMap;

use flopwatch_measures::api_call::ApiCall;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::Calls;
use crate::advice::wording::{count as counted, share, time};
use crate::advice::{About, Area, Facts, Found, Rule, Threshold, Verdict};

/// Fires where the GPU runs dry while the host waits for it.
///
/// The time that the host is blocked is no cost by itself: a host that waits while the GPU works loses nothing. What counts is the idle
/// time that begins while the host waits, for then nothing can have been launched ahead; and no more of it than the waits took, for
/// without them the host would be ahead by that and no more.
#[derive(Debug)]
pub(super) struct HostSynchronisation;

const SHARE: Threshold = Threshold::percent(
    "idle time that begins in a synchronising call, at most the time in these calls, of the window",
    2,
    "nsys-ai 0.3.0: synchronisation of 2 % of GPU time; here only the part that leaves the GPU idle",
);

static ABOUT: About = About {
    id: "host-synchronisation",
    title: "Host synchronisation drains the GPU",
    area: Area::Host,
    needs: &[&[Category::CudaKernel, Category::CudaGraph], &[Category::CudaApi]],
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
        let idle = facts.gap_time(&gaps);
        let cost = idle.min(blocked.len_ns());
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
            "{}, most of them {most}, blocked the host for {}; {} of the GPU began meanwhile and lasted {}, of which the waits explain at most {} ({} of the window).",
            counted(count, "synchronising call", "synchronising calls"),
            time(blocked.len_ns()),
            counted(u64::try_from(gaps.len()).unwrap_or(u64::MAX), "idle gap", "idle gaps"),
            time(idle),
            time(cost),
            share(cost, window)
        ))
        .worth(cost, "without the wait the next work would be queued when the GPU gets there; no more is counted than the host was blocked, for it would be ahead by that")
        .evidence("synchronising calls", count, Unit::None)
        .evidence("host blocked in them", blocked.len_ns(), Unit::Ns)
        .evidence("idle time that began in them", idle, Unit::Ns)
        .at(facts.longest_gaps(&gaps))
        .do_this("Find what waits: .item(), .cpu(), print of a tensor, torch.cuda.synchronize(), boolean masks and nonzero in the loop.")
        .do_this("Log and check every N steps, keep scalars on the GPU, copy results to pinned memory with non_blocking=True and wait for an event later.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..5 {
            scene.launch((at * 100, 5), "gemm", (at * 100 + 8, 70));
            scene.call("cudaStreamSynchronize_v3020", (at * 100 + 6, 73));
        }
        scene.build()
    }

    /// The host waits as long, but the next kernel is queued already.
    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..5 {
            scene.launch((at * 5, 5), "gemm", (at * 100 + 30, 100));
        }
        scene.call("cudaStreamSynchronize_v3020", (26, 300));
        scene.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;

    /// Four gaps of 130 us, each begun in a wait of 9 us: without the five waits the host would be ahead by 45 us and no more.
    #[test]
    fn waits_are_worth_no_more_than_they_took() {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..5 {
            scene.launch((at * 200, 5), "gemm", (at * 200 + 8, 70));
            scene.call("cudaStreamSynchronize_v3020", (at * 200 + 70, 9));
        }
        let timeline = scene.build();
        let Verdict::Fires(found) = judge(&HostSynchronisation, &Facts::of(&timeline, 5)) else {
            panic!("it must fire");
        };
        assert_eq!(found.gain.map(|(gain_ns, _)| gain_ns), Some(45_000));
        assert!(found.sentence.contains("4 idle gaps"), "{}", found.sentence);
    }
}
