//! A host that launches more slowly than the GPU works.

use flopwatch_measures::gap::IdleClass;
use flopwatch_measures::launch::{Launch, Spread};
use flopwatch_measures::thread_activity::HostActivity;
use flopwatch_model::{Category, approximate};
use flopwatch_report::page::{Unit, figure};

use crate::advice::facts::IdleOwner;
use crate::advice::wording::{share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};
use crate::analyses::idle::IdleCause;

const IDLE: Threshold = Threshold::percent("idle share of the window", 10, "as of the rule gpu-idle");
const HOST_WAIT: Threshold = Threshold::percent(
    "share of idle time that waits for a launch and has no other cause: no call that waits, allocates, loads code or copies, no range that loads data, collects garbage or compiles, and no wait that the gap began in",
    50,
    "HTA's class host_wait, here the larger part, without what other rules name",
);
const LAUNCHES: Threshold = Threshold::count(
    "launch calls, from which on their rate can be told",
    100,
    "ours: a few gaps between a few launches tell of what lies between them, not of launching",
);
const QUEUE: Threshold = Threshold::ns(
    "median time from the end of the call to the start of the work, up to which nothing queues",
    10_000,
    "nsys cuda_kern_exec_sum: no queue time suggests an idle GPU; 10 us is the usual latency of a launch",
);

/// Fires where the GPU is often idle, mostly because the next launch has not come, and launches do
/// not queue.
pub(super) static RULE: Rule = Rule {
    id: "launch-bound",
    title: "The host launches too slowly",
    area: Area::Host,
    needs: &[&[Category::CudaKernel, Category::CudaGraph], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[IDLE, HOST_WAIT, LAUNCHES, QUEUE],
    evaluate,
    // The second is idle for as long, but every kernel was launched long before.
    #[cfg(test)]
    captures: [|| scene(100, 100, 8), || scene(100, 5, 600)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
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
    let delay = firsts.map(Launch::delay_ns).collect::<Spread>();
    let queue = delay.median_ns;
    if queue > approximate(QUEUE.value.into()) || delay.count < LAUNCHES.value {
        return Verdict::Quiet;
    }
    let own = facts.shared(facts.idle_parts.total_ns(IdleOwner::Launch));
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
    let causes = facts.idle_parts.activities_of_owner(IdleOwner::Launch);
    let host_wait = facts.gap_time(facts.gaps().filter(|gap| gap.class == IdleClass::HostWait));
    let found = FindingDraft::new(format!(
        "The GPU waits for launches: for {} of its {} of idle time ({}) the next work had not been launched, and nothing that was recorded held the launching thread: \
         no wait, allocation, copy or loading; {delay}.",
        time(own),
        time(idle),
        share(own, idle),
    ))
    .worth(own, "work is launched ahead of the GPU, as CUDA graphs or fewer, larger kernels allow")
    .confidence(if unrecorded(&causes) { Confidence::Medium } else { Confidence::High })
    .evidence("idle time that waited for a launch", host_wait, Unit::Ns)
    .evidence("of it without another cause", own, Unit::Ns);
    let finding = causes.iter().take(facts.rows).fold(found, |found, cause| {
        let what = format!("of that the launching thread: {}", cause.activity.label());
        found.evidence(what, facts.shared(cause.idle_ns), Unit::Ns)
    });
    finding.evidence("median time between launch and start", queue, Unit::Ns)
    .at(facts.longest_gaps(&facts.idle_parts.gaps_of(IdleOwner::Launch)))
    .do_this(facts.framework.pick(
        "Launch less often: torch.compile (mode=\"reduce-overhead\"), CUDA graphs, fused optimizers (fused=True), larger batches.",
        "Launch less often: one jax.jit around the whole step, jax.lax.scan over several steps, command buffers (on unless XLA_FLAGS sets --xla_gpu_enable_command_buffer to nothing), larger batches.",
        "Launch less often: CUDA graphs, fused kernels, more work per kernel.",
    ))
    .do_this(facts.framework.pick(
        "Take work off the launching thread: Python, logging, .item(), checks of shapes; see the operators around the gaps.",
        "Take work off the launching thread: Python between two jitted calls, logging, conversions of results.",
        "Take work off the launching thread: what it computes between launches can run on another thread or beforehand.",
    ))
    .into()
}

/// Launches that begin `every` us, each of a kernel of 20 us; the kernels begin every 100 us from
/// `first` on.
#[cfg(test)]
fn scene(launches: u64, every: u64, first: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for at in 0..launches {
        scene.launch((at * every, 5), "add", (at * 100 + first, 20));
    }
    scene.build()
}

/// Whether most of the waiting is of threads of which nothing was recorded: they may have computed,
/// or waited for something else.
fn unrecorded(causes: &[IdleCause]) -> bool {
    let all: u64 = causes.iter().map(|cause| cause.idle_ns).sum();
    let nothing = causes
        .iter()
        .filter(|cause| cause.activity == HostActivity::NothingRecorded);
    nothing.map(|cause| cause.idle_ns).sum::<u64>() > all / 2
}

#[cfg(test)]
mod tests {
    use flopwatch_model::Track;

    use super::*;
    use crate::advice::rule::judge;

    /// Gaps of 80 us, of which the launching thread spends 71 us in a call of `name`.
    fn held_in(category: Category, track: Track, name: &str) -> Verdict {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..100 {
            scene.launch((at * 100, 5), "add", (at * 100 + 8, 20));
            scene.on_thread(1, track, category, name, (at * 100 + 6, 93));
        }
        judge(&RULE, &Facts::of(&scene.build(), 5))
    }

    #[test]
    fn a_thread_that_waits_in_a_copy_is_not_slow_to_launch() {
        let verdict = held_in(Category::CudaApi, Track::CudaApi, "cudaMemcpy_v3020");
        assert_eq!(verdict, Verdict::Quiet);
    }

    #[test]
    fn a_thread_that_waits_in_the_operating_system_is_not_slow_to_launch() {
        for name in ["futex", "pthread_cond_wait", "poll", "sem_wait"] {
            let verdict = held_in(Category::OsRuntime, Track::OsRuntime, name);
            assert_eq!(verdict, Verdict::Quiet, "{name}");
        }
        let verdict = held_in(Category::OsRuntime, Track::OsRuntime, "mmap64");
        assert!(matches!(verdict, Verdict::Fires(_)), "{verdict:?}");
    }

    #[test]
    fn a_thread_that_loads_data_is_not_slow_to_launch() {
        let verdict = held_in(Category::NvtxRange, Track::Nvtx, "DataLoader.__next__");
        assert_eq!(verdict, Verdict::Quiet);
    }

    #[test]
    fn the_rate_of_a_few_launches_is_not_told() {
        assert_eq!(judge(&RULE, &Facts::of(&scene(99, 100, 8), 5)), Verdict::Quiet);
    }
}
