//! Against an API server in this process that notes every write.

use std::sync::Mutex;

use jiff::SignedDuration;
use k8s_controller::events::{EventRecorder, Reporter};
use serde_json::{Value, json};

use super::*;
use crate::controller::context::{Stores, Suspension};
use crate::metrics::Metrics;
use crate::session::reconcile::tests::{filled, served};

type Writes = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A capture that is being deleted, whose artifacts its healthy agent still has.
fn deleting() -> Capture {
    let artifact = json!({"name": "timeline.h5", "type": "Timeline", "bytes": 7, "sha256": "0", "mediaType": "x"});
    serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
        "metadata": {
            "name": "s-1", "namespace": "team", "uid": "capture-uid", "resourceVersion": "7",
            "finalizers": ["other.dev/kept", CAPTURE_FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"
        },
        "spec": {
            "sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "u"},
            "containerName": "c", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Timeline"]
        },
        "status": {
            "conditions": [{
                "type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }],
            "artifacts": [artifact]
        }
    }))
    .unwrap()
}

fn context(writes: &Writes) -> Arc<Context> {
    let log = Arc::clone(writes);
    let client = served(move |method, path, body| {
        let answer = if path.ends_with("/captures/s-1") {
            serde_json::to_value(deleting()).unwrap()
        } else {
            body.clone()
        };
        log.lock().unwrap().push((method, path, body));
        std::future::ready((200, answer))
    });
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"});
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n1"}, "status": ready})).unwrap();
    let agent = json!({"metadata": {"name": "agent", "namespace": "f"}, "spec": {"nodeName": "n1", "containers": []}, "status": ready});
    let stores = Stores {
        sessions: filled(Vec::new()).0,
        captures: filled(vec![deleting()]).0,
        pods: filled(Vec::new()).0,
        nodes: filled(vec![node]).0,
        agents: filled(vec![serde_json::from_value(agent).unwrap()]).0,
    };
    let reporter = Reporter {
        controller: "flopwatch.dev/test".into(),
        instance: None,
    };
    let events = EventRecorder::new(client.clone(), reporter);
    let metrics = Metrics::new().unwrap();
    let context = Context::new(
        client,
        stores,
        metrics,
        events,
        Suspension::default(),
        Duration::from_mins(1),
    );
    Arc::new(context)
}

#[tokio::test]
async fn m6_a_capture_whose_healthy_agent_cannot_delete_is_let_go_with_an_event_that_names_what_is_left() {
    let writes = Writes::default();
    let context = context(&writes);
    let capture = Arc::new(deleting());
    let waits = reconcile(Arc::clone(&capture), Arc::clone(&context)).await;
    assert_ne!(
        waits,
        Action::await_change(),
        "a healthy agent has its time, and no more"
    );
    assert!(writes.lock().unwrap().is_empty());

    {
        let mut deletions = context.deletions.lock().unwrap();
        deletions.forget("capture-uid");
        let earlier = Timestamp::now().checked_sub(SignedDuration::from_secs(601)).unwrap();
        deletions.observe("capture-uid", earlier);
    }
    reconcile(capture, Arc::clone(&context)).await;
    let writes = writes.lock().unwrap();
    let (_, _, patch) = writes
        .iter()
        .find(|(method, ..)| method == "PATCH")
        .expect("the finalizer goes");
    assert_eq!(
        patch["metadata"]["finalizers"],
        json!(["other.dev/kept"]),
        "and only ours"
    );
    let (_, _, event) = writes
        .iter()
        .find(|(method, path, _)| method == "POST" && path.contains("events.k8s.io"))
        .expect("an Event");
    assert_eq!(
        (&event["reason"], &event["type"]),
        (&json!("ArtifactsLeft"), &json!("Warning"))
    );
    let note = event["note"].as_str().unwrap();
    assert!(note.contains("node n1") && note.contains("timeline.h5"), "{note}");
    assert_eq!(context.metrics.deletions_overdue.get(), 1);
}
