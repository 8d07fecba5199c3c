//! Against an API server in this process that answers what a test tells it to, and notes every request.

mod merged;
mod side_by_side;

use std::sync::Mutex;
use std::time::Duration;

use axum::body::to_bytes;
use flopwatch_api::reason::SessionReason;
use k8s_controller::events::{EventRecorder, Reporter};
use kube::Client;
use kube::client::Body;
use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::watcher::Event as WatchEvent;
use serde_json::{Value, json};

use super::*;
use crate::controller::context::{Stores, Suspension};
use crate::metrics::Metrics;
use crate::trouble::tests::{exited, parsed, prepared, waiting};

const API: &str = "/apis/flopwatch.dev/v1alpha1/namespaces/team";

#[derive(Default)]
struct Server {
    session: Value,
    captures: Vec<Value>,
    /// Answers of some paths, before all others: method, path, code, body.
    told: Vec<(&'static str, &'static str, u16, Value)>,
    requests: Vec<(String, String, Value)>,
}

impl Server {
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let refusal = |code: u16, reason: &str| {
            (
                code,
                json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code}),
            )
        };
        let collection = format!("{API}/captures");
        let told =
            |(told_method, told_path, ..): &&(&str, &str, u16, Value)| *told_method == method && *told_path == path;
        if let Some((_, _, code, answer)) = self.told.iter().find(told) {
            return (*code, answer.clone());
        }
        match (method, path.strip_prefix(API)) {
            ("GET", Some("/profilingsessions/s")) => (200, self.session.clone()),
            ("GET", Some("/captures")) => (
                200,
                json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": self.captures}),
            ),
            ("GET", Some(name)) => {
                let name = name.trim_start_matches("/captures/");
                let found = self.captures.iter().find(|capture| capture["metadata"]["name"] == name);
                found.map_or_else(|| refusal(404, "NotFound"), |capture| (200, capture.clone()))
            }
            ("POST", Some(_)) if path == collection => {
                if self
                    .captures
                    .iter()
                    .any(|capture| capture["metadata"]["name"] == body["metadata"]["name"])
                {
                    return refusal(409, "AlreadyExists");
                }
                self.captures.push(body.clone());
                (201, body.clone())
            }
            ("PATCH", Some("/profilingsessions/s/status")) => {
                if body["metadata"]["resourceVersion"] != self.session["metadata"]["resourceVersion"] {
                    return refusal(409, "Conflict");
                }
                self.session["status"] = body["status"].clone();
                (200, self.session.clone())
            }
            ("POST", None) => (201, body.clone()),
            _ => refusal(404, "NotFound"),
        }
    }
}

struct World {
    server: Arc<Mutex<Server>>,
    context: Arc<Context>,
    sessions: Writer<ProfilingSession>,
    captures: Writer<Capture>,
    pods: Writer<Pod>,
}

/// A client of an API server in this process, which is told method, path and body, and says code and answer.
pub(crate) fn served<F, A>(answer: F) -> Client
where
    F: Fn(String, String, Value) -> A + Clone + Send + 'static,
    A: Future<Output = (u16, Value)> + Send,
{
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(axum::body::Body::new(body), 1 << 20).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (code, said) = answer(parts.method.to_string(), parts.uri.path().to_owned(), body).await;
            let response = http::Response::builder()
                .status(code)
                .body(Body::from(serde_json::to_vec(&said).unwrap()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        }
    });
    Client::new(service, "flopwatch-system")
}

pub(crate) fn filled<K>(objects: Vec<K>) -> (reflector::Store<K>, Writer<K>)
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&WatchEvent::Init);
    for object in objects {
        writer.apply_watcher_event(&WatchEvent::InitApply(object));
    }
    writer.apply_watcher_event(&WatchEvent::InitDone);
    (store, writer)
}

/// A session in the API server and in the cache, one running pod, no capture in the cache.
fn world(session: &Value, captures: Vec<Value>) -> World {
    let server = Arc::new(Mutex::new(Server {
        session: session.clone(),
        captures,
        told: Vec::new(),
        requests: Vec::new(),
    }));
    let shared = Arc::clone(&server);
    let client = served(move |method, path, body| {
        let mut server = shared.lock().unwrap();
        let answer = server.answer(&method, &path, &body);
        server.requests.push((method, path, body));
        std::future::ready(answer)
    });
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "team", "uid": "uid-p"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Running"}
    }));
    let (sessions, sessions_writer) = filled(vec![serde_json::from_value(session.clone()).unwrap()]);
    let (pods, pods_writer) = filled(vec![pod.unwrap()]);
    let (captures, captures_writer) = filled(Vec::new());
    let stores = Stores {
        sessions,
        captures,
        pods,
        nodes: filled(Vec::new()).0,
        agents: filled(Vec::new()).0,
    };
    let events = EventRecorder::new(
        client.clone(),
        Reporter {
            controller: "flopwatch.dev/test".into(),
            instance: None,
        },
    );
    let context = Context::new(
        client,
        stores,
        Metrics::new().unwrap(),
        events,
        Suspension::default(),
        Duration::from_mins(1),
    );
    World {
        server,
        context: Arc::new(context),
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

    /// The cache sees the session as the API server has it.
    fn catch_up(&mut self) {
        let session = serde_json::from_value(self.server.lock().unwrap().session.clone()).unwrap();
        self.sessions.apply_watcher_event(&WatchEvent::Apply(session));
    }

    /// What was written, without Events.
    fn writes(&self) -> Vec<String> {
        let server = self.server.lock().unwrap();
        let ours = server
            .requests
            .iter()
            .filter(|(method, path, _)| method != "GET" && path.starts_with(API));
        ours.map(|(method, path, _)| format!("{method} {}", path.trim_start_matches(API)))
            .collect()
    }

    fn events(&self) -> Vec<(String, String)> {
        let server = self.server.lock().unwrap();
        let posted = server
            .requests
            .iter()
            .filter(|(_, path, _)| path.contains("events.k8s.io"));
        posted
            .map(|(_, _, body)| {
                (
                    body["regarding"]["kind"].as_str().unwrap().into(),
                    body["reason"].as_str().unwrap().into(),
                )
            })
            .collect()
    }

    fn condition(&self, type_: &str) -> Value {
        let server = self.server.lock().unwrap();
        let conditions = server.session["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions
            .into_iter()
            .find(|condition| condition["type"] == type_)
            .unwrap_or_default()
    }
}

fn session() -> Value {
    json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": {
            "name": "s", "namespace": "team", "uid": "session-uid", "generation": 1, "resourceVersion": "7",
            "creationTimestamp": Timestamp::now().to_string(), "annotations": {"flopwatch.dev/requested-by": "ada"}
        },
        "spec": {"target": {"podName": "p"}, "durationSeconds": 10, "startDeadlineSeconds": 300}
    })
}

#[tokio::test]
async fn the_id_is_written_then_the_capture_made_then_the_status_written_and_then_nothing() {
    let mut world = world(&session(), Vec::new());
    world.pass().await;
    assert_eq!(world.writes(), ["PATCH /profilingsessions/s/status"]);
    world.catch_up();
    world.pass().await;
    assert_eq!(
        world.writes(),
        [
            "PATCH /profilingsessions/s/status",
            "POST /captures",
            "PATCH /profilingsessions/s/status"
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
    let mut world = world(&session(), Vec::new());
    world.pass().await;
    let id = world.server.lock().unwrap().session["status"]["id"].clone();
    world.server.lock().unwrap().session["metadata"]["resourceVersion"] = json!("8");
    world.pass().await;
    assert_eq!(
        world.server.lock().unwrap().session["status"]["id"],
        id,
        "the second id was refused"
    );
    assert_eq!(
        world
            .context
            .metrics
            .reconciliations
            .with_label_values(&["session", "conflict"])
            .get(),
        1
    );

    world.catch_up();
    world.pass().await;
    world.pass().await;
    assert_eq!(world.server.lock().unwrap().captures.len(), 1);
}

#[tokio::test]
async fn a_capture_of_that_name_that_somebody_else_made_is_not_taken() {
    let mut first = world(&session(), Vec::new());
    first.pass().await;
    first.catch_up();
    first.pass().await;
    let mut foreign = first.server.lock().unwrap().captures[0].clone();
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("another");

    let mut world = world(&session(), vec![foreign]);
    world.pass().await;
    world.catch_up();
    world.pass().await;
    assert_ne!(world.condition("TargetsFound")["status"], "True");
    assert_eq!(
        world
            .context
            .metrics
            .reconciliations
            .with_label_values(&["session", "failed"])
            .get(),
        1
    );
}

#[tokio::test]
async fn a_session_that_is_gone_gets_no_captures() {
    let mut world = world(&session(), Vec::new());
    world.pass().await;
    world.catch_up();
    world.server.lock().unwrap().session["metadata"]["uid"] = json!("a later one of the same name");
    world.pass().await;
    assert!(world.server.lock().unwrap().captures.is_empty());
}

#[tokio::test]
async fn a_session_whose_pod_is_held_up_by_its_preparation_says_why() {
    let mut world = world(&session(), Vec::new());
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
async fn m3_a_namespace_where_the_controller_may_make_no_pods_is_told_which_role_to_bind_there() {
    const PODS: &str = "/api/v1/namespaces/team/pods";
    const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let mut own_pod = session();
    own_pod["spec"]["target"] = json!({"podTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}}});
    let review = |allowed: bool| json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}, "status": {"allowed": allowed}});
    let refusal = |message: &str| json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message});
    let none = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": []});
    for (allowed, message, reason, sentence) in [
        (
            false,
            "pods is forbidden: User cannot create resource",
            SessionReason::PodsNotAllowed,
            "kubectl -n team create rolebinding flopwatch-pod-templates --clusterrole=flopwatch-pod-templates --serviceaccount=flopwatch-system:flopwatch-controller",
        ),
        (
            true,
            "pods is forbidden: exceeded quota",
            SessionReason::PodRefused,
            "exceeded quota",
        ),
    ] {
        let mut world = world(&own_pod, Vec::new());
        world.server.lock().unwrap().told = vec![
            ("GET", PODS, 200, none.clone()),
            ("POST", PODS, 403, refusal(message)),
            ("POST", REVIEW, 201, review(allowed)),
        ];
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
        let asked = world
            .server
            .lock()
            .unwrap()
            .requests
            .iter()
            .find_map(|(_, path, body)| (path == REVIEW).then(|| body.clone()));
        let asked = asked.expect("the API server is asked rather than its words read");
        assert_eq!(
            asked["spec"]["resourceAttributes"],
            json!({"namespace": "team", "resource": "pods", "verb": "create"})
        );
    }
}
