//! GPU work whose launch was not recorded.

use flopwatch_model::{Category, count};
use flopwatch_report::page::Unit;

use crate::advice::wording::share;
use crate::advice::{Area, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "GPU work without a launch",
    10,
    "ours: of the public captures that we know, whole ones lack below 1 % (24 of 4,010 kernels) and trimmed ones above 50 % (1,810 of 3,442)",
);

/// Fires where a part of the GPU's work has no launch in the capture.
pub(super) static RULE: Rule = Rule {
    id: "launches-unmatched",
    title: "Launches are missing",
    area: Area::Capture,
    needs: &[&[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [fires, quiet],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let all = count(facts.work.all().len());
    let unmatched = all.saturating_sub(facts.work_calls.known());
    if !SHARE.reached(unmatched, all) {
        return Verdict::Quiet;
    }
    let early = before_first_launch(facts);
    let found = FindingDraft::new(format!(
        "{unmatched} of {all} pieces of GPU work ({}) have no launch in the capture{}: what is said of launches and of why the GPU waits rests on the others.",
        share(unmatched, all),
        match early {
            0 => String::new(),
            early if early == unmatched => ", and all of them began before the first launch that was recorded: the program had launched them before the profiler began".to_owned(),
            early => format!(", and {early} of them began before the first launch that was recorded: the program had launched them before the profiler began"),
        }
    ))
    .severity(Severity::Medium)
    .evidence("GPU work", all, Unit::None)
    .evidence("without a launch", unmatched, Unit::None)
    .evidence("of it launched before the profiler began", early, Unit::None);
    let found = if early > 0 {
        found.do_this(facts.framework.pick(
            "Let the GPU run dry before the profiler begins: torch.cuda.synchronize() before start(), or schedule(wait=..., warmup=1, active=...), so that launches of the first kernels are recorded too.",
            "Let the GPU run dry before the profiler begins: block_until_ready() before jax.profiler.start_trace(), so that launches of the first kernels are recorded too.",
            "Let the GPU run dry before the profiler begins: cudaDeviceSynchronize() before cudaProfilerStart(), so that launches of the first kernels are recorded too.",
        ))
    } else {
        found
    };
    if early < unmatched {
        return found
            .do_this("Capture API calls of all processes, and do not cut the capture apart afterwards.")
            .into();
    }
    found.into()
}

#[cfg(test)]
fn fires() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 5));
    scene.kernel("gemm", (20, 5));
    scene.build()
}

#[cfg(test)]
fn quiet() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 5));
    scene.launch((5, 5), "gemm", (20, 5));
    scene.build()
}

/// Pieces of work without a launch that began before the first recorded launch of any work did.
fn before_first_launch(facts: &Facts<'_>) -> u64 {
    let calls = || {
        (0_u32..)
            .zip(facts.work.all())
            .map(|(at, work)| (work, facts.work_calls.time(at)))
    };
    let Some(first) = calls().filter_map(|(_, call)| Some(call?.start)).min() else {
        return 0;
    };
    let early = calls().filter(|(work, call)| call.is_none() && work.time.start < first);
    count(early.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::scene::Scene;

    fn found(scene: Scene) -> FindingDraft {
        evaluate(&Facts::of(&scene.build(), 5)).found()
    }

    #[test]
    fn work_from_before_the_first_launch_was_launched_before_the_profiler_began() {
        let mut scene = Scene::new();
        scene.kernel("gemm", (0, 5));
        scene.kernel("gemm", (6, 5));
        scene.launch((20, 5), "gemm", (30, 5));
        let found = found(scene);
        let all = "all of them began before the first launch that was recorded";
        assert!(found.sentence.contains(all), "{}", found.sentence);
        assert_eq!(found.actions.len(), 1);
        let remedy = &found.actions[0];
        assert!(remedy.contains("before the profiler begins"), "{remedy}");
    }

    #[test]
    fn work_from_behind_it_is_of_calls_that_were_not_captured() {
        let mut scene = Scene::new();
        scene.kernel("gemm", (0, 5));
        scene.launch((20, 5), "gemm", (30, 5));
        scene.kernel("gemm", (40, 5));
        let found = found(scene);
        let some = "and 1 of them began before";
        assert!(found.sentence.contains(some), "{}", found.sentence);
        assert_eq!(found.actions.len(), 2);
    }
}
