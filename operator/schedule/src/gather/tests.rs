//! Objects as the API server has them.

use flopwatch_api::overhead::OverheadReason;
use serde_json::{Value, json};

use super::*;
use crate::ledger::{Account, Slowdown};
use crate::pod::Class;

fn now() -> Timestamp {
    "2026-11-25T12:00:00Z".parse().unwrap()
}

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn schedule(status: &Value) -> ProfilingSchedule {
    parsed(json!({
        "metadata": {
            "name": "always", "namespace": "team", "uid": "schedule", "generation": 2, "creationTimestamp": "2026-11-25T00:00:00Z"
        },
        "spec": {
            "when": {"interval": {"seconds": 900}},
            "select": {"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["llm"]}]}}
        },
        "status": status,
    }))
}

fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Arc<RunningPod> {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "llm", "pod-template-hash": "7d4"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "llm-7d4", "uid": "r", "controller": true}]
        },
        "spec": {"nodeName": "n1", "containers": [
            {"name": "side"}, {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        ]},
        "status": {
            "phase": "Running", "startTime": "2026-11-25T10:00:00Z",
            "containerStatuses": [
                {"name": "side", "image": "s", "imageID": "r/s@sha256:99", "ready": true, "restartCount": 7,
                 "state": {"running": {"startedAt": "2026-11-25T11:59:00Z"}}},
                {"name": "main", "image": "i", "imageID": "r/i@sha256:11", "ready": true, "restartCount": 0,
                 "state": {"running": {"startedAt": "2026-11-25T10:01:00Z"}}}
            ]
        }
    });
    change(&mut pod);
    Arc::new(parsed(pod))
}

/// A session of a pod that ended `ago` seconds before now, after a window of ten seconds, and its
/// capture.
fn window(number: i64, ago: i64, pod: &str, change: impl FnOnce(&mut Value)) -> (Arc<ProfilingSession>, Arc<Capture>) {
    let at = |seconds: i64| format!("{}", seconds_later(now(), seconds));
    let condition = |status: &str, reason: &str| json!([{"type": "Succeeded", "status": status, "reason": reason, "message": "", "lastTransitionTime": at(-ago)}]);
    let session = json!({
        "metadata": {
            "name": format!("s{number:02}"), "namespace": "team", "uid": format!("session-{number}"), "creationTimestamp": at(-ago - 31),
            "labels": {"flopwatch.dev/schedule": "always"},
            "annotations": {
                "flopwatch.dev/schedule-slot": "1795600800", "flopwatch.dev/target-uid": format!("uid-{pod}"),
                "flopwatch.dev/image-digest": "sha256:11", "flopwatch.dev/hardware": "H100"
            },
            "ownerReferences": [{"apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "name": "always", "uid": "schedule", "controller": true}]
        },
        "spec": {"target": {"podName": pod}},
        "status": {"completionTime": at(-ago), "conditions": condition("True", "Succeeded")}
    });
    let mut capture = json!({
        "metadata": {
            "name": format!("c{number:02}"), "namespace": "team",
            "ownerReferences": [{"apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "name": "s", "uid": format!("session-{number}"), "controller": true}]
        },
        "spec": {
            "sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n1", "podRef": {"name": pod, "uid": format!("uid-{pod}")},
            "containerName": "main", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Summary"]
        },
        "status": {
            "startTime": at(-ago - 30), "completionTime": at(-ago), "conditions": condition("True", "Succeeded"),
            "overhead": {
                "verdict": "Within", "reason": "UpperEndWithin", "message": "", "slowdownBasisPoints": 200, "low": 100, "high": 300,
                "stallMilliseconds": 1200
            }
        }
    });
    change(&mut capture);
    (Arc::new(parsed(session)), Arc::new(parsed(capture)))
}

fn gathered(
    schedule: &ProfilingSchedule,
    pods: &[Arc<RunningPod>],
    windows: Vec<(Arc<ProfilingSession>, Arc<Capture>)>,
) -> Gathered {
    let (sessions, captures): (Vec<_>, Vec<_>) = windows.into_iter().unzip();
    let objects = Objects {
        schedule,
        pods,
        sessions: &sessions,
        captures: &captures,
        hardware: &|node| (node == "n1").then(|| "H100".to_owned()),
    };
    Gathered::new(&objects, now()).unwrap()
}

fn class() -> Class {
    Class {
        image_digest: "sha256:11".to_owned(),
        hardware: "H100".to_owned(),
    }
}

fn account(gathered: &Gathered) -> &Account {
    &gathered.ledger.classes[&class()]
}

#[test]
fn a_pod_is_read_by_the_container_that_a_session_would_take() {
    let found = gathered(&schedule(&Value::Null), &[pod("p", |_| {})], Vec::new());
    let [pod] = found.pods.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(
        (pod.name.as_str(), pod.uid.as_str(), pod.node.as_str()),
        ("p", "uid-p", "n1")
    );
    assert_eq!(pod.workload, "Deployment/llm");
    assert_eq!(pod.class, class());
    assert_eq!(pod.started.to_string(), "2026-11-25T10:01:00Z");
    assert_eq!(
        (pod.restarted, pod.terminating),
        (None, false),
        "the side container is not profiled"
    );
}

#[test]
fn pods_that_do_not_run_match_or_have_nothing_to_profile_are_left_out_and_the_last_are_counted() {
    let pods = [
        pod("pending", |pod| pod["status"]["phase"] = json!("Pending")),
        pod("other", |pod| pod["metadata"]["labels"]["app"] = json!("web")),
        pod("elsewhere", |pod| pod["metadata"]["namespace"] = json!("lab")),
        pod("plain", |pod| pod["spec"]["containers"] = json!([{"name": "main"}])),
        pod("leaving", |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-25T12:00:00Z");
        }),
    ];
    let found = gathered(&schedule(&Value::Null), &pods, Vec::new());
    let names: Vec<&str> = found.pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!((names, found.without_container), (vec!["leaving"], 1));
    assert!(found.pods[0].terminating, "it is counted as such");
}

#[test]
fn a_container_that_restarted_says_when_and_not_when_the_pod_began() {
    let crashed = pod("p", |pod| {
        let main = &mut pod["status"]["containerStatuses"][1];
        main["restartCount"] = json!(2);
        main["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        main["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-11-25T11:58:00Z"}});
    });
    let found = gathered(&schedule(&Value::Null), &[crashed], Vec::new());
    assert_eq!(found.pods[0].started.to_string(), "2026-11-25T10:00:00Z");
    assert_eq!(found.pods[0].restarted.unwrap().to_string(), "2026-11-25T11:58:00Z");
}

#[test]
fn windows_are_accounted_to_the_class_of_their_pod_with_their_stalls() {
    let found = gathered(
        &schedule(&Value::Null),
        &[pod("p", |_| {}), pod("q", |_| {})],
        vec![window(1, 600, "p", |_| {}), window(2, 300, "gone", |_| {})],
    );
    let account = account(&found);
    assert_eq!(
        (account.windows, account.blind_windows, account.outcomes.len()),
        (2, 0, 2)
    );
    assert_eq!(
        (account.window_seconds, account.stalled_milliseconds),
        (10, 1_200),
        "of the pod that is there"
    );
    assert_eq!(account.pod_seconds, 2 * (2 * 3600 - 60));
    let pool = account.slowdown.unwrap();
    assert_eq!(pool.basis_points, 200);
    let [one, other] = found.history.sessions.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((one.name.as_str(), other.name.as_str()), ("s01", "s02"));
    assert_eq!(one.class, Some(class()));
    assert_eq!(one.opened, seconds_later(now(), -630));
    let closed = seconds_later(now(), -620);
    assert_eq!(
        one.state,
        crate::SessionState::Succeeded { closed },
        "what came after the window is no part of it"
    );
}

#[test]
fn what_a_window_says_of_its_pod_is_taken_only_where_it_can_be_told() {
    let told = |overhead: Value| {
        let window = window(1, 600, "p", |capture| capture["status"]["overhead"] = overhead);
        let found = gathered(&schedule(&Value::Null), &[pod("p", |_| {})], vec![window]);
        let account = account(&found).clone();
        (account.windows, account.blind_windows, account.slowdown)
    };
    let overhead = |verdict: &str, reason: &str| json!({"verdict": verdict, "reason": reason, "message": "", "slowdownBasisPoints": 5, "low": 1, "high": 9});
    let five = Slowdown {
        basis_points: 5,
        low: 1,
        high: 9,
    };
    assert_eq!(
        told(overhead("Inconclusive", "BudgetWithinInterval")),
        (1, 0, Some(five))
    );
    assert_eq!(told(overhead("Inconclusive", "LoadChanged")), (1, 0, None));
    assert_eq!(
        told(json!({"verdict": "Blind", "reason": "NoSignal", "message": ""})),
        (1, 1, None)
    );
    assert_eq!(told(Value::Null), (1, 1, None));
    assert_eq!(
        told(overhead("Inconclusive", "TooFewBins")),
        (1, 0, Some(five)),
        "several short windows tell together"
    );
}

#[test]
fn short_windows_of_a_pod_whose_work_is_counted_are_not_blind_and_say_why_they_cannot_be_judged() {
    // A schedule of windows of 3 s: each bin of a slow step is longer than the window.
    let short = |number: i64, reason: &str| {
        window(number, 600 - 30 * number, "p", |capture| {
            capture["status"]["overhead"] = json!({"verdict": "Inconclusive", "reason": reason, "message": ""});
        })
    };
    let schedule = schedule(&Value::Null);
    let told = |windows| {
        let found = gathered(&schedule, &[pod("p", |_| {})], windows);
        let status = crate::budget_status(&schedule.spec, &found.ledger);
        (status.state.as_str(), status.reason.map(OverheadReason::as_str))
    };
    let counted: Vec<_> = (1..=8).map(|number| short(number, "TooFewBins")).collect();
    assert_eq!(told(counted), ("Inconclusive", Some("TooFewBins")));
    let last = vec![short(1, "TooFewBins"), short(2, "TooSeldom")];
    assert_eq!(told(last), ("Inconclusive", Some("TooSeldom")));
    let uncounted = window(1, 600, "p", |capture| capture["status"]["overhead"] = Value::Null);
    assert_eq!(told(vec![uncounted]), ("Blind", Some("NoSignal")));
    assert_eq!(told(Vec::new()), ("Learning", None));
}

#[test]
fn only_failures_that_another_window_would_meet_too_speak_against_a_class() {
    let failed = |reason: &str, opened: bool| {
        let window = window(1, 600, "p", |capture| {
            capture["status"]["conditions"][0]["status"] = json!("False");
            capture["status"]["conditions"][0]["reason"] = json!(reason);
            if !opened {
                capture["status"]["startTime"] = Value::Null;
            }
        });
        let found = gathered(&schedule(&Value::Null), &[pod("p", |_| {})], vec![window]);
        let session = &found.history.sessions[0];
        assert_eq!(
            session.opened == seconds_later(now(), -600),
            !opened,
            "a window that never was has no length"
        );
        let outcomes = &account(&found).outcomes;
        (account(&found).windows, outcomes.first().map(|outcome| outcome.failed))
    };
    assert_eq!(failed("OverBudget", true), (1, Some(true)));
    assert_eq!(failed("RequiredEventsMissing", true), (1, Some(true)));
    assert_eq!(failed("SessionGone", false), (0, Some(true)));
    assert_eq!(failed("DiskSpace", true), (1, Some(false)));
    assert_eq!(failed("ContainerBusy", false), (0, None));
}

#[test]
fn a_class_is_judged_by_its_last_windows_over_the_time_of_those() {
    let windows = (0..30)
        .map(|number| window(number, 60 * (30 - number), "p", |_| {}))
        .collect();
    let found = gathered(&schedule(&Value::Null), &[pod("p", |_| {})], windows);
    let account = account(&found);
    assert_eq!((account.windows, account.window_seconds), (20, 200));
    assert_eq!(
        account.pod_seconds,
        21 * 60,
        "since the end of the last one that does not count"
    );
}

#[test]
fn a_change_of_the_spec_begins_the_ledger_anew() {
    let windows = || vec![window(1, 600, "p", |_| {}), window(2, 300, "p", |_| {})];
    let pods = [pod("p", |_| {})];
    let since = seconds_later(now(), -400);
    let kept = schedule(&json!({"observedGeneration": 2, "ledgerSince": since.to_string()}));
    let found = gathered(&kept, &pods, windows());
    assert_eq!((account(&found).windows, account(&found).pod_seconds), (1, 400));
    assert_eq!(found.ledger_since, since);
    let changed = schedule(&json!({"observedGeneration": 1, "ledgerSince": since.to_string()}));
    let found = gathered(&changed, &pods, windows());
    assert_eq!((account(&found).windows, found.ledger_since), (0, now()));
    assert_eq!(found.history.sessions.len(), 2, "what was done is not forgotten");
}

#[test]
fn sessions_of_others_are_no_part_of_it() {
    let (session, capture) = window(1, 600, "p", |_| {});
    let mut foreign = session.as_ref().clone();
    foreign.metadata.owner_references = None;
    let found = gathered(
        &schedule(&Value::Null),
        &[pod("p", |_| {})],
        vec![(Arc::new(foreign), capture)],
    );
    assert!(found.history.sessions.is_empty() && account(&found).windows == 0);
}

#[test]
fn a_selector_that_cannot_be_used_is_the_schedules_fault() {
    let mut schedule = schedule(&Value::Null);
    let selector = &mut schedule.spec.select.pod_selector;
    selector.match_expressions.as_mut().unwrap()[0].operator = "Like".to_owned();
    let objects = Objects {
        schedule: &schedule,
        pods: &[],
        sessions: &[],
        captures: &[],
        hardware: &|_| None,
    };
    let error = Gathered::new(&objects, now()).unwrap_err().to_string();
    assert!(error.starts_with("spec.select.podSelector: "), "{error}");
}

#[test]
fn what_passed_while_no_sessions_were_made_is_decided() {
    let of = |reason: &str| {
        let status = json!({
            "plannedUntil": "2026-11-25T08:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-11-25T08:00:00Z"}]
        });
        gathered(&schedule(&status), &[], Vec::new())
            .history
            .planned_until
            .unwrap()
    };
    assert_eq!(of("Scheduled").to_string(), "2026-11-25T08:00:00Z");
    assert_eq!((of("Suspended"), of("CapturesSuspended")), (now(), now()));
}

#[test]
fn the_trigger_of_an_alerts_session_is_found_by_the_sessions_name_and_no_other_session_has_one() {
    let mut schedule = schedule(&Value::Null);
    schedule.spec.triggers = parsed(json!([{"alert": {"name": "Stalled"}}, {"alert": {"name": "Slow"}}]));
    let slow = schedule.spec.triggers[1].clone();
    let own = identity(&schedule, now());
    let name = triggered_session_name(&own, &Draws::of(&own.uid), &slow, 3);
    let session = |change: &dyn Fn(&mut Value)| -> ProfilingSession {
        let mut session = json!({
            "metadata": {
                "name": name, "namespace": "team", "uid": "s", "labels": {"flopwatch.dev/schedule": "always"},
                "annotations": {
                    "flopwatch.dev/trigger": "Slow/0badcafe", "flopwatch.dev/trigger-number": "3",
                    "flopwatch.dev/alert-started": "2026-11-25T11:00:00Z"
                },
                "ownerReferences": [{
                    "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "name": "always",
                    "uid": "schedule"
                }]
            },
            "spec": {"target": {"podName": "p"}}
        });
        change(&mut session["metadata"]);
        parsed(session)
    };
    assert_eq!(trigger_of_session(&schedule, &session(&|_| {})), Some(&slow));
    let others: [&dyn Fn(&mut Value); 6] = [
        &|of| of["name"] = json!("always-0123456789abcdef"),
        &|of| of["annotations"]["flopwatch.dev/trigger"] = json!("Stalled/0badcafe"),
        &|of| of["annotations"]["flopwatch.dev/trigger-number"] = json!("4"),
        &|of| of["annotations"]["flopwatch.dev/alert-started"] = json!("soon"),
        &|of| of["ownerReferences"][0]["uid"] = json!("an earlier one of the same name"),
        &|of| of["labels"] = json!({}),
    ];
    for change in others {
        let session = session(change);
        assert_eq!(trigger_of_session(&schedule, &session), None, "{:?}", session.metadata);
    }
}
