mod limits;
mod template;

use serde_json::{Value, json};

use super::*;
use crate::preparation_failure::tests::{exited, parsed, prepared, waiting};

const NOW: &str = "2026-01-01T00:01:00Z";

fn session(spec: &Value, status: &Value) -> ProfilingSession {
    let mut full = json!({"target": {"podName": "p"}, "durationSeconds": 10, "startDeadlineSeconds": 300});
    json_patch::merge(&mut full, spec);
    serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": {
            "name": "s", "namespace": "team", "uid": "session-uid", "generation": 1, "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {REQUESTED_BY_ANNOTATION: "ada"}
        },
        "spec": full, "status": status
    }))
    .unwrap()
}

fn pod(name: &str, phase: &str) -> Arc<Pod> {
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "train"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": phase}
        }))
        .unwrap(),
    )
}

fn world<'a>(pods: &'a [Arc<Pod>], captures: &'a [Arc<Capture>]) -> World<'a> {
    World {
        now: NOW.parse().unwrap(),
        pods,
        captures,
        suspended: false,
        quota: Quota::default(),
        budget: Budget::new(50, []),
        attempt: None,
        replica: None,
        top_kernels: Ok(&[]),
        forged: None,
        fresh_id: "00c0ffee",
    }
}

/// The same while new captures are suspended.
fn suspended(world: World<'_>) -> World<'_> {
    World {
        suspended: true,
        ..world
    }
}

/// The session after its first step.
fn begun(spec: &Value) -> ProfilingSession {
    let mut session = session(spec, &json!({}));
    session.status = Some(plan(&session, &world(&[], &[])).status);
    session
}

/// The session after it made captures for `pods`, and those captures.
fn capturing(spec: &Value, pods: &[Arc<Pod>]) -> (ProfilingSession, Vec<Arc<Capture>>) {
    let mut session = begun(spec);
    let step = plan(&session, &world(pods, &[]));
    session.status = Some(step.status);
    (session, step.create.into_iter().map(Arc::new).collect())
}

fn ended(capture: &Arc<Capture>, condition: &str, status: &str, reason: &str) -> Arc<Capture> {
    let mut capture = Capture::clone(capture);
    capture.status = serde_json::from_value(json!({
        "url": "https://agent/captures/1",
        "conditions": [{"type": condition, "status": status, "reason": reason, "message": "why", "lastTransitionTime": NOW}]
    }))
    .unwrap();
    Arc::new(capture)
}

fn condition(status: &ProfilingSessionStatus, type_: SessionCondition) -> String {
    let found = conditions::find(&status.conditions, type_.as_str()).unwrap();
    assert_eq!(found.observed_generation, Some(1), "{type_} carries the generation");
    format!("{} {}: {}", found.status, found.reason, found.message)
}

/// Its condition TargetsFound.
fn targets_found(step: &Plan) -> String {
    condition(&step.status, SessionCondition::TargetsFound)
}

/// Its condition Succeeded.
fn succeeded(step: &Plan) -> String {
    condition(&step.status, SessionCondition::Succeeded)
}

/// A spec of so many pods at most.
fn selector(pods: i32) -> Value {
    json!({"target": {"podName": null, "podSelector": {"matchLabels": {"app": "train"}}, "maxPods": pods}})
}

#[test]
fn the_first_step_only_writes_down_the_id_and_every_condition() {
    let session = session(&json!({}), &json!({}));
    let pods = [pod("p", "Running")];
    let step = plan(&session, &world(&pods, &[]));
    assert!(
        step.create.is_empty(),
        "captures carry the id, so it must be safe first"
    );
    assert_eq!(step.status.id.as_deref(), Some("00c0ffee"));
    assert_eq!(step.status.requested_by.as_deref(), Some("ada"));
    assert_eq!(step.status.conditions.len(), SessionCondition::ALL.len());
}

#[test]
fn a_running_pod_gets_one_capture_owned_by_the_session() {
    let (session, captures) = capturing(&json!({}), &[pod("p", "Running")]);
    let [capture] = captures.as_slice() else {
        panic!("{captures:?}")
    };
    let mut shown = serde_json::to_value(capture.as_ref()).unwrap();
    shown.as_object_mut().unwrap().remove("status");
    insta::assert_yaml_snapshot!("capture", shown);
    let status = session.status.unwrap();
    assert_eq!(
        condition(&status, SessionCondition::TargetsFound),
        "True TargetsFound: 1 container"
    );
    assert_eq!((status.counts.captures, status.counts.active), (1, 1));
    assert_eq!(status.captures.len(), 1);
}

#[test]
fn a_target_that_comes_late_is_waited_for_until_the_deadline() {
    let session = begun(&json!({"startDeadlineSeconds": 61}));
    let pods = [pod("p", "Pending")];
    let waiting = plan(&session, &world(&pods, &[]));
    assert!(targets_found(&waiting).starts_with("False WaitingForTargets: pod p is not running"));
    assert_eq!(waiting.again, Some(Duration::from_secs(2)));
    assert_eq!(waiting.status.completion_time, None);

    let late = World {
        now: "2026-01-01T00:01:01Z".parse().unwrap(),
        ..world(&[], &[])
    };
    let given_up = plan(&session, &late);
    assert!(given_up.decisive && given_up.create.is_empty());
    insta::assert_snapshot!(succeeded(&given_up), @"False Failed: there is no pod p in namespace team; a session targets pods of its own namespace only; waited 61 s (spec.startDeadlineSeconds)");
    assert!(targets_found(&given_up).starts_with("False NoTargets"));
}

#[test]
fn suspended_captures_are_waited_for_and_not_made() {
    let session = begun(&json!({}));
    let pods = [pod("p", "Running")];
    let step = plan(&session, &suspended(world(&pods, &[])));
    assert!(step.create.is_empty());
    assert!(targets_found(&step).starts_with("False CapturesSuspended"));
    let (running, captures) = capturing(&json!({}), &pods);
    let step = plan(&running, &suspended(world(&pods, &captures)));
    assert!(step.stop.is_empty(), "captures that were made go on");
}

#[test]
fn targets_are_chosen_once() {
    let spec = selector(2);
    let (session, captures) = capturing(&spec, &[pod("p", "Running")]);
    let more = [pod("p", "Running"), pod("q", "Running")];
    assert!(plan(&session, &world(&more, &captures)).create.is_empty());

    // A pass that was cut off after the first of two captures goes on with the second.
    let (session, captures) = (begun(&spec), capturing(&spec, &[pod("q", "Running")]).1);
    let all = [pod("a", "Running"), pod("p", "Running"), pod("q", "Running")];
    let step = plan(&session, &world(&all, &captures));
    let names: Vec<_> = step
        .create
        .iter()
        .map(|capture| capture.spec.pod_ref.name.as_str())
        .collect();
    assert_eq!((names.as_slice(), step.status.counts.captures), (["a"].as_slice(), 2));
}

#[test]
fn the_verdict_counts_the_captures() {
    let spec = selector(3);
    let pods = [pod("p", "Running"), pod("q", "Running"), pod("r", "Running")];
    let (session, captures) = capturing(&spec, &pods);
    let good = |at: usize| ended(&captures[at], "Succeeded", "True", "Succeeded");
    let bad = |at: usize| ended(&captures[at], "Succeeded", "False", "ContainerBusy");
    let lost = |at: usize| ended(&captures[at], "Lost", "True", "NodeLost");
    let cases = [
        (
            "all good",
            vec![good(0), good(1), good(2)],
            "True Succeeded: all 3 captures succeeded",
        ),
        (
            "one busy, one lost",
            vec![good(0), bad(1), lost(2)],
            "False PartiallySucceeded: 1 of 3 captures succeeded; failed: 1 ContainerBusy, 1 NodeLost",
        ),
        (
            "one busy",
            vec![good(0), good(1), bad(2)],
            "False PartiallySucceeded: 2 of 3 captures succeeded; failed: 1 ContainerBusy: why",
        ),
        (
            "all busy",
            vec![bad(0), bad(1), bad(2)],
            "False Failed: 0 of 3 captures succeeded; failed: 3 ContainerBusy",
        ),
        (
            "one deleted",
            vec![good(0), good(1)],
            "False PartiallySucceeded: 2 of 3 captures succeeded; failed: 1 deleted before the end",
        ),
        (
            "one still at work",
            vec![good(0), bad(1), Arc::clone(&captures[2])],
            "Unknown Progressing: 2 of 3 captures have ended",
        ),
    ];
    for (name, captures, expected) in cases {
        let step = plan(&session, &world(&pods, &captures));
        assert_eq!(succeeded(&step), expected, "{name}");
        let over = !expected.starts_with("Unknown");
        assert_eq!(
            (step.status.completion_time.is_some(), step.decisive),
            (over, over),
            "{name}"
        );
        assert_eq!(step.status.url.as_deref(), Some("https://agent/captures/1"), "{name}");
    }
}

#[test]
fn a_stop_reaches_the_live_captures_and_only_them() {
    let spec = selector(2);
    let pods = [pod("p", "Running"), pod("q", "Running")];
    let (mut session, captures) = capturing(&spec, &pods);
    session.spec.stop = Some(StopMode::Discard);
    let discarded = |at: usize| ended(&captures[at], "Succeeded", "False", "Discarded");
    let step = plan(&session, &world(&pods, &[discarded(0), Arc::clone(&captures[1])]));
    assert_eq!(step.stop.len(), 1);
    assert_eq!(step.stop[0].0.name_any(), captures[1].name_any());

    let captures = [discarded(0), discarded(1)];
    let step = plan(&session, &world(&pods, &captures));
    assert!(succeeded(&step).starts_with("False Discarded"));
}

#[test]
fn a_stop_before_there_are_targets_ends_the_session() {
    for (mode, expected) in [(StopMode::Keep, "False Failed"), (StopMode::Discard, "False Discarded")] {
        let mut session = begun(&json!({}));
        session.spec.stop = Some(mode);
        let step = plan(&session, &world(&[pod("p", "Running")], &[]));
        assert!(step.create.is_empty());
        assert!(succeeded(&step).starts_with(expected));
    }
}

#[test]
fn an_ended_session_stays_as_it_is_until_its_retention_is_over() {
    let (mut session, captures) = capturing(
        &json!({"retention": {"ttlSecondsAfterFinished": 30}}),
        &[pod("p", "Running")],
    );
    let done = [ended(&captures[0], "Succeeded", "True", "Succeeded")];
    session.status = Some(plan(&session, &world(&[], &done)).status);
    let later = |now: &str| {
        let later = World {
            now: now.parse().unwrap(),
            ..world(&[], &[])
        };
        plan(&session, &later)
    };
    let kept = later("2026-01-01T00:01:29Z");
    assert_eq!(
        Some(&kept.status),
        session.status.as_ref(),
        "captures that were deleted afterwards change nothing"
    );
    assert_eq!((kept.expired, kept.again), (false, Some(Duration::from_secs(2))));
    assert!(later("2026-01-01T00:01:30Z").expired);
}

#[test]
fn planning_twice_from_the_same_sight_plans_the_same() {
    let pods = [pod("p", "Running")];
    let (mut session, captures) = capturing(&json!({}), &pods);
    let busy = [ended(&captures[0], "Accepted", "True", "Accepted")];
    session.status = Some(plan(&session, &world(&pods, &busy)).status);
    let again = plan(&session, &world(&pods, &busy));
    assert_eq!(Some(&again.status), session.status.as_ref());
    assert!(again.create.is_empty() && again.stop.is_empty() && !again.expired);
}

#[test]
fn the_longest_session_name_gives_a_valid_capture_name() {
    let target = Target {
        pod_name: "p".into(),
        pod_uid: "u".into(),
        node_name: "n".into(),
        container: "c".into(),
    };
    assert_eq!(capture_name(&"s".repeat(52), &target).len(), 63);
}

#[test]
fn targets_that_were_found_say_which_pod_the_preparation_held_up() {
    let held = prepared("b", &exited(0), &waiting("ErrImagePull"));
    let pods = [pod("a", "Running"), Arc::new(parsed(&held))];
    let spec = selector(2);
    let step = plan(&begun(&spec), &world(&pods, &[]));
    assert_eq!(step.create.len(), 1);
    let text = targets_found(&step);
    let start = "True TargetsFound: 1 container; pod b: image registry/nsys:1 of init container flopwatch-tools cannot";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_target_that_asked_to_be_prepared_and_was_not_seen_is_named() {
    let mut unseen = Pod::clone(&pod("p", "Running"));
    let labels = unseen.labels_mut();
    labels.insert("flopwatch.dev/prepare".into(), "nsys".into());
    let step = plan(&begun(&json!({})), &world(&[Arc::new(unseen)], &[]));
    let text = targets_found(&step);
    let start = "True TargetsFound: 1 container; pod p: the pod asks to be prepared for profiling";
    assert!(
        text.starts_with(start) && text.contains("Create the pod anew"),
        "{text}"
    );
}

#[test]
fn only_how_captures_go_on_waits_and_for_the_slowest_that_has_not_ended() {
    let spec = selector(3);
    let pods = [pod("p", "Running"), pod("q", "Running"), pod("r", "Running")];
    let made = plan(&begun(&spec), &world(&pods, &[]));
    assert_eq!(made.merge, None, "what was chosen is told at once");
    let (mut session, mut captures) = capturing(&spec, &pods);
    for (capture, interval) in captures.iter_mut().zip([60, 20, 2]) {
        Arc::make_mut(capture).spec.status_interval_seconds = interval;
    }
    let over = ended(&captures[0], "Succeeded", "True", "Succeeded");
    let going = [over, Arc::clone(&captures[1]), Arc::clone(&captures[2])];
    let slowest = Some(Duration::from_secs(20));
    assert_eq!(plan(&session, &world(&pods, &going)).merge, slowest);
    let all = [0, 1, 2].map(|at: usize| ended(&captures[at], "Succeeded", "True", "Succeeded"));
    assert_eq!(plan(&session, &world(&pods, &all)).merge, None, "so is the end");
    session.metadata.generation = Some(2);
    let changed = plan(&session, &world(&pods, &going));
    assert_eq!(changed.merge, None, "so is that a change of the request is seen");
}

#[test]
fn each_capture_of_a_session_counts_those_before_it() {
    let spec = selector(3);
    let pods = [pod("p", "Running"), pod("q", "Running"), pod("r", "Running")];
    let narrow = World {
        budget: Budget::new(1, []),
        ..world(&pods, &[])
    };
    let made = plan(&begun(&spec), &narrow).create.into_iter();
    let intervals: Vec<i32> = made.map(|capture| capture.spec.status_interval_seconds).collect();
    assert_eq!(intervals, [3, 10, 16]);
}

#[test]
fn captures_of_a_schedules_session_say_how_probable_they_were_and_others_say_nothing() {
    let mut session = begun(&json!({}));
    let pods = [pod("p", "Running")];
    let made = |session: &ProfilingSession| plan(session, &world(&pods, &[])).create.remove(0).metadata;
    assert_eq!(made(&session).annotations, None);
    let annotations = session.metadata.annotations.get_or_insert_default();
    annotations.insert("flopwatch.dev/probability-per-billion".to_owned(), "111111".to_owned());
    annotations.insert("flopwatch.dev/schedule-slot".to_owned(), "900".to_owned());
    let labels = session.metadata.labels.get_or_insert_default();
    labels.insert(SCHEDULE_LABEL.to_owned(), "always".to_owned());
    let capture = made(&session);
    let annotations = capture.annotations.unwrap();
    assert_eq!(annotations["flopwatch.dev/probability-per-billion"], "111111");
    assert_eq!(annotations.len(), 2, "who asked is no part of it: {annotations:?}");
    assert_eq!(capture.labels.unwrap()["flopwatch.dev/schedule"], "always");
}
