//! Events that the profiler or the reader lost.

use flopwatch_model::LossReason;
use flopwatch_report::page::{Cell, Unit};

use crate::advice::{About, Area, Evidence, Facts, Found, Rule, Severity, Threshold, Verdict};

/// Fires where events are missing that were recorded or should have been.
#[derive(Debug)]
pub(super) struct EventsLost;

const MANY: Threshold = Threshold::percent(
    "lost events of all events, from where on figures are wrong",
    1,
    "ours: the figures of a capture are said to three digits",
);

static ABOUT: About = About {
    id: "events-lost",
    title: "Events were lost",
    area: Area::Capture,
    needs: &[],
    of_gpu_work: false,
    thresholds: &[MANY],
};

impl Rule for EventsLost {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let losses = facts.timeline.capture.drops.list();
        let lost = losses
            .iter()
            .filter(|loss| matches!(loss.reason, LossReason::Dropped | LossReason::Skipped));
        let mut lost: Vec<_> = lost.collect();
        lost.sort_by_key(|loss| std::cmp::Reverse(loss.count));
        let count = lost.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.count));
        if count == 0 {
            return Verdict::Quiet;
        }
        let kept = facts.timeline.total_events();
        let severity = if MANY.reached(count, kept.saturating_add(count)) {
            Severity::High
        } else {
            Severity::Low
        };
        let rows = lost.iter().take(facts.rows).map(|loss| Evidence {
            what: loss.what.clone(),
            value: Cell::from(loss.count),
            unit: Unit::None,
            place: None,
        });
        Found::new(format!(
            "{count} events were lost beside the {kept} that are here: sums are too small, and gaps may be none."
        ))
        .severity(severity)
        .at(rows)
        .do_this("Capture a shorter window, fewer categories, or with a larger buffer of the profiler.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        let mut timeline = self.quiet();
        timeline.capture.drops.add(LossReason::Dropped, "CUPTI buffer", 3);
        timeline
    }

    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.kernel("gemm", (10, 5));
        let mut timeline = scene.build();
        timeline.capture.drops.add(LossReason::Unsupported, "NVTX marks", 3);
        timeline
    }
}
