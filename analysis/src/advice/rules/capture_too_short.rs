//! A capture that is too short to stand for a run.

use flopwatch_report::page::Unit;

use crate::advice::wording::time;
use crate::advice::{Area, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const WINDOW: Threshold = Threshold::ns(
    "window, below which it fires",
    20_000_000,
    "ours: shorter than most steps of training, so that a single gap decides every share",
);

/// Fires where the GPU's window is short.
pub(super) static RULE: Rule = Rule {
    id: "capture-too-short",
    title: "The capture is short",
    area: Area::Capture,
    needs: &[],
    of_gpu_work: true,
    thresholds: &[WINDOW],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(19_999), || scene(20_000)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let window = facts.window.len();
    if window >= WINDOW.value {
        return Verdict::Quiet;
    }
    FindingDraft::new(format!(
        "The GPU's work spans {}: what is found here may be chance.",
        time(window)
    ))
    .severity(Severity::Low)
    .evidence("window of GPU work", window, Unit::Ns)
    .evidence("pieces of GPU work", facts.work.all().len(), Unit::None)
    .do_this("Capture a window of several iterations, after the first ones.")
    .into()
}

#[cfg(test)]
fn scene(length: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (0, length));
    scene.build()
}
