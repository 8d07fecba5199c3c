//! A GPU that waits where one iteration ends and the next begins.

use std::collections::BTreeMap;

use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::Assignment;
use flopwatch_model::RowId;
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent("idle time between iterations, of the window", 3, "ours");

/// Fires where the idle time between the last work of an iteration and the first of the next adds
/// up.
pub(super) static RULE: Rule = Rule {
    id: "idle-between-iterations",
    title: "The GPU is idle between iterations",
    area: Area::Iterations,
    needs: &[],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(80), || scene(99)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    if facts.main_loop().len() < 2 {
        let reason = facts
            .iterations
            .not_found
            .as_ref()
            .map(|lacking| lacking.reason.clone());
        return Verdict::abstain(reason.unwrap_or_else(|| "the capture holds a single iteration".to_owned()));
    }
    let gaps = between(facts);
    let idle = facts.shared(gaps.iter().map(|(gap, _)| gap.len()).sum());
    let window = facts.window.len();
    if !SHARE.reached(idle, window) {
        return Verdict::below(SHARE, idle, window);
    }
    let unit = facts.iterations.unit();
    FindingDraft::new(format!(
        "The GPU is idle for {} where one {} ends and the next begins ({} of the window), in {} of up to {}.",
        time(idle),
        unit.one,
        share(idle, window),
        count(u64::try_from(gaps.len()).unwrap_or(u64::MAX), "gap", "gaps"),
        time(gaps.iter().map(|(gap, _)| gap.len()).max().unwrap_or(0))
    ))
    .titled(format!("The GPU is idle between {}", unit.many))
    .worth(
        idle,
        format!("the next {} is launched before the last one ends on the GPU", unit.one),
    )
    .confidence(Confidence::Medium)
    .on(&facts.iterations)
    .evidence(format!("idle between {}", unit.many), idle, Unit::Ns)
    .at(facts.longest(&format!("idle between {}", unit.many), gaps))
    .do_this(facts.framework.pick(
        "Look at what the host does there: the next batch, loss.item() for the log, the learning-rate scheduler, zero_grad, checkpoints.",
        "Look at what the host does there: the next batch, float(loss) for the log, checkpoints, functions that are not jitted.",
        "Look at what the host does there: input and output, checks of convergence, exchange with other processes.",
    ))
    .do_this(facts.framework.pick(
        "Log a step late (from a tensor copied without waiting), prefetch the batch, and do not synchronize at the end of the step.",
        "Log a step late (copy_to_host_async()), prefetch the batch, and do not block_until_ready() at the end of the step.",
        "Check results one round late, read ahead, and do not synchronize at the end of the round.",
    ))
    .into()
}

/// The gaps of each GPU whose work before and behind is of different iterations.
fn between(facts: &Facts<'_>) -> Vec<(Interval, RowId)> {
    let assigned = facts.iterations.assign(facts.timeline, &facts.work);
    let mut last: BTreeMap<Gpu, (u64, u32)> = BTreeMap::new();
    let mut gaps = Vec::new();
    for (work, iteration) in facts.work.all().iter().zip(&assigned.iteration) {
        let Some(gpu) = Gpu::of_row(facts.timeline, work.row) else {
            continue;
        };
        let (until, before) = last.entry(gpu).or_insert((work.time.start, *iteration));
        let known = *before != Assignment::NONE && *iteration != Assignment::NONE;
        let gap = Interval::new(*until, work.time.start);
        if known && before != iteration && !gap.is_empty() {
            gaps.push((gap, work.row));
        }
        if work.time.end >= *until {
            (*until, *before) = (work.time.end, *iteration);
        }
    }
    gaps
}

/// Five steps of 100 us, whose kernel runs from 1 us on for `length` us.
#[cfg(test)]
fn scene(length: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for number in 0..5 {
        scene.step(number, (number * 100, 100));
        scene.launch((number * 100, 1), "gemm", (number * 100 + 1, length));
    }
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_the_profiler_marked_are_called_steps() {
        let timeline = scene(80);
        let found = evaluate(&Facts::of(&timeline, 5)).found();
        assert!(found.sentence.contains("where one step ends"), "{}", found.sentence);
        assert_eq!(found.title.as_deref(), Some("The GPU is idle between steps"));
    }
}
