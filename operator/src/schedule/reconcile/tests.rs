//! Against an API server in memory, on a clock that the tests say.

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::SkipReason;
use flopwatch_test_harness::{ApiServer, Fault, Verb};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event as WatchEvent;
use serde_json::{Value, json};

use super::*;
use crate::controller::context::Stores;
use crate::controller::rig::{self, filled};

const API: &str = "/apis/flopwatch.dev/v1alpha1/namespaces/team";

struct World {
    server: ApiServer,
    context: Context,
    schedules: Writer<ProfilingSchedule>,
    sessions: Writer<ProfilingSession>,
    captures: Writer<Capture>,
}

/// The time of that minute and second after noon.
fn at(minute: i64, second: i64) -> Timestamp {
    let noon: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
    noon + jiff::SignedDuration::from_secs(60 * minute + second)
}

/// A schedule of every minute and every pod, made half a minute after noon.
fn schedule(change: &Value) -> Value {
    let mut schedule = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule",
        "metadata": {
            "name": "always", "namespace": "team", "uid": "schedule-uid", "generation": 1, "creationTimestamp": at(0, 30).to_string()
        },
        "spec": {
            "when": {"cron": {"expression": "* * * * *"}}, "jitterSeconds": 0,
            "select": {
                "podSelector": {"matchLabels": {"app": "llm"}}, "perRun": {"percent": 100, "minimum": 1, "maximum": 1000},
                "minPodAgeSeconds": 0
            },
            "budget": {"duringBasisPoints": 700}
        }
    });
    json_patch::merge(&mut schedule["spec"], change);
    schedule
}

fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "llm"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {
            "phase": "Running", "startTime": "2026-11-25T09:00:00Z",
            "containerStatuses": [{"name": "main", "image": "i", "imageID": "r/i@sha256:11", "ready": true, "restartCount": 0}]
        }
    }))
    .unwrap()
}

fn world(change: &Value) -> World {
    let server = ApiServer::new();
    let schedule = serde_json::from_value(server.put(&schedule(change))).unwrap();
    let (context, schedules, sessions, captures) = controller(&server, schedule, Vec::new());
    World {
        server,
        context,
        schedules,
        sessions,
        captures,
    }
}

type Controller = (
    Context,
    Writer<ProfilingSchedule>,
    Writer<ProfilingSession>,
    Writer<Capture>,
);

/// A controller that has seen these, and two running pods.
fn controller(server: &ApiServer, schedule: ProfilingSchedule, made: Vec<ProfilingSession>) -> Controller {
    let (schedules, schedules_writer) = filled(vec![schedule]);
    let (sessions, sessions_writer) = filled(made);
    let (captures, captures_writer) = filled(Vec::new());
    let node = json!({"metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100"}}});
    let stores = Stores {
        schedules,
        sessions,
        captures,
        pods: filled(vec![pod("p"), pod("q")]).0,
        nodes: filled(vec![serde_json::from_value(node).unwrap()]).0,
        ..rig::stores()
    };
    (
        rig::context(server, stores),
        schedules_writer,
        sessions_writer,
        captures_writer,
    )
}

impl World {
    /// One pass over the schedule as the cache has it.
    async fn pass(&self, now: Timestamp) -> Result<Action, CallError> {
        let schedule = self.context.stores.schedules.state().pop().unwrap();
        pass(&schedule, &self.context, now).await
    }

    fn schedule(&self) -> Value {
        self.server.get("profilingschedules", "team", "always").unwrap()
    }

    fn status(&self) -> ProfilingScheduleStatus {
        serde_json::from_value(self.schedule()["status"].clone()).unwrap_or_default()
    }

    fn made(&self) -> Vec<Value> {
        self.server.all("profilingsessions")
    }

    /// The caches see what the API server has.
    fn catch_up(&mut self) {
        let schedule = serde_json::from_value(self.schedule()).unwrap();
        self.schedules.apply_watcher_event(&WatchEvent::Apply(schedule));
        for session in self.made() {
            let session = serde_json::from_value(session).unwrap();
            self.sessions.apply_watcher_event(&WatchEvent::Apply(session));
        }
    }

    /// What was written, without Events.
    fn writes(&self) -> Vec<String> {
        let writes = self.server.writes().into_iter();
        let ours = writes.filter(|write| write.contains(API));
        ours.map(|write| write.replace(API, "")).collect()
    }

    fn events(&self) -> Vec<String> {
        let calls = self.server.calls().into_iter();
        let posted = calls.filter(|call| call.path.contains("events.k8s.io") && call.verb == Verb::Create);
        posted
            .map(|call| call.body["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    fn ready(&self) -> (String, String) {
        let status = self.status();
        let ready = status.condition(ScheduleCondition::Ready).unwrap();
        (ready.status.clone(), ready.reason.clone())
    }

    /// Every session ends as it should, at that time.
    fn end_sessions(&mut self, ended: Timestamp) {
        for session in self.made() {
            let name = session["metadata"]["name"].as_str().unwrap().to_owned();
            self.server.edit("profilingsessions", "team", &name, |session| {
                session["status"] = json!({
                    "completionTime": ended.to_string(),
                    "conditions": [{
                        "type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
                        "lastTransitionTime": ended.to_string()
                    }]
                });
            });
        }
        self.catch_up();
    }
}

#[tokio::test]
async fn a_pass_makes_the_sessions_of_a_slot_and_writes_the_status_once() {
    let mut world = world(&json!({}));
    world.pass(at(1, 0)).await.unwrap();
    assert_eq!(
        world.writes(),
        [
            "create /profilingsessions",
            "create /profilingsessions",
            "patch /profilingschedules/always/status"
        ]
    );
    let session = world.made().remove(0);
    let metadata = &session["metadata"];
    assert_eq!(metadata["labels"]["flopwatch.dev/schedule"], "always");
    assert_eq!(metadata["ownerReferences"][0]["uid"], "schedule-uid");
    assert_eq!(metadata["ownerReferences"][0]["controller"], true);
    let pod = session["spec"]["target"]["podName"].as_str().unwrap();
    for (annotation, value) in [
        ("flopwatch.dev/schedule-slot", at(1, 0).as_second().to_string()),
        ("flopwatch.dev/target-uid", format!("uid-{pod}")),
        ("flopwatch.dev/probability-per-billion", "166666667".to_owned()),
        ("flopwatch.dev/image-digest", "sha256:11".to_owned()),
        ("flopwatch.dev/hardware", "NVIDIA-H100".to_owned()),
    ] {
        assert_eq!(metadata["annotations"][annotation], value, "{annotation}");
    }
    assert_eq!(session["spec"]["overhead"]["duringBasisPoints"], 700);
    assert_eq!(session["spec"]["startDeadlineSeconds"], 60);
    assert_eq!(session["spec"]["outputs"], json!(["Summary"]));

    let status = world.status();
    let time = |time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| time.map(|time| time.0);
    assert_eq!(time(status.planned_until), Some(at(1, 0)));
    assert_eq!(time(status.next_time), Some(at(2, 0)));
    assert_eq!(time(status.last_time), Some(at(1, 0)));
    assert_eq!(time(status.ledger_since), Some(at(0, 30)));
    assert_eq!((status.active_count, status.active.len()), (2, 2));
    assert_eq!(world.ready(), ("True".to_owned(), "Scheduled".to_owned()));

    world.catch_up();
    let again = world.pass(at(1, 20)).await.unwrap();
    assert_eq!(world.writes().len(), 3, "nothing is new");
    assert_ne!(again, Action::await_change(), "the next slot is waited for");
    world.pass(at(2, 0)).await.unwrap();
    assert_eq!(world.made().len(), 2, "the sessions of the first slot have not ended");
    let skipped = world.status().skipped;
    assert_eq!(
        (skipped.len(), skipped[0].reason, skipped[0].count),
        (1, SkipReason::StillRunning, 2)
    );
    assert_eq!(world.writes().len(), 4);
}

#[tokio::test]
async fn a_controller_that_dies_between_sessions_and_status_loses_and_doubles_nothing() {
    let world = world(&json!({}));
    world
        .server
        .fail(1, Verb::Patch, "profilingschedules/status", Fault::Code(500));
    assert!(world.pass(at(1, 0)).await.is_err());
    assert_eq!(
        (world.made().len(), world.status()),
        (2, ProfilingScheduleStatus::default())
    );

    // The next one has seen none of it.
    world.pass(at(1, 1)).await.unwrap();
    assert_eq!(world.made().len(), 2, "the API server has them: that is success");
    assert_eq!(world.status().planned_until.unwrap().0, at(1, 1));
    assert_eq!(world.status().active_count, 2);
    assert!(world.status().skipped.is_empty());
    let told = world.context.metrics.render().unwrap();
    for (result, count) in [("created", 2), ("existed", 2)] {
        let line =
            format!(r#"flopwatch_schedule_runs_total{{namespace="team",result="{result}",schedule="always"}} {count}"#);
        assert!(told.contains(&line), "{line} is not in\n{told}");
    }
}

#[tokio::test]
async fn a_second_leader_makes_nothing_twice_and_counts_nothing_twice() {
    let world = world(&json!({"blackouts": [{"cron": "1 12 * * *", "durationSeconds": 30}]}));
    let before: ProfilingSchedule = serde_json::from_value(world.schedule()).unwrap();
    world.pass(at(1, 0)).await.unwrap();
    let (second, ..) = controller(&world.server, before.clone(), Vec::new());
    pass(&before, &second, at(1, 0)).await.unwrap();
    let skipped = world.status().skipped;
    assert_eq!((skipped[0].reason, skipped[0].count), (SkipReason::Blackout, 2));

    world.pass(at(2, 0)).await.unwrap();
    pass(&before, &second, at(2, 1)).await.unwrap();
    assert_eq!(world.made().len(), 2);
    assert_eq!(world.status().skipped, skipped);
}

#[tokio::test]
async fn a_label_that_changes_meanwhile_costs_nothing_and_a_new_spec_is_planned_anew() {
    let world = world(&json!({}));
    let meddle = |change: Value| {
        let once = std::sync::atomic::AtomicBool::new(false);
        move |server: &ApiServer, call: &flopwatch_test_harness::Call| {
            let reads = call.verb == Verb::Get && call.path.ends_with("/profilingschedules/always");
            if reads && !once.swap(true, std::sync::atomic::Ordering::AcqRel) {
                server.edit("profilingschedules", "team", "always", |schedule| {
                    json_patch::merge(schedule, &change);
                });
            }
        }
    };
    world
        .server
        .after(meddle(json!({"metadata": {"labels": {"team": "infra"}}})));
    world.pass(at(1, 0)).await.unwrap();
    assert_eq!(world.status().planned_until.unwrap().0, at(1, 0));

    world.server.after(meddle(json!({"spec": {"suspend": true}})));
    let conflict = world.pass(at(2, 0)).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");
    assert_eq!(world.status().planned_until.unwrap().0, at(1, 0));
}

#[tokio::test]
async fn where_sessions_replace_each_other_the_earlier_one_is_told_to_stop_first() {
    let mut world = world(&json!({"concurrencyPolicy": "Replace"}));
    world.pass(at(1, 0)).await.unwrap();
    let first: Vec<String> = world.status().active;
    world.catch_up();
    world.pass(at(2, 0)).await.unwrap();
    let writes = world.writes().split_off(3);
    let stops = first.iter().map(|name| format!("patch /profilingsessions/{name}"));
    let mut expected: Vec<String> = stops.collect();
    assert_eq!(writes.len(), 5, "{writes:?}");
    let mut stopped: Vec<String> = writes[..2].to_vec();
    stopped.sort();
    expected.sort();
    assert_eq!(stopped, expected);
    for name in first {
        let session = world.server.get("profilingsessions", "team", &name).unwrap();
        assert_eq!(session["spec"]["stop"], "Keep");
    }
    assert_eq!(world.made().len(), 4);
}

#[tokio::test]
async fn an_earlier_session_that_its_user_discards_holds_up_no_later_one() {
    let mut world = world(&json!({"concurrencyPolicy": "Replace"}));
    world.pass(at(1, 0)).await.unwrap();
    world.catch_up();
    let fixed = Fault::Refused(422, "spec.stop cannot be taken back; only Keep may become Discard");
    world.server.fail(usize::MAX, Verb::Patch, "profilingsessions", fixed);
    world.pass(at(2, 0)).await.unwrap();
    assert_eq!(world.made().len(), 4);
}

#[tokio::test]
async fn sessions_that_are_kept_no_more_are_deleted() {
    let mut world = world(&json!({"history": {"succeeded": 0, "failed": 0}}));
    world.pass(at(1, 0)).await.unwrap();
    world.end_sessions(at(1, 30));
    world.pass(at(1, 31)).await.unwrap();
    assert_eq!(world.made().len(), 2, "their slot may be decided again");
    world.pass(at(60, 0)).await.unwrap();
    world.catch_up();
    world.pass(at(60, 1)).await.unwrap();
    let left = world.made();
    let slot = json!(at(60, 0).as_second().to_string());
    let slots: Vec<&Value> = left
        .iter()
        .map(|session| &session["metadata"]["annotations"]["flopwatch.dev/schedule-slot"])
        .collect();
    assert_eq!(slots, [&slot, &slot], "those of the slot of 13:00");
}

#[tokio::test]
async fn a_schedule_that_cannot_be_followed_says_so_once_and_makes_nothing() {
    let mut world = world(&json!({"when": {"cron": {"expression": "0 0 30 2 *"}}}));
    world.pass(at(1, 0)).await.unwrap();
    assert_eq!(world.ready(), ("False".to_owned(), "ScheduleInvalid".to_owned()));
    assert_eq!(world.events(), ["ScheduleInvalid"]);
    world.catch_up();
    assert_eq!(world.pass(at(2, 0)).await.unwrap(), Action::await_change());
    assert_eq!(world.writes(), ["patch /profilingschedules/always/status"]);
    assert_eq!(world.events().len(), 1);
}

#[tokio::test]
async fn a_session_that_is_refused_is_tried_again_and_the_schedule_says_why() {
    let mut world = world(&json!({}));
    let quota = Fault::Refused(403, "exceeded quota: sessions");
    world.server.fail(usize::MAX, Verb::Create, "profilingsessions", quota);
    assert!(world.pass(at(1, 0)).await.is_err());
    assert_eq!(world.ready(), ("False".to_owned(), "SessionRefused".to_owned()));
    let status = world.status();
    assert!(
        status
            .condition(ScheduleCondition::Ready)
            .unwrap()
            .message
            .contains("exceeded quota")
    );
    assert!(status.planned_until.is_none() && status.skipped.is_empty());
    assert_eq!(world.events(), ["SessionRefused"]);

    world.server.heal();
    world.catch_up();
    world.pass(at(1, 5)).await.unwrap();
    assert_eq!(world.made().len(), 2);
    assert_eq!(world.ready(), ("True".to_owned(), "Scheduled".to_owned()));
}

#[tokio::test]
async fn while_captures_are_suspended_no_sessions_are_made_and_none_is_caught_up() {
    let mut world = world(&json!({}));
    world.context.suspension.set(true);
    world.pass(at(1, 0)).await.unwrap();
    assert_eq!(world.ready(), ("True".to_owned(), "CapturesSuspended".to_owned()));
    world.catch_up();
    world.pass(at(1, 40)).await.unwrap();
    assert_eq!(world.writes().len(), 1);
    world.context.suspension.set(false);
    world.pass(at(3, 30)).await.unwrap();
    assert!(world.made().is_empty());
    world.catch_up();
    world.pass(at(4, 0)).await.unwrap();
    assert_eq!(world.made().len(), 2, "those of the fourth minute");
    assert!(world.status().skipped.is_empty(), "{:?}", world.status().skipped);
}

#[tokio::test]
async fn a_class_whose_window_went_over_the_budget_is_left_alone_and_told_of() {
    let mut world = world(&json!({}));
    world.pass(at(1, 0)).await.unwrap();
    world.end_sessions(at(1, 30));
    let session = world.made().remove(0);
    let capture = json!({
        "metadata": {
            "name": "c", "namespace": "team", "uid": "c", "labels": {"flopwatch.dev/schedule": "always"},
            "ownerReferences": [{
                "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "name": "s", "controller": true,
                "uid": session["metadata"]["uid"]
            }]
        },
        "spec": {
            "sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "uid-p"},
            "containerName": "main", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Summary"]
        },
        "status": {
            "startTime": at(1, 10).to_string(), "completionTime": at(1, 30).to_string(),
            "conditions": [{
                "type": "Succeeded", "status": "False", "reason": "OverBudget", "message": "", "lastTransitionTime": at(1, 30).to_string()
            }]
        }
    });
    let capture = serde_json::from_value(capture).unwrap();
    world.captures.apply_watcher_event(&WatchEvent::Apply(capture));
    world.pass(at(2, 0)).await.unwrap();
    assert_eq!(world.made().len(), 2);
    let skipped = world.status().skipped;
    assert_eq!(
        (skipped[0].reason, skipped[0].count),
        (SkipReason::BackedOff, 2),
        "every pod of the class"
    );
    assert_eq!(world.events(), ["BackedOff"]);
    world.catch_up();
    world.pass(at(3, 0)).await.unwrap();
    assert_eq!(world.events().len(), 1);
}
