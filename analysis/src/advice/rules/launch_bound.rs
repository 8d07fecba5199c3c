//! A host that launches more slowly than the GPU works.

use crate::advice::facts::GapCause;
use crate::advice::wording::{share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};
use crate::measures::interval::Interval;
use crate::model::Category;
use crate::page::Unit;

/// Fires where the GPU is often idle, mostly because the next launch has not come, and launches do not queue.
#[derive(Debug)]
pub(super) struct LaunchBound;

const IDLE: Threshold = Threshold::percent("idle share of the window", 10, "as of the rule gpu-idle");
const HOST_WAIT: Threshold = Threshold::percent(
    "share of idle time that waits for a launch",
    50,
    "HTA's class host_wait, here the larger part",
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
    needs: &[&[Category::CudaKernel], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[IDLE, HOST_WAIT, QUEUE],
};

impl Rule for LaunchBound {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let idle = facts.per_gpu(|gpu| gpu.idle.len_ns());
        let host_waits = || facts.gaps().filter(|gap| gap.cause == GapCause::HostWait);
        let host = facts.gap_time(host_waits());
        let Some(queue) = median_queue(facts) else {
            return Verdict::abstain("no piece of GPU work has a launch in the capture");
        };
        let window = facts.window.len();
        if !IDLE.reached(idle, window) || !HOST_WAIT.reached(host, idle) || queue > QUEUE.value {
            return Verdict::Quiet;
        }
        Found::new(format!(
            "The GPU waits for launches: {} of its {} of idle time ({}) ended with work that had not been launched when the time began, \
             and half of all work started within {} of its launch.",
            time(host),
            time(idle),
            share(host, idle),
            time(queue)
        ))
        .worth(host, "work is launched ahead of the GPU, as CUDA graphs or fewer, larger kernels allow")
        .confidence(Confidence::High)
        .evidence("idle time that waited for a launch", host, Unit::Ns)
        .evidence("median time between launch and start", queue, Unit::Ns)
        .at(facts.longest_gaps(host_waits()))
        .do_this("Launch less often: torch.compile (mode=\"reduce-overhead\"), CUDA graphs, fused optimisers (fused=True), larger batches.")
        .do_this("Take work off the launching thread: Python, logging, .item(), checks of shapes; see the operators around the gaps.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> crate::model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..10 {
            scene.launch((at * 100, 5), "add", (at * 100 + 8, 20));
        }
        scene.build()
    }

    /// As much idle time, but every kernel was launched long before.
    #[cfg(test)]
    fn quiet(&self) -> crate::model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..10 {
            scene.launch((at * 5, 5), "add", (at * 100 + 100, 20));
        }
        scene.build()
    }
}

/// The median time from the end of the launching call to the start of the work; 0 where the work began first.
fn median_queue(facts: &Facts<'_>) -> Option<u64> {
    let launched = facts.work.all().iter().filter_map(|work| {
        let call = facts.calls.get(work.launch(facts.timeline)?)?;
        Some(Interval::new(call.time.end, work.time.start).len())
    });
    let mut queues: Vec<u64> = launched.collect();
    let middle = queues.len().checked_sub(1)? / 2;
    Some(*queues.select_nth_unstable(middle).1)
}
