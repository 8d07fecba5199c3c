//! Events that the profiler or the reader lost.

use flopwatch_model::{Loss, LossReason};
use flopwatch_report::page::{Cell, Unit};

use crate::advice::{Area, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const MANY: Threshold = Threshold::percent(
    "lost events of all events, from where on figures are wrong",
    1,
    "ours: the figures of a capture are said to three digits",
);

/// Name of the rule.
pub(in crate::advice) const ID: &str = "events-lost";

/// Fires where events are missing that were recorded or should have been.
pub(super) static RULE: Rule = Rule {
    id: ID,
    title: "Events were lost",
    area: Area::Capture,
    needs: &[],
    of_gpu_work: false,
    thresholds: &[MANY],
    evaluate,
    #[cfg(test)]
    captures: [fires, quiet],
};

fn sum<'a>(losses: impl Iterator<Item = &'a Loss>) -> u64 {
    losses.fold(0, |sum: u64, loss| sum.saturating_add(loss.count))
}

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let losses = facts.timeline.capture.losses.list();
    let lost = losses.iter().filter(|loss| {
        matches!(loss.reason, LossReason::Dropped | LossReason::Skipped)
            || loss.is_of_impossible_times()
            || loss.is_of_a_cut_file()
    });
    let mut lost: Vec<&Loss> = lost.collect();
    lost.sort_by_key(|loss| std::cmp::Reverse(loss.count));
    let count = sum(lost.iter().copied());
    if count == 0 {
        return Verdict::Quiet;
    }
    let kept = facts.timeline.total_events();
    let rows = lost.iter().take(facts.rows).map(|loss| Evidence {
        what: loss.what.clone(),
        value: Cell::from(loss.count),
        unit: Unit::None,
        place: None,
    });
    if facts.ends_early() {
        let what = format!(
            "The file ends before its end. How many events are missing beside the {kept} that are here cannot be told: sums are too small, \
             and what looks like idle time may be what is missing."
        );
        return FindingDraft::new(what)
            .titled("The file was cut")
            .severity(Severity::High)
            .at(rows)
            .do_this("Take the whole file, or capture again.")
            .into();
    }
    let impossible = lost.iter().copied().filter(|loss| loss.is_of_impossible_times());
    let impossible = sum(impossible);
    let severity = if MANY.reached(count, kept.saturating_add(count)) {
        Severity::High
    } else {
        Severity::Low
    };
    let mut what =
        format!("Lost or cut events: {count}, beside {kept} that are here. Sums are too small, and gaps may be none.");
    if impossible > 0 {
        let times = format!(" Left out or cut because their times cannot be: {impossible}.");
        what.push_str(&times);
    }
    let remedy = if impossible == count {
        "Update the profiler or the driver that wrote these times, and capture again."
    } else {
        "Capture a shorter window, fewer categories, or with a larger buffer of the profiler."
    };
    FindingDraft::new(what)
        .severity(severity)
        .at(rows)
        .do_this(remedy)
        .into()
}

#[cfg(test)]
fn fires() -> flopwatch_model::Timeline {
    let mut timeline = quiet();
    timeline.capture.losses.add(LossReason::Dropped, "CUPTI buffer", 3);
    timeline
}

#[cfg(test)]
fn quiet() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (10, 5));
    let mut timeline = scene.build();
    timeline.capture.losses.add(LossReason::Unsupported, "NVTX marks", 3);
    timeline
}
