//! Compiled code that the program leaves and enters again.

use flopwatch_measures::compiled::{COMPILED_CATEGORIES, CompileActivity};
use flopwatch_measures::enclosing::Threads;
use flopwatch_measures::interval::Intervals;
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "time between graphs, without compilation, of the window",
    1,
    "ours: each break ends what can be fused and brings the host back",
);

/// Fires where runs of what torch.compile made lie inside each other, and what ran between their
/// graphs takes time.
pub(super) static RULE: Rule = Rule {
    id: "graph-breaks",
    title: "Compiled code is left at graph breaks",
    area: Area::Compilation,
    needs: &[&COMPILED_CATEGORIES],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(true), || scene(false)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let threads = Threads::of(facts.timeline);
    let compiled = CompileActivity::of(facts.timeline, &threads);
    let breaks = compiled.graph_breaks(facts.timeline, &threads, 0);
    let between: u64 = breaks.iter().map(|one| one.between_ns).sum();
    let window = facts.window.len();
    if !SHARE.reached(between, window) {
        return Verdict::Quiet;
    }
    let runs: u64 = breaks.iter().map(|one| one.runs).sum();
    // Idle time of GPUs while a run that was left holds the thread, without compilation.
    let left = compiled.runs().iter().filter(|run| run.outer.is_some());
    let left = left.filter_map(|run| compiled.runs().get(run.outer?));
    let times: Intervals = left.map(|run| run.mark.time).collect();
    let compiling = compiled.compiling().flat_map(|(_, union)| union.as_slice());
    let compiling: Intervals = compiling.copied().collect();
    let held = times.subtract(&compiling);
    let idle = facts.per_gpu(|gpu| gpu.idle.intersect(&held).len_ns()).min(between);
    let mut found = FindingDraft::new(format!(
        "The program leaves compiled code at {} and goes on in another graph, {} in the capture; {} pass between the graphs ({} of the window).",
        count(u64::try_from(breaks.len()).unwrap_or(u64::MAX), "place", "places"),
        count(runs, "time", "times"),
        time(between),
        share(between, window)
    ))
    .severity(Severity::Medium)
    .confidence(Confidence::High)
    .evidence("between graphs", between, Unit::Ns);
    if idle > 0 {
        found = found.worth(
            idle,
            "the graphs are one, and the GPU need not wait for what ran between them",
        );
    }
    let rows = breaks.iter().take(facts.rows).map(|one| {
        let seen = if one.seen.is_empty() {
            one.reason.label()
        } else {
            &one.seen
        };
        Evidence {
            what: seen.to_owned(),
            value: Cell::from(one.between_ns),
            unit: Unit::Ns,
            place: Some(one.place),
        }
    });
    found = found.at(rows);
    let mut reasons: Vec<_> = breaks.iter().map(|one| one.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        found = found.do_this(reason.suggestion());
    }
    found
        .do_this("torch.compile(fullgraph=True) fails at the first graph break and names it; see the analysis `torch-compile`.")
        .into()
}

/// Two graphs of a function with 20 us between, the second inside the first's run or behind it.
#[cfg(test)]
fn scene(breaks: bool) -> flopwatch_model::Timeline {
    broken(breaks).build()
}

#[cfg(test)]
fn broken(breaks: bool) -> crate::advice::scene::Scene {
    let mut scene = crate::advice::scene::Scene::new();
    scene.operator("Torch-Compiled Region: 0/0", (0, if breaks { 60 } else { 20 }));
    scene.operator("CompiledFunction", (1, 9));
    scene.launch((2, 2), "triton_poi_fused_add_0", (5, 5));
    scene.operator("aten::item", (12, 3));
    scene.operator("Torch-Compiled Region: 1/0", (30, 25));
    scene.operator("CompiledFunction", (31, 9));
    scene.launch((32, 2), "triton_poi_fused_add_1", (35, 5));
    scene
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;

    #[test]
    fn a_break_fires_from_one_percent_of_the_window_on() {
        // 20 us pass between the graphs; the window is from 5 us to `end`.
        for (end, fires) in [(2005, true), (2006, false)] {
            let mut scene = broken(true);
            scene.kernel("late", (end - 10, 10));
            let timeline = scene.build();
            let verdict = judge(&RULE, &Facts::of(&timeline, 5));
            assert_eq!(matches!(verdict, Verdict::Fires(_)), fires, "{end}: {verdict:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_compiled_has_no_breaks() {
        let mut scene = crate::advice::scene::Scene::new();
        scene.operator("aten::add", (0, 60));
        scene.launch((2, 2), "add", (5, 5));
        scene.operator("aten::item", (12, 3));
        let timeline = scene.build();
        let verdict = judge(&RULE, &Facts::of(&timeline, 5));
        assert!(!matches!(verdict, Verdict::Fires(_)), "{verdict:?}");
    }
}
