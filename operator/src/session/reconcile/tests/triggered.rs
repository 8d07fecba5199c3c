//! Sessions that say that an alert made them.

use std::collections::BTreeMap;

use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_schedule::{Alert, Alerted, AlertedPod, Decision, Gathered, Objects, decide, trigger_of};
use flopwatch_test_harness::Identity;
use serde::de::DeserializeOwned;

use super::*;
use crate::schedule::session::triggered;

/// The gateway's account; its token here, too.
const GATEWAY: &str = "system:serviceaccount:flopwatch-system:flopwatch-gateway";

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn schedule() -> ProfilingSchedule {
    read(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule",
        "metadata": {"name": "always", "namespace": "team", "uid": "schedule-uid"},
        "spec": {
            "when": {"interval": {"seconds": 900}}, "select": {"podSelector": {"matchLabels": {"app": "llm"}}},
            "session": {"profiler": {"type": "Recorder"}, "durationSeconds": 5},
            "triggers": [{"alert": {"name": "Slow"}}]
        }
    }))
}

fn pod(name: &str, app: &str) -> Pod {
    let mut pod = running("team");
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.metadata.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
    pod.status.as_mut().unwrap().start_time = read(json!("2026-01-01T00:00:00Z"));
    pod
}

/// The first session that the gateway makes when the alert `Slow` fires for the pod `llm-0`.
fn of_alert(schedule: &ProfilingSchedule) -> ProfilingSession {
    let pods = [Arc::new(pod("llm-0", "llm"))];
    let objects = Objects {
        schedule,
        pods: &pods,
        sessions: &[],
        captures: &[],
        hardware: &|_| None,
    };
    let now = Timestamp::now();
    let gathered = Gathered::new(&objects, now).unwrap();
    let labels = [("alertname", "Slow"), ("namespace", "team"), ("pod", "llm-0")];
    let alert = Alert {
        labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        fingerprint: "0badcafe0badcafe".to_owned(),
        started: now,
    };
    let alerted = Alerted {
        alert: &alert,
        trigger: trigger_of(&schedule.spec, "team", &alert).unwrap(),
        pod: AlertedPod::Running(&gathered.pods[0]),
        over_budget: false,
    };
    match decide(&gathered.facts(&schedule.spec, now), &alerted).unwrap() {
        Decision::Make(run) => triggered(schedule, &run, &alert, "alertmanager"),
        Decision::Skip(skip) => panic!("{skip:?}"),
    }
}

/// What became of a session that was created with the gateway's token: its name, and where it is.
struct Created {
    world: World,
    name: String,
}

impl Created {
    /// The API server has two pods, one of which the schedule selects. `sees_all` says whether the
    /// watches have seen the schedule and the pods.
    async fn by_gateway(session: ProfilingSession, sees_all: bool) -> Self {
        let server = ApiServer::new();
        server.put(&json!(schedule()));
        let pods = [pod("llm-0", "llm"), pod("bystander", "web")];
        for pod in &pods {
            server.put(&json!(pod));
        }
        server.add_token(GATEWAY, Identity::new(GATEWAY));
        server.allow(GATEWAY, Right::resource("create", "flopwatch.dev", "profilingsessions"));
        let client = server.client_of(GATEWAY, "flopwatch-system");
        let sessions: Api<ProfilingSession> = Api::namespaced(client, "team");
        let session = sessions.create(&PostParams::default(), &session).await.unwrap();
        let name = session.name_any();
        let (seen, seen_pods) = if sees_all {
            (vec![schedule()], pods.to_vec())
        } else {
            (Vec::new(), Vec::new())
        };
        let (sessions, sessions_writer) = filled(vec![session]);
        let (captures, captures_writer) = filled(Vec::new());
        let (pods, pods_writer) = filled(seen_pods);
        let stores = Stores {
            schedules: filled(seen).0,
            sessions,
            captures,
            pods,
            ..rig::stores()
        };
        let world = World {
            context: Arc::new(rig::context(&server, stores)),
            server,
            sessions: sessions_writer,
            captures: captures_writer,
            pods: pods_writer,
        };
        Self { world, name }
    }

    fn session(&self) -> ProfilingSession {
        let session = self.world.server.get("profilingsessions", "team", &self.name);
        read(session.unwrap())
    }

    /// Passes over it until its targets are decided about.
    async fn decided(mut self) -> Self {
        for _ in 0..3 {
            self.world.pass().await;
            let session = self.session();
            self.world.sessions.apply_watcher_event(&WatchEvent::Apply(session));
        }
        self
    }

    /// The reason and the message of its condition TargetsFound.
    fn found(&self) -> (String, String) {
        let session = self.session();
        let found = session.condition(SessionCondition::TargetsFound).unwrap();
        (found.reason.clone(), found.message.clone())
    }

    fn is_refused(&self, why: &str) {
        let session = self.session();
        let (reason, message) = self.found();
        assert_eq!(reason, "Refused", "{why}: {message}");
        assert!(message.contains(why), "{message}");
        for type_ in [SessionCondition::Accepted, SessionCondition::Succeeded] {
            assert_eq!(session.condition(type_).unwrap().status, "False", "{type_}");
        }
        let status = session.status.unwrap();
        assert!(status.completion_time.is_some() && status.id.is_some(), "{status:?}");
        assert!(self.world.server.all("captures").is_empty(), "{why}");
    }
}

#[tokio::test]
async fn the_session_of_an_alert_is_taken_up_even_where_the_watches_are_behind() {
    for sees_all in [true, false] {
        let created = Created::by_gateway(of_alert(&schedule()), sees_all)
            .await
            .decided()
            .await;
        let (reason, message) = created.found();
        let expected = if sees_all { "TargetsFound" } else { "WaitingForTargets" };
        assert_eq!(reason, expected, "{message}");
        assert_eq!(created.world.server.all("captures").len(), usize::from(sees_all));
    }
}

#[tokio::test]
async fn a_session_made_with_the_gateways_token_for_a_pod_that_the_schedule_does_not_select_is_refused() {
    let mut forged = of_alert(&schedule());
    forged.spec.target.pod_name = Some("bystander".to_owned());
    let annotations = forged.annotations_mut();
    annotations.insert("flopwatch.dev/target-uid".to_owned(), "uid-bystander".to_owned());
    let created = Created::by_gateway(forged, true).await.decided().await;
    created.is_refused("ProfilingSchedule always does not select pod bystander");
}

#[tokio::test]
async fn a_session_that_its_schedule_would_not_have_asked_for_is_refused() {
    type Change = fn(&mut ProfilingSession);
    let rows: [(&str, Change); 6] = [
        ("has no trigger", |session| {
            session.metadata.name = Some("always-0123456789abcdef".to_owned());
        }),
        ("has no trigger", |session| {
            let annotations = session.annotations_mut();
            annotations.insert("flopwatch.dev/trigger".to_owned(), "Other/0badcafe0badcafe".to_owned());
        }),
        ("is not what", |session| session.spec.duration_seconds = 300),
        ("is not what", |session| {
            session.spec.profiler = read(json!({"type": "Jax", "jax": {"dumps": true}}));
        }),
        ("no pod llm-0 of the UID", |session| {
            let annotations = session.annotations_mut();
            annotations.insert("flopwatch.dev/target-uid".to_owned(), "another".to_owned());
        }),
        ("no ProfilingSchedule", |session| {
            session.owner_references_mut()[0].uid = "an earlier one of that name".to_owned();
        }),
    ];
    for (why, change) in rows {
        let mut forged = of_alert(&schedule());
        change(&mut forged);
        let created = Created::by_gateway(forged, true).await.decided().await;
        created.is_refused(why);
    }
}

#[tokio::test]
async fn a_session_of_an_alert_profiles_the_very_pod_that_it_was_about() {
    let mut created = Created::by_gateway(of_alert(&schedule()), true).await;
    created.world.pass().await;
    let taken_up = created.session();
    created.world.sessions.apply_watcher_event(&WatchEvent::Apply(taken_up));
    let mut later = pod("llm-0", "llm");
    later.metadata.uid = Some("a later one of that name".to_owned());
    created.world.pods.apply_watcher_event(&WatchEvent::Apply(later));
    let created = created.decided().await;
    assert_eq!(created.found().0, "WaitingForTargets");
    assert!(created.world.server.all("captures").is_empty());
}
