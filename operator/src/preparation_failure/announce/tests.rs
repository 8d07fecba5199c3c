//! Against an API server in this process that takes Events, refuses them, or does not answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use flopwatch_test_harness::{ApiServer, Call, Fault, Verb};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event as WatchEvent;
use serde_json::{Value, json};

use super::*;
use crate::controller::context::Stores;
use crate::controller::rig::{self, filled};
use crate::preparation_failure::tests::{exited, parsed, prepared, waiting};

struct World {
    server: ApiServer,
    /// Calls that were looked at.
    seen: AtomicUsize,
    pods: Writer<Pod>,
    context: Context,
}

fn world(pods: &[Value]) -> World {
    let server = ApiServer::new();
    let (store, pods) = filled(pods.iter().map(parsed).collect());
    let stores = Stores {
        pods: store,
        ..rig::stores()
    };
    World {
        context: rig::context(&server, stores),
        server,
        seen: AtomicUsize::new(0),
        pods,
    }
}

impl World {
    fn apply(&mut self, pod: &Value) {
        self.pods.apply_watcher_event(&WatchEvent::Apply(parsed(pod)));
    }

    /// Lets every Event go wrong from now on.
    fn fail(&self, fault: Fault) {
        self.server.fail(usize::MAX, Verb::Create, "events", fault);
    }

    /// What was sent since the last look.
    fn sent(&self) -> Vec<String> {
        let calls = self.server.calls();
        let seen = self.seen.swap(calls.len(), Ordering::Relaxed);
        let mut sent: Vec<String> = calls[seen..]
            .iter()
            .map(|Call { verb, body, .. }| match verb {
                Verb::Create => format!(
                    "{} {}",
                    body["regarding"]["name"].as_str().unwrap(),
                    body["reason"].as_str().unwrap()
                ),
                other => format!("{other} {}", body["series"]["count"]),
            })
            .collect();
        sent.sort();
        sent
    }
}

#[tokio::test]
async fn a_pod_that_was_created_while_admission_was_away_is_told_so_once_and_an_old_one_is_not() {
    let pod = |name: &str, created: String| {
        json!({
            "metadata": {
                "name": name, "namespace": "team", "uid": name, "creationTimestamp": created,
                "labels": {"flopwatch.dev/prepare": "nsys"}
            },
            "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}
        })
    };
    let now = Timestamp::now().to_string();
    let world = world(&[pod("new", now), pod("old", "2026-01-01T00:00:00Z".into())]);
    let mut sent = SentEvents::default();
    for expected in [vec!["new AdmissionMissed"], vec![]] {
        assert!(round(&world.context, &mut sent).await);
        assert_eq!(world.sent(), expected);
    }
    // Another process knows nothing of it, and asks for the same Event: there is one.
    assert!(round(&world.context, &mut SentEvents::default()).await);
    let calls = world.server.calls();
    let names: Vec<_> = calls.iter().map(|call| &call.body["metadata"]["name"]).collect();
    assert_eq!(names, [&json!("new.admissionmissed"), &json!("new.admissionmissed")]);
    assert_eq!(world.server.all("events").len(), 1);
}

#[tokio::test]
async fn each_pod_that_is_held_up_gets_one_warning_that_names_image_and_remedy() {
    let mut healthy = prepared("healthy", &exited(0), &exited(0));
    healthy["status"]["phase"] = json!("Running");
    let world = world(&[prepared("p", &exited(0), &waiting("ImagePullBackOff")), healthy]);
    assert!(round(&world.context, &mut SentEvents::default()).await);
    let calls = world.server.calls();
    let [
        Call {
            verb,
            path,
            body: event,
            ..
        },
    ] = calls.as_slice()
    else {
        panic!("{calls:?}")
    };
    assert_eq!(
        (*verb, path.as_str()),
        (Verb::Create, "/apis/events.k8s.io/v1/namespaces/team/events")
    );
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reason"], "ToolsImageUnavailable");
    assert_eq!(
        (&event["regarding"]["kind"], &event["regarding"]["uid"]),
        (&json!("Pod"), &json!("uid-p"))
    );
    let note = event["note"].as_str().unwrap();
    for component in ["registry/nsys:1", "images.tools", "flopwatch.dev/prepare"] {
        assert!(note.contains(component), "{note}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cause_is_told_once_in_ten_minutes_and_another_cause_at_once() {
    let mut world = world(&[prepared("p", &exited(0), &waiting("ErrImagePull"))]);
    let mut sent = SentEvents::default();
    assert!(round(&world.context, &mut sent).await);
    assert_eq!(world.sent(), ["p ToolsImageUnavailable"]);

    world.apply(&prepared("p", &exited(0), &waiting("ImagePullBackOff")));
    tokio::time::advance(Duration::from_mins(9)).await;
    assert!(round(&world.context, &mut sent).await);
    assert_eq!(world.sent(), Vec::<String>::new());

    world.apply(&prepared("p", &exited(0), &exited(3)));
    assert!(round(&world.context, &mut sent).await);
    assert_eq!(world.sent(), ["p PreparationFailed"]);

    world.apply(&prepared("p", &exited(0), &waiting("ImagePullBackOff")));
    tokio::time::advance(Duration::from_mins(1)).await;
    assert!(round(&world.context, &mut sent).await);
    assert_eq!(
        world.sent(),
        ["patch 2"],
        "the recorder's clock stands still, so it counts the first Event up"
    );

    tokio::time::advance(MIN_RESEND_INTERVAL).await;
    world.apply(&prepared("p", &exited(0), &exited(0)));
    assert!(round(&world.context, &mut sent).await);
    assert_eq!(world.sent(), Vec::<String>::new());
    assert!(sent.0.is_empty(), "what is over is forgotten");
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_refuses_is_not_repeated_and_what_it_does_not_answer_is() {
    let pods = ["p", "q"].map(|name| prepared(name, &exited(0), &waiting("ErrImagePull")));
    let (refused, silent) = (world(&pods), world(&pods));
    let mut sent = SentEvents::default();
    refused.fail(Fault::Code(403));
    assert!(round(&refused.context, &mut sent).await);
    assert_eq!(refused.sent().len(), 2, "a refusal does not keep the next pod waiting");
    assert!(round(&refused.context, &mut sent).await);
    assert_eq!(refused.sent(), Vec::<String>::new());
    assert_eq!(refused.context.metrics.events_failed.get(), 2);

    let mut sent = SentEvents::default();
    silent.fail(Fault::Hang);
    assert!(!round(&silent.context, &mut sent).await);
    assert_eq!(
        silent.sent().len(),
        1,
        "the others do not each wait for a server that is away"
    );
    silent.server.heal();
    assert!(round(&silent.context, &mut sent).await);
    assert_eq!(silent.sent(), ["p ToolsImageUnavailable", "q ToolsImageUnavailable"]);
}

#[tokio::test]
async fn a_pod_that_failed_long_ago_is_no_news() {
    let failed = |name: &str, at: Timestamp| {
        let mut pod = prepared(name, &exited(0), &exited(1));
        pod["status"]["phase"] = json!("Failed");
        pod["status"]["initContainerStatuses"][2]["state"]["terminated"]["finishedAt"] = json!(at.to_string());
        pod
    };
    let long_ago = "2026-01-01T00:00:00Z".parse().unwrap();
    let world = world(&[failed("old", long_ago), failed("new", Timestamp::now())]);
    assert!(round(&world.context, &mut SentEvents::default()).await);
    assert_eq!(world.sent(), ["new PreparationFailed"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_the_wait_for_the_next_round() {
    let World {
        context,
        mut pods,
        server,
        ..
    } = world(&[]);
    let changed = Notify::new();
    let sent = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let held_up = prepared("p", &waiting("ErrImagePull"), &json!({}));
        pods.apply_watcher_event(&WatchEvent::Apply(parsed(&held_up)));
        changed.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.calls().len()
    };
    let started = Instant::now();
    let sent = tokio::select! {
        sent = sent => sent,
        () = keep(&context, &changed) => 0,
    };
    assert_eq!(sent, 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut sent = SentEvents::default();
    let now = Instant::now();
    let subject = |at: usize| (at.to_string(), Some(InjectedComponent::Tools), "ToolsImageUnavailable");
    let due = (0..2 * MAX_SENT_EVENTS)
        .filter(|at| sent.record_if_due(&subject(*at), now, MIN_RESEND_INTERVAL))
        .count();
    assert_eq!((due, sent.0.len()), (MAX_SENT_EVENTS, MAX_SENT_EVENTS));
    sent.forget_old(now + MIN_RESEND_INTERVAL);
    assert!(sent.record_if_due(
        &subject(2 * MAX_SENT_EVENTS),
        now + MIN_RESEND_INTERVAL,
        MIN_RESEND_INTERVAL
    ));
}
