//! Compilation by the framework while the loop runs.

use flopwatch_report::page::Unit;

use crate::advice::facts::{COMPILER, IdleOwner, times};
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "compilation, of the window",
    1,
    "ours: after the warm-up nothing is compiled",
);
const BREAK_EVEN: Threshold = Threshold::count(
    "runs of the compiled regions after which compiling may have paid off, above which it is doubtful",
    1000,
    "the contract with earlier tools: compile time / mean run time above 1,000 calls is bad",
);

/// Fires where torch.compile or XLA compiles within the capture.
pub(super) static RULE: Rule = Rule {
    id: "recompilation",
    title: "Code is compiled in the capture",
    area: Area::Compilation,
    needs: &[COMPILER],
    of_gpu_work: true,
    thresholds: &[SHARE, BREAK_EVEN],
    evaluate,
    #[cfg(test)]
    captures: [
        || scene("_compile.compile_inner (dynamo_timed)"),
        || scene("TorchDynamo Cache Lookup"),
    ],
};

/// What runs of compiled code are called.
const REGION: &str = "Torch-Compiled Region";

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let compiling = &facts.host_ranges.compiling;
    // Phases nest: a union, not a sum.
    let times = times(compiling);
    let spent = times.clip(facts.window).len_ns();
    let window = facts.window.len();
    if !SHARE.reached(spent, window) {
        return Verdict::below(SHARE, spent, window);
    }
    let idle = facts.shared(facts.idle_parts.total_ns(IdleOwner::Compile));
    let outer: Vec<u64> = times.as_slice().iter().map(|time| time.len()).collect();
    let regions = facts.named(COMPILER, |name| name.contains(REGION));
    let runs = regions.iter().filter(|(_, _, time, _)| times.clip(*time).is_empty());
    let runs: Vec<u64> = runs.map(|(length, ..)| *length).collect();
    let mean = runs
        .iter()
        .sum::<u64>()
        .checked_div(u64::try_from(runs.len()).unwrap_or(u64::MAX));
    let break_even = mean.and_then(|mean| times.len_ns().checked_div(mean));
    let mut found = FindingDraft::new(format!(
        "Code was compiled {} for {} ({} of the window).",
        count(u64::try_from(outer.len()).unwrap_or(u64::MAX), "time", "times"),
        time(spent),
        share(spent, window)
    ))
    .confidence(Confidence::High)
    .evidence("compilation in the window", spent, Unit::Ns)
    .evidence("GPU idle meanwhile", idle, Unit::Ns);
    if let Some(break_even) = break_even {
        found = found.evidence("compile time in mean runs of a compiled region", break_even, Unit::None);
    }
    if idle > 0 {
        found = found.worth(idle, "nothing is compiled once the program has warmed up");
    }
    found = found
        .at(facts.largest(compiling.iter().copied(), Unit::Ns))
        .do_this(facts.framework.pick(
        "Warm every shape up before the loop; mark dimensions that change (torch._dynamo.mark_dynamic, dynamic=True), or pad them.",
        "Warm every shape up before the loop (jit(f).lower(...).compile()); pad dimensions that change, and keep compiled programs (jax_compilation_cache_dir).",
        "Warm every shape up before the loop, and pad dimensions that change.",
    ))
        .do_this(facts.framework.pick(
        "TORCH_LOGS=recompiles,graph_breaks says what guard failed.",
        "jax.config.update(\"jax_explain_cache_misses\", True) says why a function is compiled again.",
        "Look at what is compiled: its events are in the evidence.",
    ));
    if break_even.is_some_and(|break_even| break_even > BREAK_EVEN.value) {
        found = found.do_this("Compilation costs more than 1,000 runs of what it compiled: compile only what runs often, or use a cheaper mode.");
    }
    found.into()
}

#[cfg(test)]
fn scene(name: &str) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 100));
    scene.operator(name, (110, 50));
    scene.operator("Torch-Compiled Region", (170, 10));
    scene.launch((170, 5), "gemm", (180, 100));
    scene.build()
}
