//! Schedules, pods and sessions to test with.

use flopwatch_api::schedule::ProfilingScheduleSpec;
use flopwatch_schedule::{Class, Facts, History, Identity, Ledger, Plan, Pod, Run, Session, SessionState, plan};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Noon of a Wednesday, at the start of a slot of 900 s.
pub(crate) fn noon() -> Timestamp {
    "2026-11-25T12:00:00Z".parse().unwrap()
}

pub(crate) fn after(at: Timestamp, seconds: i64) -> Timestamp {
    at + SignedDuration::from_secs(seconds)
}

/// A schedule of one window in 900 s on every pod, with the members of `change` in place of its
/// own.
pub(crate) fn spec(change: Value) -> ProfilingScheduleSpec {
    let mut spec = json!({
        "when": { "interval": { "seconds": 900 } },
        "jitterSeconds": 0,
        "select": { "podSelector": { "matchLabels": { "app": "llm" } }, "perRun": { "percent": 100, "maximum": 1000 } },
    });
    merge(&mut spec, change);
    serde_json::from_value(spec).unwrap()
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (name, value) in change {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

pub(crate) fn identity() -> Identity {
    Identity {
        name: "always".to_owned(),
        uid: "4f9d2b6e-8f0c-4f6e-9a61-0d7b0a3a9d11".to_owned(),
        created: after(noon(), -86_400),
    }
}

pub(crate) fn class() -> Class {
    Class {
        image_digest: "sha256:11".to_owned(),
        hardware: "H100".to_owned(),
    }
}

pub(crate) fn pod(number: usize) -> Pod {
    Pod {
        name: format!("llm-{number:04}"),
        uid: format!("pod-{number:04}"),
        started: after(noon(), -1_000_000),
        restarted: None,
        terminating: false,
        node: format!("gpu-{}", number % 4),
        workload: "Deployment/llm".to_owned(),
        class: class(),
    }
}

pub(crate) fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(pod).collect()
}

/// A history that has decided everything up to then, with no sessions.
pub(crate) fn decided(until: Timestamp) -> History {
    History {
        planned_until: Some(until),
        sessions: Vec::new(),
    }
}

pub(crate) fn planned(spec: &ProfilingScheduleSpec, pods: &[Pod], history: &History, now: Timestamp) -> Plan {
    planned_by(&Ledger::default(), spec, pods, history, now)
}

/// The same where that is known of the classes of pods.
pub(crate) fn planned_by(
    ledger: &Ledger,
    spec: &ProfilingScheduleSpec,
    pods: &[Pod],
    history: &History,
    now: Timestamp,
) -> Plan {
    with_facts(ledger, spec, pods, history, now, plan).unwrap()
}

/// What `work` says of a schedule's facts.
pub(crate) fn with_facts<T>(
    ledger: &Ledger,
    spec: &ProfilingScheduleSpec,
    pods: &[Pod],
    history: &History,
    now: Timestamp,
    work: impl FnOnce(&Facts<'_>) -> T,
) -> T {
    work(&Facts {
        spec,
        identity: &identity(),
        pods,
        history,
        ledger,
        now,
    })
}

/// The session of a run, still open.
pub(crate) fn open_session(run: &Run) -> Session {
    Session {
        name: run.session_name.clone(),
        slot: Some(run.slot),
        trigger: None,
        pod_uid: run.pod_uid.clone(),
        class: None,
        opened: run.opens,
        state: SessionState::Active,
    }
}

/// The session of a run, ended after ten seconds.
pub(crate) fn ended_session(run: &Run) -> Session {
    Session {
        state: SessionState::Succeeded {
            closed: after(run.opens, 10),
        },
        ..open_session(run)
    }
}

/// Follows the schedule from one instant to another, with a look at it every `step` seconds;
/// sessions end after ten seconds.
pub(crate) fn follow(
    spec: &ProfilingScheduleSpec,
    pods: &[Pod],
    history: &mut History,
    from: Timestamp,
    to: Timestamp,
    step: i64,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut now = from;
    while now <= to {
        let plan = planned(spec, pods, history, now);
        history.sessions.extend(plan.runs.iter().map(ended_session));
        history.planned_until = Some(plan.planned_until);
        plans.push(plan);
        now = after(now, step);
    }
    plans
}
