//! The whole controller against an API server in this process, which holds no object until a pod comes by the watch.

use std::sync::{Mutex, PoisonError};

use axum::body::to_bytes;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::trouble::tests::{exited, prepared, waiting};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/flopwatch/leases/controller";
/// Longest wait for something that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);

type Requests = Arc<Mutex<Vec<(String, String, Value)>>>;

/// An API server whose lease another process holds.
fn server(requests: &Requests) -> Client {
    let log = Arc::clone(requests);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(axum::body::Body::new(body), 1 << 20).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let path = parts.uri.path().to_owned();
            let watches = parts.uri.query().unwrap_or_default().contains("watch=");
            let answer = if watches {
                let mut pod = prepared("p", &exited(0), &waiting("ErrImagePull"));
                json_patch::merge(
                    &mut pod,
                    &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "2"}}),
                );
                let event = format!("{}\n", json!({"type": "ADDED", "object": pod}));
                let events: Vec<_> = (path == "/api/v1/pods").then_some(event).into_iter().collect();
                let lines = stream::iter(events.into_iter().map(Ok::<_, std::convert::Infallible>));
                axum::body::Body::from_stream(lines.chain(stream::pending()))
            } else {
                let answer = match parts.method.as_str() {
                    "GET" if path == LEASE => lease(),
                    "GET" => {
                        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
                    }
                    _ => body.clone(),
                };
                axum::body::Body::from(serde_json::to_vec(&answer).unwrap())
            };
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push((parts.method.to_string(), path, body));
            Ok::<_, std::convert::Infallible>(http::Response::new(answer))
        }
    });
    Client::new(service, "flopwatch")
}

fn lease() -> Value {
    let now = format!("{:.6}", Timestamp::now());
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "controller", "namespace": "flopwatch", "resourceVersion": "1"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}
    })
}

fn options(lease: Option<&str>) -> ControllerOptions {
    ControllerOptions {
        store: StoreArguments::default(),
        namespace: "flopwatch".to_owned(),
        listen_metrics: SocketAddr::from(([127, 0, 0, 1], 0)),
        lease: lease.map(str::to_owned),
        identity: "this".to_owned(),
        node_lost: Duration::from_mins(1),
        agent_selector: "app=agent".to_owned(),
        namespace_limit: None,
        concurrency: 1,
        suspended: false,
        config_map: "flopwatch".to_owned(),
        certificates: None,
    }
}

/// Runs the controller until `done` says so of the requests and of the pods seen.
async fn run_until(lease: Option<&str>, done: impl Fn(&[(String, String, Value)], u64) -> bool) -> Requests {
    let (requests, metrics, stop) = (Requests::default(), Metrics::new().unwrap(), CancellationToken::new());
    let running = run(server(&requests), options(lease), metrics.clone(), stop.clone());
    let watched = async {
        loop {
            let pods = metrics.watch_events.with_label_values(&["Pod", "applied"]).get();
            if done(&requests.lock().unwrap(), pods) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Long enough for the next round, were there one.
        tokio::time::sleep(announce::PACE + Duration::from_millis(500)).await;
        stop.cancel();
    };
    let both = async { tokio::join!(running, watched).0 };
    tokio::time::timeout(PATIENCE, Box::pin(both)).await.unwrap().unwrap();
    requests
}

fn events(requests: &[(String, String, Value)]) -> Vec<String> {
    let posted = requests
        .iter()
        .filter(|(method, path, _)| method == "POST" && path.contains("events.k8s.io"));
    posted
        .map(|(_, _, event)| format!("{} {}", event["regarding"]["name"], event["reason"]))
        .collect()
}

#[tokio::test]
async fn the_leader_says_on_a_pod_that_comes_by_the_watch_what_holds_it_up() {
    let requests = run_until(None, |requests, _| !events(requests).is_empty()).await;
    assert_eq!(events(&requests.lock().unwrap()), [r#""p" "ToolsImageUnavailable""#]);
}

#[tokio::test]
async fn a_candidate_for_the_lease_sees_the_pod_and_writes_nothing() {
    let asked = |requests: &[(String, String, Value)]| requests.iter().any(|(_, path, _)| path == LEASE);
    let requests = run_until(Some("controller"), |requests, pods| pods > 0 && asked(requests)).await;
    let requests = requests.lock().unwrap();
    let written: Vec<_> = requests
        .iter()
        .filter(|(method, path, _)| method != "GET" && path != LEASE)
        .collect();
    assert!(written.is_empty(), "{written:?}");
}
