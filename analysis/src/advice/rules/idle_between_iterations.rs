//! A GPU that waits where one iteration ends and the next begins.

use std::collections::BTreeMap;

use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::Assignment;
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};

/// Fires where the idle time between the last work of an iteration and the first of the next adds up.
#[derive(Debug)]
pub(super) struct IdleBetweenIterations;

const SHARE: Threshold = Threshold::percent("idle time between iterations, of the window", 3, "ours");

static ABOUT: About = About {
    id: "idle-between-iterations",
    title: "The GPU is idle between iterations",
    area: Area::Iterations,
    needs: &[],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

impl Rule for IdleBetweenIterations {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
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
            return Verdict::Quiet;
        }
        Found::new(format!(
            "The GPU is idle for {} where one iteration ends and the next begins ({} of the window), in {} of up to {}.",
            time(idle),
            share(idle, window),
            count(u64::try_from(gaps.len()).unwrap_or(u64::MAX), "gap", "gaps"),
            time(gaps.iter().map(|(gap, _)| gap.len()).max().unwrap_or(0))
        ))
        .worth(idle, "the next iteration is launched before the last one ends on the GPU")
        .confidence(Confidence::Medium)
        .on(&facts.iterations)
        .evidence("idle between iterations", idle, Unit::Ns)
        .at(facts.longest("idle between iterations", gaps))
        .do_this("Look at what the host does there: the next batch, loss.item() for the log, the learning-rate scheduler, zero_grad, checkpoints.")
        .do_this("Log a step late (from a tensor copied without waiting), prefetch the batch, and do not synchronise at the end of the step.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        scene(80)
    }

    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        scene(99)
    }
}

/// The gaps of each GPU whose work before and behind is of different iterations.
fn between(facts: &Facts<'_>) -> Vec<(Interval, u32)> {
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
