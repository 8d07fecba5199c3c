//! Against an API server in memory.

use flopwatch_test_harness::{ApiServer, Verb};
use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::controller::context::Stores;
use crate::controller::rig::{self, filled};

/// A capture that is being deleted, whose artifacts its healthy agent still has, as the API server
/// has it.
fn deleting(server: &ApiServer) -> Capture {
    let artifact = json!({"name": "timeline.h5", "type": "Timeline", "bytes": 7, "sha256": "0", "mediaType": "x"});
    let capture = server.put(&json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
        "metadata": {
            "name": "s-1", "namespace": "team", "uid": "capture-uid",
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
    }));
    serde_json::from_value(capture).unwrap()
}

fn context(server: &ApiServer, capture: &Capture) -> Context {
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"});
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n1"}, "status": ready})).unwrap();
    let agent = json!({"metadata": {"name": "agent", "namespace": "f"}, "spec": {"nodeName": "n1", "containers": []}, "status": ready});
    let stores = Stores {
        captures: filled(vec![capture.clone()]).0,
        nodes: filled(vec![node]).0,
        agents: filled(vec![serde_json::from_value(agent).unwrap()]).0,
        ..rig::stores()
    };
    rig::context(server, stores)
}

#[tokio::test]
async fn a_capture_whose_healthy_agent_cannot_delete_is_released_with_an_event_that_names_what_is_left() {
    let server = ApiServer::new();
    let capture = Arc::new(deleting(&server));
    let context = Arc::new(context(&server, &capture));
    let waits = reconcile(Arc::clone(&capture), Arc::clone(&context)).await;
    assert_ne!(
        waits,
        Action::await_change(),
        "a healthy agent has its time, and no more"
    );
    assert!(server.calls().is_empty());

    context.deletions.forget("capture-uid");
    let earlier = Timestamp::now().checked_sub(SignedDuration::from_secs(601)).unwrap();
    context.deletions.observe("capture-uid", earlier);
    reconcile(capture, Arc::clone(&context)).await;
    let calls = server.calls();
    let patch = calls
        .iter()
        .find(|call| call.verb == Verb::Patch)
        .expect("the finalizer goes");
    assert_eq!(
        patch.body["metadata"]["finalizers"],
        json!(["other.dev/kept"]),
        "and only ours"
    );
    let released = server.get("captures", "team", "s-1").unwrap();
    assert_eq!(released["metadata"]["finalizers"], json!(["other.dev/kept"]));
    let events = server.all("events");
    let event = events.first().expect("an Event");
    assert_eq!(
        (&event["reason"], &event["type"]),
        (&json!("ArtifactsLeft"), &json!("Warning"))
    );
    let note = event["note"].as_str().unwrap();
    assert!(note.contains("node n1") && note.contains("timeline.h5"), "{note}");
    assert_eq!(context.metrics.deletions_overdue.get(), 1);
}
