//! Python's garbage collector while the GPU waits.

use flopwatch_report::page::Unit;

use crate::advice::facts::{IdleOwner, PROGRAM, times};
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "idle time while garbage is collected, of the window",
    1,
    "ours; nsys-ai 0.3.0 lists such ranges without a threshold",
);

/// Fires where the GPU is idle while ranges run that are named after garbage collection.
pub(super) static RULE: Rule = Rule {
    id: "garbage-collection",
    title: "The GPU waits for garbage collection",
    area: Area::Host,
    needs: &[PROGRAM],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene("Python GC", (110, 30)), || scene("allgcd", (110, 30))],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let pieces = &facts.host_ranges.garbage;
    let times = times(pieces);
    let waiting = facts.shared(facts.idle_parts.total_ns(IdleOwner::CollectGarbage));
    let window = facts.window.len();
    if !SHARE.reached(waiting, window) {
        return Verdict::below(SHARE, waiting, window);
    }
    let number = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
    FindingDraft::new(format!(
        "Garbage is collected for {} in {}, and the GPU is idle in {} of it ({} of the window).",
        time(times.len_ns()),
        count(number, "range", "ranges"),
        time(waiting),
        share(waiting, window)
    ))
    .worth(waiting, "collection runs where the GPU has work queued, or not at all in the loop")
    .confidence(Confidence::Medium)
    .evidence("time in which garbage is collected", times.len_ns(), Unit::Ns)
    .evidence("GPU idle meanwhile", waiting, Unit::Ns)
    .at(facts.largest(pieces.iter().copied(), Unit::Ns))
    .do_this("Collect by hand every N steps on all ranks at once (gc.disable(), gc.collect(1)), and keep what lives long out of it (gc.freeze() after the warm-up).")
    .into()
}

#[cfg(test)]
fn scene(name: &str, collection: (u64, u64)) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 100));
    scene.range(name, collection);
    scene.launch((140, 5), "gemm", (150, 100));
    scene.build()
}
