//! A host that launches more slowly than the GPU works.

use flopwatch_measures::gap::IdleClass;
use flopwatch_measures::launch::{Launch, Spread};
use flopwatch_measures::thread_activity::HostActivity;
use flopwatch_model::{Category, approximate};
use flopwatch_report::page::{Unit, figure};

use crate::advice::wording::{share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};
use crate::analyses::idle::IdleCause;

/// Fires where the GPU is often idle, mostly because the next launch has not come, and launches do not queue.
#[derive(Debug)]
pub(super) struct LaunchBound;

const IDLE: Threshold = Threshold::percent("idle share of the window", 10, "as of the rule gpu-idle");
const HOST_WAIT: Threshold = Threshold::percent(
    "share of idle time that waits for a launch while the launching thread is in no call that waits, allocates, loads code or copies",
    50,
    "HTA's class host_wait, here the larger part, without what other rules name",
);
const QUEUE: Threshold = Threshold::ns(
    "median time from the end of the call to the start of the work, up to which nothing queues",
    10_000,
    "nsys cuda_kern_exec_sum: no queue time suggests an idle GPU; 10 us is the usual latency of a launch",
);

static ABOUT: About = About {
    id: "launch-bound",
    title: "The host launches too slowly",
    area: Area::Host,
    needs: &[&[Category::CudaKernel, Category::CudaGraph], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[IDLE, HOST_WAIT, QUEUE],
};

impl Rule for LaunchBound {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let idle = facts.per_gpu(|gpu| gpu.idle.len_ns());
        if facts.work_calls.known() == 0 {
            return Verdict::abstain("no piece of GPU work has a launch in the capture");
        }
        let window = facts.window.len();
        if !IDLE.reached(idle, window) {
            return Verdict::Quiet;
        }
        let delays = facts.joined().launches;
        // A graph's GPU operations share a call, and count once.
        let firsts = delays.iter().filter(|launch| launch.is_first);
        let queue = firsts.map(Launch::delay_ns).collect::<Spread>().median_ns;
        if queue > approximate(QUEUE.value.into()) {
            return Verdict::Quiet;
        }
        let causes = &facts.host_wait_causes;
        let time_of = |picks: fn(HostActivity) -> bool| {
            let picked = causes.iter().filter(|cause| picks(cause.activity));
            facts.shared(picked.map(|cause| cause.idle_ns).sum())
        };
        let (own, held) = (time_of(|activity| !is_held(activity)), time_of(is_held));
        if !HOST_WAIT.reached(own, idle) {
            return Verdict::Quiet;
        }
        let delay = if queue > 0.0 {
            format!(
                "half of all launches returned no more than {} before their work began",
                figure::number(queue, Unit::Ns)
            )
        } else {
            "half of all work began before the call that launched it returned".to_owned()
        };
        let found = Found::new(format!(
            "The GPU waits for launches: for {} of its {} of idle time ({}) the next work had not been launched, and the launching thread was in no call that waits, \
             allocates or copies; {delay}.",
            time(own),
            time(idle),
            share(own, idle),
        ))
        .worth(own, "work is launched ahead of the GPU, as CUDA graphs or fewer, larger kernels allow")
        .confidence(if unrecorded(causes) { Confidence::Medium } else { Confidence::High })
        .evidence("idle time that waited for a launch", own + held, Unit::Ns);
        let told = causes.iter().take(facts.rows).fold(found, |found, cause| {
            let what = format!("of it the launching thread: {}", cause.activity.label());
            found.evidence(what, facts.shared(cause.idle_ns), Unit::Ns)
        });
        told.evidence("median time between launch and start", queue, Unit::Ns)
        .at(facts.longest_gaps(facts.gaps().filter(|gap| gap.class == IdleClass::HostWait)))
        .do_this("Launch less often: torch.compile (mode=\"reduce-overhead\"), CUDA graphs, fused optimisers (fused=True), larger batches.")
        .do_this("Take work off the launching thread: Python, logging, .item(), checks of shapes; see the operators around the gaps.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..10 {
            scene.launch((at * 100, 5), "add", (at * 100 + 8, 20));
        }
        scene.build()
    }

    /// As much idle time, but every kernel was launched long before.
    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..10 {
            scene.launch((at * 5, 5), "add", (at * 100 + 100, 20));
        }
        scene.build()
    }
}

/// Whether a thread in such a call is kept from launching by what another rule is about: synchronisation, allocation, loading, copies.
const fn is_held(activity: HostActivity) -> bool {
    matches!(
        activity,
        HostActivity::Synchronize | HostActivity::Allocate | HostActivity::LoadModule | HostActivity::Copy
    )
}

/// Whether most of the waiting is of threads of which nothing was recorded: they may have computed, or waited for something else.
fn unrecorded(causes: &[IdleCause]) -> bool {
    let all: u64 = causes.iter().map(|cause| cause.idle_ns).sum();
    let nothing = causes
        .iter()
        .filter(|cause| cause.activity == HostActivity::NothingRecorded);
    nothing.map(|cause| cause.idle_ns).sum::<u64>() > all / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;

    /// Gaps of 80 us, of which the launching thread spends 71 us in a copy.
    #[test]
    fn a_thread_that_waits_in_a_copy_is_not_slow_to_launch() {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..10 {
            scene.launch((at * 100, 5), "add", (at * 100 + 8, 20));
            scene.call("cudaMemcpy_v3020", (at * 100 + 6, 93));
        }
        let timeline = scene.build();
        assert_eq!(judge(&LaunchBound, &Facts::of(&timeline, 5)), Verdict::Quiet);
    }
}
