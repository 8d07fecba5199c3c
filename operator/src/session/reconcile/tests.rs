//! Against an API server in memory.

mod copies;
mod merged;
mod side_by_side;
mod triggered;

use flopwatch_api::reason::SessionReason;
use flopwatch_test_harness::{ApiServer, Call, Fault, Right, Verb};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event as WatchEvent;
use serde_json::{Value, json};

use super::*;
use crate::controller::context::Stores;
use crate::controller::rig::{self, filled};
use crate::preparation_failure::tests::{exited, parsed, prepared, waiting};

const API: &str = "/apis/flopwatch.dev/v1alpha1/namespaces/team";

struct World {
    server: ApiServer,
    context: Arc<Context>,
    sessions: Writer<ProfilingSession>,
    captures: Writer<Capture>,
    pods: Writer<Pod>,
}

/// A running pod of that namespace, with a GPU.
fn running(namespace: &str) -> Pod {
    parsed(&json!({
        "metadata": {"name": "p", "namespace": namespace, "uid": format!("uid-p-{namespace}")},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Running"}
    }))
}

/// A session in the API server and in the cache, captures in the API server alone, one running pod.
fn world(session: &Value, captures: &[Value]) -> World {
    let server = ApiServer::new();
    let session = serde_json::from_value(server.put(session)).unwrap();
    for capture in captures {
        server.put(capture);
    }
    let (sessions, sessions_writer) = filled(vec![session]);
    let (pods, pods_writer) = filled(vec![running("team")]);
    let (captures, captures_writer) = filled(Vec::new());
    let stores = Stores {
        sessions,
        captures,
        pods,
        ..rig::stores()
    };
    World {
        context: Arc::new(rig::context(&server, stores)),
        server,
        sessions: sessions_writer,
        captures: captures_writer,
        pods: pods_writer,
    }
}

impl World {
    /// One pass over the session as the cache has it.
    async fn pass(&self) -> Action {
        let session = self.context.stores.sessions.state().pop().unwrap();
        reconcile(session, Arc::clone(&self.context)).await
    }

    /// The session as the API server has it.
    fn session(&self) -> Value {
        self.server.get("profilingsessions", "team", "s").unwrap()
    }

    /// The cache sees the session as the API server has it.
    fn catch_up(&mut self) {
        let session = serde_json::from_value(self.session()).unwrap();
        self.sessions.apply_watcher_event(&WatchEvent::Apply(session));
    }

    /// What was written, without Events.
    fn writes(&self) -> Vec<String> {
        let writes = self.server.writes().into_iter();
        let ours = writes.filter(|write| write.contains(API));
        ours.map(|write| write.replace(API, "")).collect()
    }

    fn events(&self) -> Vec<(String, String)> {
        let calls = self.server.calls().into_iter();
        let posted = calls.filter(|call| call.path.contains("events.k8s.io"));
        posted
            .map(|Call { body, .. }| {
                (
                    body["regarding"]["kind"].as_str().unwrap().into(),
                    body["reason"].as_str().unwrap().into(),
                )
            })
            .collect()
    }

    fn condition(&self, type_: &str) -> Value {
        let session = self.session();
        let mut conditions = session["status"]["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|condition| condition["type"] == type_);
        found.cloned().unwrap_or_default()
    }

    /// Passes over sessions that ended so.
    fn passes(&self, outcome: &str) -> u64 {
        let passes = &self.context.metrics.reconciliations;
        passes.with_label_values(&["session", outcome]).get()
    }
}

fn session() -> Value {
    json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": {
            "name": "s", "namespace": "team", "uid": "session-uid", "annotations": {"flopwatch.dev/requested-by": "ada"}
        },
        "spec": {"target": {"podName": "p"}, "durationSeconds": 10, "startDeadlineSeconds": 300}
    })
}

#[tokio::test]
async fn the_id_is_written_then_the_capture_made_then_the_status_written_and_then_nothing() {
    let mut world = world(&session(), &[]);
    world.pass().await;
    assert_eq!(world.writes(), ["patch /profilingsessions/s/status"]);
    world.catch_up();
    world.pass().await;
    assert_eq!(
        world.writes(),
        [
            "patch /profilingsessions/s/status",
            "create /captures",
            "patch /profilingsessions/s/status"
        ]
    );
    let event = |kind: &str, reason: &str| (kind.to_owned(), reason.to_owned());
    assert_eq!(
        world.events(),
        [
            event("Pod", "ProfilingRequested"),
            event("ProfilingSession", "TargetsFound")
        ]
    );
    world.catch_up();
    world.pass().await;
    assert_eq!(
        world.writes().len(),
        3,
        "the cache does not know the capture yet, the API server does: the session goes on"
    );
    assert_eq!(world.condition("Succeeded")["status"], "Unknown");
}

#[tokio::test]
async fn a_pass_from_a_stale_session_makes_nothing_twice_and_overwrites_nothing() {
    let mut world = world(&session(), &[]);
    world.pass().await;
    let id = world.session()["status"]["id"].clone();
    world.pass().await;
    assert_eq!(world.session()["status"]["id"], id, "the second id was refused");
    assert_eq!(world.passes("conflict"), 1);

    world.catch_up();
    world.pass().await;
    world.pass().await;
    assert_eq!(world.server.all("captures").len(), 1);
}

#[tokio::test]
async fn a_capture_of_that_name_that_somebody_else_made_is_not_taken() {
    let mut first = world(&session(), &[]);
    first.pass().await;
    first.catch_up();
    first.pass().await;
    let mut foreign = first.server.all("captures").remove(0);
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("another");

    let mut world = world(&session(), &[foreign]);
    world.pass().await;
    world.catch_up();
    world.pass().await;
    assert_ne!(world.condition("TargetsFound")["status"], "True");
    assert_eq!(world.passes("failed"), 1);
}

#[tokio::test]
async fn a_session_that_is_gone_gets_no_captures() {
    let mut world = world(&session(), &[]);
    world.pass().await;
    world.catch_up();
    let mut later = world.session();
    world.server.delete("profilingsessions", "team", "s");
    later["metadata"]["uid"] = json!("a later one of the same name");
    world.server.put(&later);
    world.pass().await;
    assert!(world.server.all("captures").is_empty());
}

#[tokio::test]
async fn a_session_whose_pod_is_held_up_by_its_preparation_says_why() {
    let mut world = world(&session(), &[]);
    world.pass().await;
    let pod = prepared("p", &exited(0), &waiting("ImagePullBackOff"));
    world.pods.apply_watcher_event(&WatchEvent::Apply(parsed(&pod)));
    world.catch_up();
    world.pass().await;
    let found = world.condition("TargetsFound");
    assert_eq!(
        (&found["status"], &found["reason"]),
        (&json!("False"), &json!("WaitingForTargets"))
    );
    let message = found["message"].as_str().unwrap();
    for part in ["phase Pending", "registry/nsys:1", "cannot be pulled", "images.tools"] {
        assert!(message.contains(part), "{message}");
    }

    let gone = prepared("p", &exited(0), &exited(0));
    world.pods.apply_watcher_event(&WatchEvent::Apply(parsed(&gone)));
    world.catch_up();
    world.pass().await;
    assert_eq!(
        world.condition("TargetsFound")["message"],
        "pod p is not running (phase Pending)"
    );
}

#[test]
fn a_session_that_ends_for_want_of_targets_says_so_once() {
    let condition = |type_: &str, status: &str, reason: SessionReason, message: &str| json!({"type": type_, "status": status, "reason": reason.as_str(), "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = |conditions: Value| -> ProfilingSessionStatus {
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    };
    let told = |before: &ProfilingSessionStatus, now: &ProfilingSessionStatus| -> Vec<String> {
        news(Some(before), now)
            .into_iter()
            .map(|event| format!("{:?} {}", event.type_, event.reason))
            .collect()
    };
    let waiting = status(json!([
        condition("TargetsFound", "False", SessionReason::WaitingForTargets, "no pod"),
        condition("Succeeded", "Unknown", SessionReason::Progressing, "")
    ]));
    let ended = status(json!([
        condition("TargetsFound", "False", SessionReason::NoTargets, "no pod came"),
        condition("Succeeded", "False", SessionReason::Failed, "no pod came")
    ]));
    assert_eq!(
        told(&ProfilingSessionStatus::default(), &waiting),
        ["Normal WaitingForTargets"]
    );
    assert_eq!(told(&waiting, &waiting), Vec::<String>::new());
    assert_eq!(told(&waiting, &ended), ["Warning NoTargets"]);
}

#[tokio::test]
async fn a_namespace_where_the_controller_may_make_no_pods_is_told_which_role_to_bind_there() {
    const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let mut own_pod = session();
    own_pod["spec"]["target"] = json!({"podTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}}});
    for (allowed, reason, sentence) in [
        (
            false,
            SessionReason::PodsNotAllowed,
            "kubectl -n team create rolebinding flopwatch-pod-templates --clusterrole=flopwatch-pod-templates --serviceaccount=flopwatch-system:flopwatch-controller",
        ),
        (true, SessionReason::PodRefused, "exceeded quota"),
    ] {
        let mut world = world(&own_pod, &[]);
        if allowed {
            let create = Right::resource("create", "", "pods").in_namespace("team");
            world.server.allow(rig::CONTROLLER, create);
            let full = Fault::Refused(403, "pods is forbidden: exceeded quota");
            world.server.fail(usize::MAX, Verb::Create, "pods", full);
        }
        world.pass().await;
        world.catch_up();
        let again = world.pass().await;
        let found = world.condition("TargetsFound");
        assert_eq!(
            (&found["status"], &found["reason"]),
            (&json!("False"), &json!(reason.as_str()))
        );
        assert!(found["message"].as_str().unwrap().contains(sentence), "{found}");
        assert_eq!(world.condition("Succeeded")["status"], "Unknown", "a binding may come");
        assert_ne!(again, Action::await_change(), "and is looked for");
        let mut calls = world.server.calls().into_iter();
        let asked = calls.find(|call| call.path == REVIEW);
        let asked = asked.expect("the API server is asked rather than its words read");
        assert_eq!(
            asked.body["spec"]["resourceAttributes"],
            json!({"namespace": "team", "resource": "pods", "verb": "create"})
        );
    }
}
