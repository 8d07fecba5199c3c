//! Against an API server in this process, with an agent and a controller that do what a test tells
//! them to.

use std::collections::BTreeSet;

use flopwatch_test_harness::{ApiServer, Call, Fault, Verb};
use serde_json::Value;

use super::*;

const SWITCH: &str = "/api/v1/namespaces/ns/configmaps/flopwatch-controller";

fn ended() -> Value {
    json!({"conditions": [{
        "type": "Succeeded", "status": "False", "reason": "Discarded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"
    }]})
}

fn capture(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
        "metadata": {
            "name": name, "namespace": "team", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "finalizers": ["example.com/other", CAPTURE_FINALIZER]
        },
        "spec": {
            "sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "u"},
            "containerName": "c", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Summary"]
        },
        "status": status
    })
}

/// A server with these captures and the switch, in pages of two.
fn silent(captures: &[Value]) -> ApiServer {
    let server = ApiServer::new();
    server.set_page(2);
    server.put(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flopwatch-controller", "namespace": "ns"}
    }));
    for capture in captures {
        server.put(capture);
    }
    server
}

/// The same with an agent, which ends captures that are asked to stop.
fn world(captures: &[Value]) -> ApiServer {
    let server = silent(captures);
    server.after(|server, call| {
        if call.verb == Verb::Patch && !call.body["spec"]["stop"].is_null() {
            server.edit("captures", "team", name(call), |capture| capture["status"] = ended());
        }
    });
    server
}

/// The object that a call names.
fn name(call: &Call) -> &str {
    call.path.rsplit('/').next().unwrap()
}

async fn released(server: &ApiServer) -> Result<Released, ReleaseError> {
    run(server.client("ns"), options(), CancellationToken::new()).await
}

fn options() -> ReleaseOptions {
    ReleaseOptions {
        namespace: "ns".to_owned(),
        config_map: "flopwatch-controller".to_owned(),
        grace: Duration::from_secs(20),
    }
}

fn finalizers(server: &ApiServer) -> Vec<Value> {
    let all = server.all("captures").into_iter();
    all.map(|capture| capture["metadata"]["finalizers"].clone()).collect()
}

fn writes(server: &ApiServer) -> Vec<Call> {
    let calls = server.calls().into_iter();
    calls.filter(|call| call.verb == Verb::Patch).collect()
}

#[tokio::test(start_paused = true)]
async fn captures_at_work_are_stopped_and_then_every_page_is_released_without_touching_other_finalizers() {
    let work = json!({});
    let server = world(&[
        capture("at-work", &work),
        capture("ended", &ended()),
        capture("queued", &work),
        capture("old", &ended()),
        capture("older", &ended()),
    ]);
    let begin = Instant::now();
    let done = released(&server).await.unwrap();
    let expected = Released {
        asked: 2,
        at_work: 0,
        released: 5,
    };
    assert_eq!(done, expected);
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "agents that end are not waited for"
    );
    assert!(
        finalizers(&server)
            .iter()
            .all(|kept| *kept == json!(["example.com/other"]))
    );

    let writes = writes(&server);
    assert_eq!(
        (writes[0].path.as_str(), &writes[0].body),
        (SWITCH, &json!({"data": {"capturesSuspended": "true"}})),
        "new captures are suspended before anything else is written"
    );
    let stops = writes.iter().filter(|call| call.body["spec"]["stop"] == "Discard");
    assert_eq!(stops.count(), 2, "captures that have ended are not asked to stop");
}

#[tokio::test(start_paused = true)]
async fn a_second_run_finds_nothing_left_to_do() {
    let server = world(&[capture("one", &json!({}))]);
    released(&server).await.unwrap();
    let before = writes(&server).len();
    assert_eq!(released(&server).await.unwrap(), Released::default());
    assert_eq!(writes(&server).len(), before + 1, "only the switch is written again");
}

#[tokio::test(start_paused = true)]
async fn a_capture_that_no_agent_ends_is_released_when_the_time_is_over() {
    let mut kept = capture("kept", &json!({}));
    kept["spec"]["stop"] = json!("Keep");
    let mut deleted = capture("deleted", &json!({}));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let server = silent(&[capture("silent", &json!({})), kept, deleted]);
    let begin = Instant::now();
    let done = released(&server).await.unwrap();
    let expected = Released {
        asked: 1,
        at_work: 3,
        released: 3,
    };
    assert_eq!(
        done, expected,
        "who was asked already, or is being deleted, is not asked"
    );
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_secs(20) && took < Duration::from_secs(30),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_capture_that_a_pass_in_flight_creates_is_released_too() {
    let server = world(&[capture("one", &ended())]);
    // The controller creates it after it was suspended, with a pass that it had begun before.
    server.after(|server, call| {
        if call.verb == Verb::Patch && name(call) == "one" {
            server.put(&capture("late", &ended()));
        }
    });
    assert_eq!(released(&server).await.unwrap().released, 2);
    assert!(
        finalizers(&server)
            .iter()
            .all(|kept| *kept == json!(["example.com/other"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_read_again_and_tried_again() {
    let server = world(&[capture("busy", &ended())]);
    // Somebody else goes first at all tries but the last.
    server.fail_for(
        MAX_RELEASE_ATTEMPTS - 1,
        Verb::Patch,
        "captures",
        "busy",
        Fault::Code(409),
    );
    server.after(|server, call| {
        if call.verb == Verb::Patch && name(call) == "busy" {
            let version = call.body["metadata"]["resourceVersion"].clone();
            server.edit("captures", "team", "busy", |capture| {
                capture["metadata"]["labels"] = json!({"after": version});
            });
        }
    });
    let begin = Instant::now();
    assert_eq!(released(&server).await.unwrap().released, 1);
    assert!(begin.elapsed() < SETTLE_INTERVAL * 2, "within one round");
    let versions: BTreeSet<String> = writes(&server)
        .iter()
        .filter(|call| name(call) == "busy")
        .map(|call| call.body["metadata"]["resourceVersion"].to_string())
        .collect();
    assert_eq!(versions.len(), MAX_RELEASE_ATTEMPTS, "each try with what was read last");
}

#[tokio::test(start_paused = true)]
async fn a_capture_that_cannot_be_read_is_released_without_waiting_for_it() {
    let mut strange = capture("strange", &json!({}));
    strange["spec"] = json!({"from": "another version"});
    let server = world(&[strange]);
    let begin = Instant::now();
    assert_eq!(released(&server).await.unwrap().released, 1);
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn one_capture_that_cannot_be_written_does_not_keep_the_others() {
    let server = world(&[capture("locked", &ended()), capture("free", &ended())]);
    server.fail_for(usize::MAX, Verb::Patch, "captures", "locked", Fault::Code(403));
    let error = released(&server).await.unwrap_err();
    assert!(matches!(error, ReleaseError::StillHeld { count: 1 }), "{error}");
    assert_eq!(
        finalizers(&server)[0],
        json!(["example.com/other"]),
        "by name, the free one is the first"
    );
}

#[tokio::test(start_paused = true)]
async fn without_definitions_there_is_nothing_to_do_and_without_a_switch_there_still_is() {
    let undefined = ApiServer::new();
    undefined.fail(usize::MAX, Verb::List, "captures", Fault::Code(404));
    assert_eq!(released(&undefined).await.unwrap(), Released::default());
    assert!(writes(&undefined).is_empty());

    let no_switch = ApiServer::new();
    no_switch.put(&capture("one", &ended()));
    assert_eq!(released(&no_switch).await.unwrap().released, 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_end_says_that_it_was_not_done() {
    let server = silent(&[capture("silent", &json!({}))]);
    let stop = CancellationToken::new();
    let (result, ()) = tokio::join!(run(server.client("ns"), options(), stop.clone()), async {
        sleep(Duration::from_secs(3)).await;
        stop.cancel();
    });
    assert!(matches!(result, Err(ReleaseError::Interrupted)));
    assert!(finalizers(&server)[0].to_string().contains(CAPTURE_FINALIZER));
}
