//! Which pods are left out, and why.

use std::collections::BTreeMap;

use flopwatch_api::schedule::SkipReason;
use flopwatch_schedule::{Account, Facts, History, Ledger, Outcome, Pod, plan};
use serde_json::json;

use crate::fleet::{
    after, class, decided, ended_session, follow, identity, noon, open_session, planned, planned_by, pod, pods, spec,
    with_facts,
};

/// A schedule whose slots are at the quarters of an hour, for all pods at once.
fn quarters(change: &serde_json::Value) -> flopwatch_api::schedule::ProfilingScheduleSpec {
    let mut all = json!({ "when": { "interval": null, "cron": { "expression": "*/15 * * * *" } } });
    for (name, value) in change.as_object().unwrap() {
        all[name] = value.clone();
    }
    spec(all)
}

/// What is decided at noon.
fn at_noon(change: &serde_json::Value, pods: &[Pod], history: &History) -> flopwatch_schedule::Plan {
    planned(&quarters(change), pods, history, noon())
}

fn just_before() -> History {
    decided(after(noon(), -1))
}

#[test]
fn pods_in_a_rollout_are_left_out_and_counted() {
    let mut fleet = pods(5);
    fleet[1].started = after(noon(), -299);
    fleet[2].terminating = true;
    fleet[3].restarted = Some(after(noon(), -10));
    fleet[4].restarted = Some(after(noon(), -300));
    let plan = at_noon(&json!({}), &fleet, &just_before());
    let drawn: Vec<&str> = plan.runs.iter().map(|run| run.pod_uid.as_str()).collect();
    assert_eq!(drawn.len(), 2);
    assert!(drawn.contains(&"pod-0000") && drawn.contains(&"pod-0004"));
    for reason in [SkipReason::TooYoung, SkipReason::Terminating, SkipReason::Restarting] {
        assert_eq!(plan.skipped.of(reason), 1, "{reason:?}");
    }
}

#[test]
fn a_pod_that_came_after_its_time_was_not_left_out() {
    let mut late = pod(0);
    late.started = after(noon(), 5);
    let plan = planned(&quarters(&json!({})), &[late], &just_before(), after(noon(), 10));
    assert!(plan.runs.is_empty() && plan.skipped.is_empty());
}

#[test]
fn each_stratum_has_its_share_and_never_more_than_its_maximum() {
    let select = json!({
        "podSelector": { "matchLabels": { "app": "llm" } },
        "stratifyBy": ["ImageDigest", "Node"],
        "perRun": { "percent": 10, "minimum": 1, "maximum": 3 },
    });
    // Four nodes of 50 pods each: a tenth is five, and three is the most. The fifth node has four
    // pods of another image.
    let mut fleet = pods(200);
    for number in 0..4 {
        let mut other = pod(1_000 + number);
        other.class.image_digest = "sha256:22".to_owned();
        other.node = "gpu-9".to_owned();
        fleet.push(other);
    }
    let plan = at_noon(&json!({ "select": select }), &fleet, &just_before());
    let mut by_node: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &plan.runs {
        let pod = fleet.iter().find(|pod| pod.uid == run.pod_uid).unwrap();
        *by_node.entry(&pod.node).or_default() += 1;
    }
    assert_eq!(
        by_node,
        BTreeMap::from([("gpu-0", 3), ("gpu-1", 3), ("gpu-2", 3), ("gpu-3", 3), ("gpu-9", 1)])
    );
    let of = |at: usize| {
        let stratum = &plan.strata[at];
        (stratum.key.as_str(), stratum.pods, stratum.probability_per_billion)
    };
    assert_eq!(of(0), ("ImageDigest=sha256:11,Node=gpu-0", 50, 666_667));
    assert_eq!(of(4), ("ImageDigest=sha256:22,Node=gpu-9", 4, 2_777_778));
    assert!(plan.skipped.is_empty(), "who is not drawn is not left out");
}

#[test]
fn a_pod_rests_after_its_window_and_is_drawn_again_after_that() {
    let spec = spec(json!({ "select": { "restSeconds": 3600 } }));
    let mut history = decided(noon());
    let plans = follow(&spec, &pods(10), &mut history, noon(), after(noon(), 86_400), 30);
    let mut last: BTreeMap<String, jiff::Timestamp> = BTreeMap::new();
    let mut windows = 0;
    for run in plans.iter().flat_map(|plan| &plan.runs) {
        if let Some(before) = last.insert(run.pod_uid.clone(), run.opens) {
            let apart = run.opens.duration_since(before).as_secs();
            assert_eq!(apart, 4500, "four slots are less than a window and its rest");
        }
        windows += 1;
    }
    assert!((190..=200).contains(&windows), "{windows}");
    let rested: i64 = plans.iter().map(|plan| plan.skipped.of(SkipReason::Resting)).sum();
    assert_eq!(
        rested + windows,
        960,
        "each pod has a window in each slot, or is counted"
    );
}

#[test]
fn a_pod_is_in_windows_no_longer_than_its_day_allows() {
    let spec = spec(json!({ "budget": { "captureSecondsPerPodPerDay": 35 } }));
    let mut history = decided(noon());
    let plans = follow(&spec, &pods(4), &mut history, noon(), after(noon(), 2 * 86_400), 60);
    let runs: Vec<_> = plans.iter().flat_map(|plan| &plan.runs).collect();
    for run in &runs {
        let day = after(run.opens, -86_400);
        let of_day = runs
            .iter()
            .filter(|other| other.pod_uid == run.pod_uid && other.opens > day && other.opens <= run.opens);
        assert!(of_day.count() <= 3);
    }
    assert_eq!(runs.len(), 4 * 6);
    let limited = |plan: &flopwatch_schedule::Plan| plan.skipped.of(SkipReason::DailyLimit) > 0;
    assert!(plans.iter().any(limited));
}

#[test]
fn a_session_that_still_runs_forbids_the_next_one_or_is_stopped_or_is_left() {
    let mut history = just_before();
    let (before, then) = (decided(after(noon(), -901)), after(noon(), -900));
    let earlier = planned(&quarters(&json!({})), &pods(1), &before, then);
    history.sessions.extend(earlier.runs.iter().map(open_session));
    let name = earlier.runs[0].session_name.clone();

    let forbid = at_noon(&json!({}), &pods(1), &history);
    assert_eq!((forbid.runs.len(), forbid.skipped.of(SkipReason::StillRunning)), (0, 1));
    let replace = at_noon(&json!({ "concurrencyPolicy": "Replace" }), &pods(1), &history);
    assert_eq!((replace.runs.len(), replace.stops), (1, vec![name]));
    let allow = at_noon(&json!({ "concurrencyPolicy": "Allow" }), &pods(1), &history);
    assert_eq!((allow.runs.len(), allow.stops.len()), (1, 0));
}

#[test]
fn a_window_that_is_made_is_not_made_again_and_has_its_place() {
    let select = json!({ "podSelector": { "matchLabels": { "app": "llm" } }, "perRun": { "percent": 10 } });
    let change = json!({ "select": select });
    let fleet = pods(100);
    let first = at_noon(&change, &fleet, &just_before());
    assert_eq!(first.runs.len(), 10);
    let mut history = just_before();
    history.sessions.extend(first.runs.iter().take(4).map(ended_session));
    let rest = at_noon(&change, &fleet, &history);
    assert_eq!(rest.runs.len(), 6);
    assert!(rest.runs.iter().all(|run| first.runs.contains(run)));

    // A drawn pod is deleted: another one takes its place.
    let gone = &rest.runs[0].pod_uid;
    let fleet: Vec<Pod> = fleet.into_iter().filter(|pod| pod.uid != *gone).collect();
    let other = at_noon(&change, &fleet, &history);
    assert_eq!(other.runs.len(), 6);
}

#[test]
fn who_is_drawn_depends_on_the_schedule_and_the_slot_and_not_on_the_order_of_pods() {
    let select = json!({ "podSelector": { "matchLabels": { "app": "llm" } }, "perRun": { "percent": 10 } });
    let spec = quarters(&json!({ "select": select }));
    let uids = |plan: flopwatch_schedule::Plan| -> Vec<String> {
        let mut uids: Vec<String> = plan.runs.into_iter().map(|run| run.pod_uid).collect();
        uids.sort();
        uids
    };
    let mut fleet = pods(100);
    let drawn = uids(planned(&spec, &fleet, &just_before(), noon()));
    fleet.reverse();
    assert_eq!(uids(planned(&spec, &fleet, &just_before(), noon())), drawn);
    let next = planned(&spec, &fleet, &decided(after(noon(), 899)), after(noon(), 900));
    assert_ne!(uids(next), drawn);
    let mut other = identity();
    other.uid = "another".to_owned();
    let plan = plan(&Facts {
        spec: &spec,
        identity: &other,
        pods: &fleet,
        history: &just_before(),
        ledger: &Ledger::default(),
        now: noon(),
    })
    .unwrap();
    assert_ne!(uids(plan), drawn);
}

#[test]
fn a_class_that_failed_is_backed_off_on_all_its_pods_and_others_are_not() {
    let mut fleet = pods(6);
    for pod in fleet.iter_mut().take(2) {
        pod.class.image_digest = "sha256:22".to_owned();
    }
    let failed = Account {
        windows: 1,
        outcomes: vec![Outcome {
            at: after(noon(), -60),
            failed: true,
        }],
        ..Account::default()
    };
    let ledger = Ledger {
        classes: BTreeMap::from([(class(), failed)]),
    };
    let spec = quarters(&json!({}));
    let of = |now| planned_by(&ledger, &spec, &fleet, &decided(after(now, -1)), now);
    assert_eq!(
        (of(noon()).runs.len(), of(noon()).skipped.of(SkipReason::BackedOff)),
        (2, 4)
    );
    assert_eq!(of(after(noon(), 2700)).skipped.of(SkipReason::BackedOff), 4);
    assert_eq!(of(after(noon(), 3600)).runs.len(), 6);
}

#[test]
fn the_next_look_is_at_the_next_window_or_the_next_slot() {
    let spec = spec(json!({}));
    let mut now = noon();
    let mut history = decided(now);
    let fleet = pods(20);
    let mut windows = 0;
    // Whoever looks when it is said to, and at no other time, makes every window as soon as its
    // time has come.
    while now < after(noon(), 9_000) {
        let plan = planned(&spec, &fleet, &history, now);
        assert!(plan.runs.iter().all(|run| run.opens == now), "{:?} at {now}", plan.runs);
        windows += plan.runs.len();
        history.sessions.extend(plan.runs.iter().map(ended_session));
        history.planned_until = Some(plan.planned_until);
        let next = plan.next.unwrap();
        assert!(next > now);
        now = next;
    }
    assert_eq!(windows, 200);
}

#[test]
fn a_schedule_that_cannot_be_followed_says_why() {
    let refused = |change| {
        let (spec, ledger) = (spec(change), Ledger::default());
        let error = with_facts(&ledger, &spec, &pods(1), &just_before(), noon(), plan);
        error.unwrap_err().to_string()
    };
    let never = refused(json!({ "when": { "interval": null, "cron": { "expression": "0 0 30 2 *" } } }));
    assert!(
        never.starts_with("spec.when.cron: ") && never.contains("no day that there is"),
        "{never}"
    );
    let zone =
        refused(json!({ "blackouts": [{ "cron": "0 0 * * *", "timeZone": "Mars/Olympus", "durationSeconds": 1 }] }));
    let start = "spec.blackouts: ";
    assert!(zone.starts_with(start) && zone.contains("Mars/Olympus"), "{zone}");
}
