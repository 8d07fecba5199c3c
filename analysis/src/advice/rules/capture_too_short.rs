//! A capture that is too short to stand for a run.

use flopwatch_report::page::Unit;

use crate::advice::wording::time;
use crate::advice::{Area, Facts, FindingDraft, Rule, RuleInfo, Severity, Threshold, Verdict};

/// Fires where the GPU's window is short.
#[derive(Debug)]
pub(super) struct CaptureTooShort;

const WINDOW: Threshold = Threshold::ns(
    "window, below which it fires",
    20_000_000,
    "ours: shorter than most steps of training, so that a single gap decides every share",
);

static ABOUT: RuleInfo = RuleInfo {
    id: "capture-too-short",
    title: "The capture is short",
    area: Area::Capture,
    needs: &[],
    of_gpu_work: true,
    thresholds: &[WINDOW],
};

impl Rule for CaptureTooShort {
    fn about(&self) -> &'static RuleInfo {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
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
    fn fires(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.kernel("gemm", (0, 19_999));
        scene.build()
    }

    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.kernel("gemm", (0, 20_000));
        scene.build()
    }
}
