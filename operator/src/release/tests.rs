//! Against an API server in this process, with an agent and a controller that do what a test tells them to.

use std::sync::{Arc, Mutex};

use axum::body::to_bytes;
use kube::client::Body;

use super::*;

const CAPTURES: &str = "/apis/flopwatch.dev/v1alpha1/captures";
const SWITCH: &str = "/api/v1/namespaces/ns/configmaps/flopwatch-controller";
/// Captures in one page, whatever was asked for.
const PAGE_SIZE: usize = 2;

#[derive(Default)]
struct Server {
    captures: Vec<Value>,
    /// Captures are not defined.
    undefined: bool,
    /// No ConfigMap.
    no_switch: bool,
    /// The agent ends captures that were asked to stop.
    agent: bool,
    /// Writers who each go first at one attempt to take a finalizer off.
    rivals: usize,
    /// The controller creates this one after it was suspended, with a pass that it had begun before.
    straggler: Option<Value>,
    /// Name of a capture whose metadata nobody may change.
    refused: Option<&'static str>,
    requests: Vec<(String, String, Value)>,
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "status": "Failure", "reason": reason, "message": reason, "code": code});
    (code, status)
}

fn query<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

impl Server {
    fn answer(&mut self, method: &str, path: &str, parameters: &str, body: &Value) -> (u16, Value) {
        if path == SWITCH {
            assert_eq!(method, "PATCH");
            return if self.no_switch {
                refusal(404, "NotFound")
            } else {
                (
                    200,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}),
                )
            };
        }
        if path == CAPTURES {
            return self.list(parameters);
        }
        let name = path.rsplit('/').next().unwrap();
        let Some(at) = self.captures.iter().position(|one| one["metadata"]["name"] == name) else {
            return refusal(404, "NotFound");
        };
        match method {
            "GET" => (200, self.captures[at].clone()),
            "PATCH" => self.patch(at, body),
            _ => refusal(405, "MethodNotAllowed"),
        }
    }

    fn list(&self, parameters: &str) -> (u16, Value) {
        if self.undefined {
            return refusal(404, "NotFound");
        }
        let from: usize = query(parameters, "continue").map_or(0, |token| token.parse().unwrap());
        let until = (from + PAGE_SIZE).min(self.captures.len());
        let more = if until < self.captures.len() {
            until.to_string()
        } else {
            String::new()
        };
        let page = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "CaptureList", "metadata": {"continue": more},
            "items": self.captures[from..until]
        });
        (200, page)
    }

    fn patch(&mut self, at: usize, body: &Value) -> (u16, Value) {
        let capture = &mut self.captures[at];
        if let Some(stop) = body["spec"].get("stop") {
            capture["spec"]["stop"] = stop.clone();
            if self.agent {
                capture["status"] = ended();
            }
            return (200, capture.clone());
        }
        if self.refused.is_some_and(|name| capture["metadata"]["name"] == name) {
            return refusal(403, "Forbidden");
        }
        if self.rivals > 0 {
            self.rivals -= 1;
            capture["metadata"]["resourceVersion"] = json!(format!("rival-{}", self.rivals));
        }
        if body["metadata"]["resourceVersion"] != capture["metadata"]["resourceVersion"] {
            return refusal(409, "Conflict");
        }
        capture["metadata"]["finalizers"] = body["metadata"]["finalizers"].clone();
        capture["metadata"]["resourceVersion"] = json!("written");
        let answer = capture.clone();
        self.captures.extend(self.straggler.take());
        (200, answer)
    }
}

fn client(server: &Arc<Mutex<Server>>) -> Client {
    let shared = Arc::clone(server);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let server = Arc::clone(&shared);
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(axum::body::Body::new(body), 1 << 20).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
            let mut server = server.lock().unwrap();
            let (code, answer) = server.answer(&method, &path, parts.uri.query().unwrap_or_default(), &body);
            server.requests.push((method, path, body));
            let response = http::Response::builder()
                .status(code)
                .body(Body::from(serde_json::to_vec(&answer).unwrap()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        }
    });
    Client::new(service, "ns")
}

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

fn world(captures: Vec<Value>) -> Server {
    Server {
        captures,
        agent: true,
        ..Server::default()
    }
}

async fn released(server: &Arc<Mutex<Server>>) -> Result<Released, ReleaseError> {
    let options = ReleaseOptions {
        namespace: "ns".to_owned(),
        config_map: "flopwatch-controller".to_owned(),
        grace: Duration::from_secs(20),
    };
    run(client(server), options, CancellationToken::new()).await
}

fn shared(server: Server) -> Arc<Mutex<Server>> {
    Arc::new(Mutex::new(server))
}

fn finalizers(server: &Arc<Mutex<Server>>) -> Vec<Value> {
    let server = server.lock().unwrap();
    let all = server.captures.iter();
    all.map(|capture| capture["metadata"]["finalizers"].clone()).collect()
}

fn writes(server: &Arc<Mutex<Server>>) -> Vec<(String, Value)> {
    let server = server.lock().unwrap();
    let patches = server.requests.iter().filter(|(method, _, _)| method == "PATCH");
    patches.map(|(_, path, body)| (path.clone(), body.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn captures_at_work_are_stopped_and_then_every_page_is_let_go_without_touching_other_finalizers() {
    let work = json!({});
    let server = shared(world(vec![
        capture("at-work", &work),
        capture("ended", &ended()),
        capture("queued", &work),
        capture("old", &ended()),
        capture("older", &ended()),
    ]));
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
        writes[0],
        (SWITCH.to_owned(), json!({"data": {"capturesSuspended": "true"}})),
        "new captures are suspended before anything else is written"
    );
    let stops = writes.iter().filter(|(_, body)| body["spec"]["stop"] == "Discard");
    assert_eq!(stops.count(), 2, "captures that have ended are not asked to stop");
}

#[tokio::test(start_paused = true)]
async fn a_second_run_finds_nothing_left_to_do() {
    let server = shared(world(vec![capture("one", &json!({}))]));
    released(&server).await.unwrap();
    let before = writes(&server).len();
    assert_eq!(released(&server).await.unwrap(), Released::default());
    assert_eq!(writes(&server).len(), before + 1, "only the switch is written again");
}

#[tokio::test(start_paused = true)]
async fn a_capture_that_no_agent_ends_is_let_go_when_the_time_is_over() {
    let mut kept = capture("kept", &json!({}));
    kept["spec"]["stop"] = json!("Keep");
    let mut deleted = capture("deleted", &json!({}));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let server = shared(Server {
        agent: false,
        ..world(vec![capture("silent", &json!({})), kept, deleted])
    });
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
async fn a_capture_that_a_pass_in_flight_creates_is_let_go_too() {
    let server = shared(Server {
        straggler: Some(capture("late", &ended())),
        ..world(vec![capture("one", &ended())])
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
    let server = shared(Server {
        rivals: TRIES - 1,
        ..world(vec![capture("busy", &ended())])
    });
    let begin = Instant::now();
    assert_eq!(released(&server).await.unwrap().released, 1);
    assert!(begin.elapsed() < SETTLE * 2, "within one round");
    let versions: Vec<Value> = writes(&server)
        .into_iter()
        .filter(|(path, _)| path.ends_with("/busy"))
        .map(|(_, body)| body["metadata"]["resourceVersion"].clone())
        .collect();
    assert_eq!(versions, ["1", "rival-3", "rival-2", "rival-1", "rival-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_capture_that_cannot_be_read_is_let_go_without_waiting_for_it() {
    let mut strange = capture("strange", &json!({}));
    strange["spec"] = json!({"from": "another version"});
    let server = shared(world(vec![strange]));
    let begin = Instant::now();
    assert_eq!(released(&server).await.unwrap().released, 1);
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn one_capture_that_cannot_be_written_does_not_keep_the_others() {
    let server = shared(Server {
        refused: Some("locked"),
        ..world(vec![capture("locked", &ended()), capture("free", &ended())])
    });
    let error = released(&server).await.unwrap_err();
    assert!(matches!(error, ReleaseError::StillHeld { count: 1 }), "{error}");
    assert_eq!(finalizers(&server)[1], json!(["example.com/other"]));
}

#[tokio::test(start_paused = true)]
async fn without_definitions_there_is_nothing_to_do_and_without_a_switch_there_still_is() {
    let undefined = shared(Server {
        undefined: true,
        ..Server::default()
    });
    assert_eq!(released(&undefined).await.unwrap(), Released::default());
    assert!(writes(&undefined).is_empty());

    let no_switch = shared(Server {
        no_switch: true,
        ..world(vec![capture("one", &ended())])
    });
    assert_eq!(released(&no_switch).await.unwrap().released, 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_end_says_that_it_was_not_done() {
    let server = shared(Server {
        agent: false,
        ..world(vec![capture("silent", &json!({}))])
    });
    let options = ReleaseOptions {
        namespace: "ns".to_owned(),
        config_map: "flopwatch-controller".to_owned(),
        grace: Duration::from_secs(20),
    };
    let stop = CancellationToken::new();
    let (result, ()) = tokio::join!(run(client(&server), options, stop.clone()), async {
        sleep(Duration::from_secs(3)).await;
        stop.cancel();
    });
    assert!(matches!(result, Err(ReleaseError::Interrupted)));
    assert!(finalizers(&server)[0].to_string().contains(CAPTURE_FINALIZER));
}
