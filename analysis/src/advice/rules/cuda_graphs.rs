//! Launches that a CUDA graph would make at once.

use flopwatch_measures::api_call::ApiCall;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::{Calls, IdleOwner};
use crate::advice::wording::{share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const EXPOSED: Threshold = Threshold::percent(
    "idle time in which a launch call runs and no other cause is known, of the window",
    5,
    "ours; the measure is nsys-ai's exposed launch overhead",
);
const LAUNCHES: Threshold = Threshold::count(
    "launch calls, from which on a graph is worth recording",
    100,
    "ours: a graph has to replace many launches",
);

const SLOW: Threshold = Threshold::ns(
    "length from which on a launch call waits for something else and is left out",
    50_000,
    "HTA: runtime_cutoff of get_cuda_kernel_launch_stats; such calls wait for a full queue or for code that is loaded",
);

/// Fires where the GPU is idle while launch calls run, and no graph is used.
pub(super) static RULE: Rule = Rule {
    id: "cuda-graphs",
    title: "CUDA graphs would save launches",
    area: Area::Host,
    needs: &[&[Category::CudaKernel, Category::CudaGraph], &[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[EXPOSED, LAUNCHES, SLOW],
    evaluate,
    #[cfg(test)]
    captures: [|| scene("cudaLaunchKernel"), || scene("cudaGraphLaunch")],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let usual = || {
        let launches = facts.calls.of_kind(ApiCall::Launch);
        launches.filter(|call| call.time.len() < SLOW.value)
    };
    let launches = usual().count();
    let calls = Calls::times(usual());
    let exposed = facts.shared(facts.idle_parts.total_within_ns(IdleOwner::Launch, &calls));
    let window = facts.window.len();
    let many = u64::try_from(launches).is_ok_and(|launches| launches >= LAUNCHES.value);
    if facts.uses_graphs() || !many || !EXPOSED.reached(exposed, window) {
        return Verdict::Quiet;
    }
    let mean = calls
        .len_ns()
        .checked_div(u64::try_from(launches).unwrap_or(u64::MAX))
        .unwrap_or(0);
    FindingDraft::new(format!(
        "{launches} launch calls of {} each (without those of 50 µs and more), and no CUDA graph; the GPU was idle in {} of them ({} of the window).",
        time(mean),
        time(exposed),
        share(exposed, window)
    ))
    .worth(exposed, "the launches repeat with the same shapes, so that graphs replace them; where the host launches too slowly, it is a part of that")
    .confidence(Confidence::Medium)
    .evidence("launch calls", launches, Unit::None)
    .evidence("GPU idle while one ran", exposed, Unit::Ns)
    .at(facts.longest("launch call", usual().map(|call| (call.time, call.row))))
    .do_this(facts.framework.pick(
        "Record the loop's body as a graph: torch.compile(mode=\"reduce-overhead\"), torch.cuda.CUDAGraph or make_graphed_callables.",
        "Put one jit around the whole step: XLA records command buffers, which are CUDA graphs, unless XLA_FLAGS sets --xla_gpu_enable_command_buffer to nothing; +WHILE,+CONDITIONAL there adds loops and branches.",
        "Record the loop's body as a graph: cudaStreamBeginCapture, cudaGraphInstantiate, then cudaGraphLaunch.",
    ))
    .do_this("Shapes must not change, and the body must not synchronise or allocate outside of the graph's pool.")
    .into()
}

/// 120 kernels of 5 us, each after a call of 10 us in which the GPU is idle.
#[cfg(test)]
fn scene(last: &str) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for at in 0..120 {
        scene.launch((at * 20, 10), "add", (at * 20 + 11, 5));
    }
    scene.call(last, (2400, 10));
    scene.build()
}
