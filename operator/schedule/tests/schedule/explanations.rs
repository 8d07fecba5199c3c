//! What is foretold, and whether it comes true.

use flopwatch_api::schedule::{ProfilingScheduleSpec, SkipReason};
use flopwatch_schedule::{Explanation, History, Ledger, Pod, PodVerdict, Verdict, explain};
use serde_json::json;

use crate::fleet::{after, decided, follow, noon, pods, spec, with_facts};

/// What is foretold at noon, with so many runs.
fn explained(spec: &ProfilingScheduleSpec, pods: &[Pod], history: &History, runs: usize) -> Explanation {
    let ledger = Ledger::default();
    with_facts(&ledger, spec, pods, history, noon(), |facts| explain(facts, runs)).unwrap()
}

#[test]
fn the_runs_that_are_foretold_come_true() {
    let spec = spec(json!({
        "jitterSeconds": 120,
        "select": { "perRun": { "percent": 10 }, "restSeconds": 3600 },
        "blackouts": [{ "cron": "0 14 * * *", "durationSeconds": 3600 }],
    }));
    let fleet = pods(100);
    let mut history = decided(noon());
    let foretold = explained(&spec, &fleet, &history, 150);
    assert_eq!(foretold.runs.len(), 150);
    let plans = follow(&spec, &fleet, &mut history, noon(), after(noon(), 6 * 3600), 10);
    let mut came: Vec<_> = plans.into_iter().flat_map(|plan| plan.runs).collect();
    came.sort_by(|one, other| (one.opens, &one.session_name).cmp(&(other.opens, &other.session_name)));
    came.truncate(150);
    assert_eq!(foretold.runs, came);
}

#[test]
fn every_pod_has_its_verdict_and_a_reason_where_it_is_left_out() {
    let mut fleet = pods(20);
    fleet[0].terminating = true;
    fleet[1].started = after(noon(), 100);
    let spec = spec(json!({
        "when": { "interval": null, "cron": { "expression": "5 12 * * *" } },
        "select": { "perRun": { "percent": 10 } },
    }));
    let said = explained(&spec, &fleet, &decided(noon()), 5);
    assert_eq!(said.pods.len(), 20);
    assert_eq!(said.pods[0].verdict, Verdict::Skipped(SkipReason::Terminating));
    assert_eq!(said.pods[1].verdict, Verdict::Skipped(SkipReason::TooYoung));
    let is_drawn = |pod: &&PodVerdict| matches!(pod.verdict, Verdict::Drawn { .. });
    assert_eq!(said.pods.iter().filter(is_drawn).count(), 2);
    assert!(!said.suspended);
}
