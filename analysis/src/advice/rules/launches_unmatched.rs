//! GPU work whose launch was not recorded.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::share;
use crate::advice::{About, Area, Facts, Found, Rule, Severity, Threshold, Verdict};

/// Fires where a part of the GPU's work has no launch in the capture.
#[derive(Debug)]
pub(super) struct LaunchesUnmatched;

const SHARE: Threshold = Threshold::percent(
    "GPU work without a launch",
    10,
    "ours: of the public captures that we know, whole ones lack below 1 % (24 of 4,010 kernels) and trimmed ones above 50 % (1,810 of 3,442)",
);

static ABOUT: About = About {
    id: "launches-unmatched",
    title: "Launches are missing",
    area: Area::Capture,
    needs: &[&[Category::CudaApi]],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

impl Rule for LaunchesUnmatched {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let all = u64::try_from(facts.work.all().len()).unwrap_or(u64::MAX);
        let unmatched = all.saturating_sub(facts.work_calls.known());
        if !SHARE.reached(unmatched, all) {
            return Verdict::Quiet;
        }
        Found::new(format!(
            "{unmatched} of {all} pieces of GPU work ({}) have no launch in the capture: what is said of launches and of why the GPU waits rests on the others.",
            share(unmatched, all)
        ))
        .severity(Severity::Medium)
        .evidence("GPU work", all, Unit::None)
        .evidence("without a launch", unmatched, Unit::None)
        .do_this("Capture API calls of all processes, and do not cut the capture apart afterwards.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.launch((0, 5), "gemm", (10, 5));
        scene.kernel("gemm", (20, 5));
        scene.build()
    }

    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.launch((0, 5), "gemm", (10, 5));
        scene.launch((5, 5), "gemm", (20, 5));
        scene.build()
    }
}
