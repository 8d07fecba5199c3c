//! The whole controller against an API server in memory, which holds no object of its until a pod
//! comes by the watch.

use std::net::SocketAddr;

use flopwatch_test_harness::{ApiServer, Call, Verb};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::preparation_failure::tests::{exited, prepared, waiting};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/flopwatch/leases/controller";
/// Longest wait for something that is to happen.
const STATE_TIMEOUT: Duration = Duration::from_secs(20);

/// An API server whose lease another process holds, and where a pod appears once pods were listed.
fn server() -> ApiServer {
    let server = ApiServer::new();
    let now = format!("{:.6}", Timestamp::now());
    server.put(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "controller", "namespace": "flopwatch"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}
    }));
    server.after(|server, call| {
        if call.verb == Verb::List && call.path == "/api/v1/pods" && server.all("pods").is_empty() {
            let mut pod = prepared("p", &exited(0), &waiting("ErrImagePull"));
            json_patch::merge(&mut pod, &json!({"apiVersion": "v1", "kind": "Pod"}));
            server.put(&pod);
        }
    });
    server
}

fn options(lease: Option<&str>) -> ControllerOptions {
    ControllerOptions {
        store: StoreArguments::default(),
        namespace: "flopwatch".to_owned(),
        probes: Listen {
            health: SocketAddr::from(([127, 0, 0, 1], 0)),
            metrics: SocketAddr::from(([127, 0, 0, 1], 0)),
        },
        tls_secret: "flopwatch-controller-tls".to_owned(),
        lease: lease.map(str::to_owned),
        identity: "this".to_owned(),
        node_lost: Duration::from_mins(1),
        agent_selector: "app=agent".to_owned(),
        namespace_limit: None,
        status_writes: 50,
        concurrency: 1,
        suspended: false,
        config_map: "flopwatch".to_owned(),
        certificates: None,
    }
}

/// Runs the controller until `done` says so of the calls and of the pods seen.
async fn run_until(lease: Option<&str>, done: impl Fn(&[Call], u64) -> bool) -> Vec<Call> {
    run_on(&server(), lease, done).await
}

async fn run_on(server: &ApiServer, lease: Option<&str>, done: impl Fn(&[Call], u64) -> bool) -> Vec<Call> {
    let (metrics, stop) = (Metrics::new().unwrap(), CancellationToken::new());
    let running = run(
        server.client("flopwatch"),
        options(lease),
        metrics.clone(),
        stop.clone(),
    );
    let watched = async {
        loop {
            let pods = metrics.watch_events.with_label_values(&["Pod", "applied"]).get();
            if done(&server.calls(), pods) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Long enough for the next round, were there one.
        tokio::time::sleep(announce::MIN_ROUND_INTERVAL + Duration::from_millis(500)).await;
        stop.cancel();
    };
    let both = async { tokio::join!(running, watched).0 };
    tokio::time::timeout(STATE_TIMEOUT, Box::pin(both))
        .await
        .unwrap()
        .unwrap();
    server.calls()
}

fn events(calls: &[Call]) -> Vec<String> {
    let posted = calls
        .iter()
        .filter(|call| call.verb == Verb::Create && call.path.contains("events.k8s.io"));
    posted
        .map(|Call { body, .. }| format!("{} {}", body["regarding"]["name"], body["reason"]))
        .collect()
}

#[tokio::test]
async fn the_leader_says_on_a_pod_that_comes_by_the_watch_what_holds_it_up() {
    let calls = run_until(None, |calls, _| !events(calls).is_empty()).await;
    assert_eq!(events(&calls), [r#""p" "ToolsImageUnavailable""#]);
}

#[tokio::test]
async fn a_candidate_for_the_lease_sees_the_pod_and_writes_nothing() {
    let asked = |calls: &[Call]| calls.iter().any(|call| call.path == LEASE);
    let calls = run_until(Some("controller"), |calls, pods| pods > 0 && asked(calls)).await;
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    let written: Vec<_> = calls
        .iter()
        .filter(|call| !reads.contains(&call.verb) && call.path != LEASE)
        .collect();
    assert!(written.is_empty(), "{written:?}");
}

#[tokio::test]
async fn the_leader_makes_the_session_of_a_schedule_and_its_captures_which_say_how_probable_they_were() {
    let server = ApiServer::new();
    let before = format!("{:.0}", Timestamp::now() - jiff::SignedDuration::from_hours(1));
    server.put(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "llm", "namespace": "team", "uid": "uid-llm", "labels": {"app": "llm"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Running", "startTime": before}
    }));
    server.put(&json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule",
        "metadata": {"name": "always", "namespace": "team", "uid": "schedule", "generation": 1, "creationTimestamp": before},
        "spec": {
            "when": {"interval": {"seconds": 10}}, "jitterSeconds": 0,
            "select": {"podSelector": {"matchLabels": {"app": "llm"}}, "perRun": {"percent": 100}, "minPodAgeSeconds": 0},
            "session": {"durationSeconds": 5}
        }
    }));
    let made = |calls: &[Call]| {
        calls
            .iter()
            .any(|call| call.verb == Verb::Create && call.path.ends_with("/captures"))
    };
    run_on(&server, None, |calls, _| made(calls)).await;
    let captures = server.all("captures");
    let annotations = &captures[0]["metadata"]["annotations"];
    assert_eq!(annotations["flopwatch.dev/probability-per-billion"], "500000000");
    let status = &server.get("profilingschedules", "team", "always").unwrap()["status"];
    assert!(
        status["plannedUntil"].is_string() && status["lastTime"].is_string(),
        "{status}"
    );
    let missed = status["skipped"].as_array().unwrap();
    assert!(
        missed.iter().any(|skipped| skipped["reason"] == "Missed"),
        "an hour is not caught up: {status}"
    );
}
