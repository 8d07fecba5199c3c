//! Iterations of which some take longer than the usual one.

use flopwatch_measures::iteration::Iteration;
use flopwatch_model::Figures;
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SLOW: Threshold = Threshold::percent(
    "an iteration's length of the median one, from which on it is slow",
    120,
    "ours: beyond the noise of iterations that do the same",
);
const SHARE: Threshold = Threshold::percent(
    "what slow iterations take beyond the median, of the time of all",
    3,
    "ours",
);
/// Fewer have no usual length.
const MIN_ITERATIONS: usize = 4;

/// Fires where slow iterations add up.
pub(super) static RULE: Rule = Rule {
    id: "iterations-unbalanced",
    title: "Some iterations are slow",
    area: Area::Iterations,
    needs: &[],
    of_gpu_work: true,
    thresholds: &[SLOW, SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(150), || scene(110)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let list = facts.main_loop();
    // The first one warms up.
    let list = list.get(1..).unwrap_or(&[]);
    if list.len() < MIN_ITERATIONS {
        let reason = facts
            .iterations
            .not_found
            .as_ref()
            .map(|lacking| lacking.reason.clone());
        return Verdict::abstain(reason.unwrap_or_else(|| "the capture holds fewer than five iterations".to_owned()));
    }
    let mut lengths: Vec<u64> = list.iter().map(|iteration| iteration.time.len()).collect();
    let all: u64 = lengths.iter().sum();
    let median = Figures::of(&mut lengths).whole_median();
    let is_slow = |iteration: &&Iteration| SLOW.reached(iteration.time.len(), median);
    let slow: Vec<&Iteration> = list.iter().filter(is_slow).collect();
    let beyond: u64 = slow
        .iter()
        .map(|iteration| iteration.time.len() - median.min(iteration.time.len()))
        .sum();
    if !SHARE.reached(beyond, all) {
        return Verdict::Quiet;
    }
    let number = u64::try_from(slow.len()).unwrap_or(u64::MAX);
    let unit = facts.iterations.unit();
    let rows = slow.iter().map(|iteration| {
        let name = format!("{} {}", unit.one, iteration.number);
        (iteration.time.len(), name, iteration.time, iteration.row)
    });
    FindingDraft::new(format!(
        "{} of {} took more than 1.2 times the median of {}, together {} longer ({} of the time of all).",
        count(number, unit.one, unit.many),
        list.len(),
        time(median),
        time(beyond),
        share(beyond, all)
    ))
    .titled(format!("Some {} are slow", unit.many))
    .worth(beyond.min(facts.window.len()), "the slow ones take as long as the median")
    .confidence(Confidence::Medium)
    .on(&facts.iterations)
    .evidence(format!("median {}", unit.one), median, Unit::Ns)
    .evidence(format!("slow {} beyond it", unit.many), beyond, Unit::Ns)
    .at(facts.largest(rows, Unit::Ns))
    .do_this(facts.framework.pick(
        "Compare a slow one with the median one in the timeline: evaluation, checkpoints, logging, garbage collection of Python (gc.freeze, gc.disable), batches of other shapes, a straggling rank.",
        "Compare a slow one with the median one in the timeline: evaluation, checkpoints, logging, garbage collection of Python (gc.freeze, gc.disable), shapes that are compiled anew, a straggling process.",
        "Compare a slow one with the median one in the timeline: output, checkpoints, other sizes of the problem, a straggling process.",
    ))
    .into()
}

/// Six steps of 100 us, the fourth of `odd` us, each with a kernel.
#[cfg(test)]
fn scene(odd: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    let mut start = 0;
    for number in 0..6 {
        let length = if number == 3 { odd } else { 100 };
        scene.step(number, (start, length));
        scene.launch((start + 1, 2), "gemm", (start + 5, length - 10));
        start += length;
    }
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::scene::Scene;

    /// Eight ranges of 100 us, the fourth of 150 us, each with as many kernels.
    fn ranges(name: &str) -> flopwatch_model::Timeline {
        let mut scene = Scene::new();
        let mut start = 0;
        for number in 0..8 {
            let length = if number == 3 { 150 } else { 100 };
            scene.range(&format!("{name} {number}"), (start, length));
            scene.launch((start + 1, 2), "gemm", (start + 5, length - 10));
            start += length;
        }
        scene.build()
    }

    fn found(timeline: &flopwatch_model::Timeline) -> FindingDraft {
        evaluate(&Facts::of(timeline, 5)).found()
    }

    #[test]
    fn what_may_be_layers_of_one_step_is_told_so_and_with_little_confidence() {
        let layers = found(&ranges("layer"));
        let caution = "the repetitions may be layers of one iteration";
        assert!(layers.sentence.contains(caution), "{}", layers.sentence);
        assert_eq!(layers.confidence, Confidence::Low);
        assert!(layers.sentence.starts_with("1 layer of 7"), "{}", layers.sentence);
        assert_eq!(layers.title.as_deref(), Some("Some layers are slow"));
        let batches = found(&ranges("batch"));
        assert_eq!(batches.confidence, Confidence::Medium);
        assert!(!batches.sentence.contains("layers"), "{}", batches.sentence);
    }

    #[test]
    fn layers_are_no_warm_up() {
        assert!(!Facts::of(&ranges("layer"), 5).warm_up.1);
        assert!(Facts::of(&ranges("batch"), 5).warm_up.1);
    }
}
