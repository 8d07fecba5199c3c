//! What is foretold, and whether it comes true.

use flopwatch_api::schedule::SkipReason;
use flopwatch_schedule::{Facts, Ledger, Verdict, explain};
use serde_json::json;

use crate::fleet::{after, decided, follow, identity, noon, pods, spec};

#[test]
fn the_runs_that_are_foretold_come_true() {
    let spec = spec(json!({
        "jitterSeconds": 120,
        "select": { "perRun": { "percent": 10 }, "restSeconds": 3600 },
        "blackouts": [{ "cron": "0 14 * * *", "durationSeconds": 3600 }],
    }));
    let fleet = pods(100);
    let mut history = decided(noon());
    let foretold = explain(
        &Facts {
            spec: &spec,
            identity: &identity(),
            pods: &fleet,
            history: &history,
            ledger: &Ledger::default(),
            now: noon(),
        },
        150,
    )
    .unwrap();
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
    let said = explain(
        &Facts {
            spec: &spec,
            identity: &identity(),
            pods: &fleet,
            history: &decided(noon()),
            ledger: &Ledger::default(),
            now: noon(),
        },
        5,
    )
    .unwrap();
    assert_eq!(said.pods.len(), 20);
    assert_eq!(said.pods[0].verdict, Verdict::Skipped(SkipReason::Terminating));
    assert_eq!(said.pods[1].verdict, Verdict::Skipped(SkipReason::TooYoung));
    let drawn = said
        .pods
        .iter()
        .filter(|pod| matches!(pod.verdict, Verdict::Drawn { .. }))
        .count();
    assert_eq!(drawn, 2);
    assert!(!said.suspended);
}
