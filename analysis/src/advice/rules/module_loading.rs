//! Code that is loaded or compiled for the GPU while the loop runs.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::{IdleOwner, NamedTime, times};
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "time in which code is loaded after the warm-up, of the window",
    1,
    "ours: the steady state loads nothing",
);

/// Fires where modules are loaded after the warm-up.
pub(super) static RULE: Rule = Rule {
    id: "module-loading",
    title: "Code is loaded after the warm-up",
    area: Area::Host,
    needs: &[&[Category::CudaApi, Category::Overhead]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    // The second loads code in the first tenth of the window alone.
    #[cfg(test)]
    captures: [|| scene(500), || scene(50)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let mut pieces: Vec<NamedTime<'_>> = facts.module_loads.clone();
    pieces.retain(|(_, _, time, _)| time.start >= facts.steady.start && time.start < facts.steady.end);
    let times = times(&pieces);
    let window = facts.window.len();
    if !SHARE.reached(times.len_ns(), window) {
        return Verdict::Quiet;
    }
    let idle = facts.shared(facts.idle_parts.total_within_ns(IdleOwner::LoadModule, &times));
    let number = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
    let found = FindingDraft::new(format!(
        "{} {} took {} ({} of the window); the GPU was idle in {} of it.",
        facts.warm_up.0,
        count(number, "load of code", "loads of code"),
        time(times.len_ns()),
        share(times.len_ns(), window),
        time(idle)
    ))
    .confidence(if facts.warm_up.1 { Confidence::High } else { Confidence::Low })
    .evidence("loads after the warm-up", number, Unit::None)
    .evidence("time in them", times.len_ns(), Unit::Ns)
    .evidence("GPU idle meanwhile", idle, Unit::Ns)
    .at(facts.largest(pieces, Unit::Ns))
    .do_this("Run every shape and branch once before what is timed or served; CUDA_MODULE_LOADING=EAGER loads everything at the start.")
    .do_this(facts.framework.pick(
        "If cuLink or nvrtc calls are among them, code is compiled at run time: ship SASS for this GPU (TORCH_CUDA_ARCH_LIST) and keep CUDA_CACHE_PATH on a disk that lasts.",
        "If cuLink calls are among them, code is compiled at run time: keep compiled programs (jax_compilation_cache_dir) and CUDA_CACHE_PATH on a disk that lasts.",
        "If cuLink or nvrtc calls are among them, code is compiled at run time: ship SASS for this GPU (nvcc -gencode) and keep CUDA_CACHE_PATH on a disk that lasts.",
    ));
    let found = if idle > 0 {
        found.worth(idle, "the code is loaded before the loop")
    } else {
        found
    };
    found.into()
}

#[cfg(test)]
fn scene(at: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 30));
    scene.call("cuModuleLoadData", (at, 40));
    scene.launch((700, 5), "gemm", (900, 110));
    scene.build()
}
