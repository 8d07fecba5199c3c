//! The gateway on loopback, before an API server in memory and a real artifact service.

mod agent;
mod alerts;
mod analyses;
mod browsers;
mod client;
mod clients;
mod cluster;
mod contract;
mod derived;
mod engine;
mod fleet;
mod kernels;
mod listeners;
mod live;
mod load;
mod nodes;
mod raw;
mod requests;
mod rig;
mod sockets;
mod stored;

use std::collections::BTreeSet;

use flopwatch_test_harness::{Fault, Verb};
use serde_json::{Value, json};

use self::cluster::Controller;
use self::rig::{Rig, artifacts, column, timeline_content};

const PATHS: [&str; 5] = [
    "/api/profiling/session/0badcafe",
    "/api/profiling/session/0badcafe/artifacts",
    "/api/profiling/session/0badcafe/artifacts/summary.json",
    "/api/profiling/timeline/0badcafe.h5",
    "/api/profiling/timeline/0badcafe/status",
];

const EVENTS: &str = "/api/profiling/session/0badcafe/events";

#[test]
fn the_document_is_committed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let current = super::openapi().unwrap() + "\n";
    assert!(
        committed == current,
        "docs/openapi.json is out of date: run `cargo xtask codegen`"
    );
    let document: Value = serde_json::from_str(&current).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(
                ids.insert(operation["operationId"].to_string()),
                "{method} {path}: its id is not its own"
            );
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let shared = answer["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
                let answer = shared.map_or(answer, |target| document.pointer(target).unwrap());
                let words = answer["description"].as_str().unwrap_or_default();
                assert!(!words.is_empty(), "{method} {path} {status} has no description");
            }
        }
    }
}

#[tokio::test]
async fn whoever_shows_no_known_token_is_told_to() {
    let rig = Rig::new().await;
    let gateway = rig.cluster.token_of_gateway("flopwatch-agent/node");
    for path in PATHS.iter().chain(&["/api/profiling/sessions"]) {
        for token in [None, Some("nobody"), Some(gateway.as_str())] {
            let answer = rig.ask("GET", path, token, &[], "").await;
            assert_eq!(answer.told(), "401 Unauthenticated", "{path}");
            assert!(answer.header("www-authenticate").starts_with("Bearer"), "{answer:?}");
        }
    }
    let run = rig.ask("POST", "/api/profiling/run", None, &[], "{}").await;
    assert_eq!(run.status, 401);
    let twice = [("Authorization", "Bearer reader")];
    assert_eq!(rig.get_with(PATHS[0], "admin", &twice).await.status, 401);
}

#[tokio::test]
async fn whoever_may_not_learns_nothing_about_what_there_is() {
    let rig = Rig::new().await;
    for path in PATHS {
        let known = rig.get(path, "stranger").await;
        assert_eq!(known.told(), "403 Forbidden", "{path}");
        let unknown = rig.get(&path.replace("0badcafe", "00000000"), "stranger").await;
        assert_eq!((unknown.status, unknown.body), (known.status, known.body), "{path}");
    }
    // Who may get every session may know that there is none.
    assert_eq!(rig.status("/api/profiling/session/00000000", "admin").await, 404);
    assert_eq!(rig.status("/api/profiling/session/00000000", "reader").await, 403);
}

#[tokio::test]
async fn a_review_that_fails_lets_nobody_in() {
    let rig = Rig::new().await;
    let server = &rig.cluster.server;
    server.fail(usize::MAX, Verb::Create, "tokenreviews", Fault::Code(500));
    let answer = rig.get(PATHS[0], "admin").await;
    assert_eq!(answer.told(), "503 ApiServer");
    assert_eq!(answer.header("retry-after"), "2");
}

#[tokio::test]
async fn a_run_is_a_session_made_with_the_callers_own_token() {
    let rig = Rig::new().await;
    let request = json!({
        "mode": "nsys", "solver": "cg", "target": {"namespace": "team", "pod": "train"}, "options": {"duration_seconds": 5}
    });
    let accepted = rig.post("/api/profiling/run", "admin", &request).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    assert_eq!(
        accepted.json(),
        json!({"session_id": "00000000", "status": "pending", "namespace": "team", "name": "run-0"})
    );
    let made = &rig.cluster.done(Verb::Create)[0];
    assert_eq!(
        (made.user.as_deref(), &made.body["spec"]["durationSeconds"]),
        (Some("admin"), &json!(5))
    );
    let read = rig.json("/api/profiling/session/00000000", "admin").await;
    assert_eq!(
        json!([read["request"], read["status"]]),
        json!([{"solver": "cg"}, "pending"])
    );

    let refused = rig.post("/api/profiling/run", "reader", &request).await;
    assert_eq!(refused.told(), "403 Refused");
    let too_long = json!({
        "mode": "auto", "target": {"namespace": "team", "pod": "train"}, "options": {"duration_seconds": 301}
    });
    let refused = rig.post("/api/profiling/run", "admin", &too_long).await;
    assert_eq!(refused.status, 422);
    assert!(refused.detail().contains("durationSeconds"), "{refused:?}");
    assert_eq!(rig.post("/api/profiling/run", "nobody", &request).await.status, 401);
    assert_eq!(rig.cluster.done(Verb::Create).len(), 1);
}

#[tokio::test]
async fn a_run_that_is_none_is_a_bad_request() {
    let rig = Rig::new().await;
    for body in [
        json!({}),
        json!([]),
        json!({"mode": "nsys"}),
        json!({"mode": "x", "target": {"namespace": "a", "pod": "b"}}),
    ] {
        let answer = rig.post("/api/profiling/run", "admin", &body).await;
        assert_eq!(answer.told(), "400 BadRequest", "{body}");
    }
    let json = [("Content-Type", "application/json")];
    let long = format!("\"{}\"", "x".repeat(70_000));
    for (headers, body, status) in [(&json[..], "{", 400), (&[], "{}", 415), (&json, long.as_str(), 413)] {
        let run = "/api/profiling/run";
        let answer = rig.ask("POST", run, Some("admin"), headers, body).await;
        assert_eq!(answer.status, status, "{body:.9}");
    }
    assert_eq!(rig.cluster.done(Verb::Create), []);
}

#[tokio::test]
async fn a_run_that_no_controller_takes_up_names_the_session() {
    let rig = Rig::new().await;
    *rig.cluster.controller.lock().unwrap() = Controller::Sleeps;
    let request = json!({"mode": "auto", "target": {"namespace": "team", "pod": "train"}});
    let answer = rig.post("/api/profiling/run", "admin", &request).await;
    assert_eq!(answer.told(), "503 NotTakenUp");
    assert!(answer.detail().contains("team/run-0"), "{answer:?}");
}

#[tokio::test]
async fn lists_are_paged_and_filtered() {
    let rig = Rig::new().await;
    for at in 1..=24 {
        let (namespace, succeeded) = (["team", "other"][at % 2], ["True", "False", "Unknown"][at % 3]);
        let minute = i32::try_from(at / 3).unwrap();
        rig.session(namespace, &format!("s{at}"), &format!("{at:08x}"), minute, succeeded);
    }
    let ids = |page: &Value| -> Vec<String> {
        let ids = column(&page["sessions"], "session_id").into_iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let mut seen = Vec::new();
    let mut path = "/api/profiling/sessions?limit=7".to_owned();
    for expected in [7, 7, 7, 4] {
        let page = rig.json(&path, "admin").await;
        assert_eq!((ids(&page).len(), &page["total"]), (expected, &json!(25)));
        seen.extend(ids(&page));
        path = format!(
            "/api/profiling/sessions?limit=7&after={}",
            page["next"].as_str().unwrap_or("end")
        );
    }
    assert!(path.ends_with("end"), "the last page has no next");
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 25);
    assert_eq!(&seen[..2], ["00000018", "00000015"], "the newest first");

    for (query, user, total) in [
        ("?namespace=team", "reader", 13),
        ("?namespace=team&status=failed", "admin", 4),
        ("?status=pending", "admin", 8),
        ("?mode=metrics", "admin", 0),
    ] {
        let answer = rig.get(&format!("/api/profiling/sessions{query}"), user).await;
        assert_eq!(answer.json()["total"], total, "{query}");
    }
    for (query, user, status) in [
        ("", "reader", 403),
        ("?namespace=other", "reader", 403),
        ("?limit=0", "admin", 400),
        ("?limit=1001", "admin", 400),
        ("?limit=x", "admin", 400),
        ("?after=x", "admin", 400),
        ("?status=x", "admin", 400),
        ("?namespace=", "reader", 400),
        ("?unknown=1", "admin", 400),
        (&format!("?namespace={}", "a".repeat(64)), "admin", 400),
    ] {
        let answer = rig.get(&format!("/api/profiling/sessions{query}"), user).await;
        assert_eq!(answer.status, status, "{query} {answer:?}");
    }
}

#[tokio::test]
async fn a_session_says_where_it_stands_and_what_its_captures_published() {
    let rig = Rig::new().await;
    let session = rig.json(PATHS[0], "reader").await;
    assert_eq!(
        json!([
            session["mode"],
            session["status"],
            session["requested_by"],
            session["reason"]
        ]),
        json!(["nsys", "completed", "alice", "Succeeded"])
    );
    assert_eq!(session["captures"][0]["artifacts"].as_array().unwrap().len(), 3);
    let status = rig.json(PATHS[4], "reader").await;
    assert_eq!(
        json!([status["status"], status["capture"]]),
        json!(["ready", "train-a"])
    );
}

#[tokio::test]
async fn an_artifact_comes_from_the_agent_whole_in_parts_or_not_again() {
    let rig = Rig::new().await;
    let path = PATHS[3];
    let content = timeline_content();
    let whole = rig.get(path, "reader").await;
    assert_eq!(whole.status, 200);
    assert!(whole.body == content, "{} bytes of {}", whole.body.len(), content.len());
    assert_eq!(whole.header("content-length"), content.len().to_string());
    assert_eq!(whole.header("accept-ranges"), "bytes");
    assert_eq!(whole.header("content-type"), "application/x-hdf5");
    assert_eq!(whole.header("content-encoding"), "");
    let tag = whole.header("etag").to_owned();
    assert_eq!(tag.len(), 66, "{tag}");

    let head = rig.ask("HEAD", path, Some("reader"), &[], "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(
        (head.header("content-length"), head.header("etag")),
        (whole.header("content-length"), tag.as_str())
    );

    let part = rig.get_with(path, "reader", &[("Range", "bytes=100-299")]).await;
    assert_eq!((part.status, part.header("content-length")), (206, "200"));
    assert_eq!(part.header("content-range"), format!("bytes 100-299/{}", content.len()));
    assert_eq!(part.body, content[100..300]);
    let other = [("Range", "bytes=0-0"), ("If-Range", "\"other\"")];
    assert_eq!(rig.get_with(path, "reader", &other).await.status, 200);

    let again = rig.get_with(path, "reader", &[("If-None-Match", &tag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let outside = rig.get_with(path, "reader", &[("Range", "bytes=99999999-")]).await;
    assert_eq!(outside.status, 416);
    assert_eq!(outside.header("content-range"), format!("bytes */{}", content.len()));
    assert_eq!(rig.get(PATHS[2], "reader").await.body, b"{}");
}

#[tokio::test]
async fn a_raw_capture_needs_a_right_of_its_own() {
    let rig = Rig::new().await;
    let path = "/api/profiling/session/0badcafe/artifacts/capture.nsys-rep";
    let refused = rig.get(path, "reader").await;
    assert_eq!(refused.told(), "403 RawForbidden");
    assert_eq!(rig.get(path, "raw-reader").await.body, b"secret");
}

#[tokio::test]
async fn one_of_several_captures_must_be_named() {
    let rig = Rig::new().await;
    rig.capture("train-b", "https://127.0.0.1:1/x", &artifacts());
    for path in &PATHS[1..] {
        let several = rig.get(path, "reader").await;
        assert_eq!(several.told(), "409 SeveralCaptures", "{path}");
        assert_eq!(several.json()["captures"], json!(["train-a", "train-b"]));
        for (capture, status) in [("train-a", 200), ("train-c", 404)] {
            let found = rig.status(&format!("{path}?capture={capture}"), "reader").await;
            assert_eq!(found, status, "{path} {capture}");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_yet_or_no_longer_is_said() {
    let rig = Rig::new().await;
    rig.session("team", "empty", "00000001", 1, "Unknown");
    let none = rig.get("/api/profiling/timeline/00000001.h5", "reader").await;
    assert_eq!(none.told(), "409 NotReady");
    let status = rig.get("/api/profiling/timeline/00000001/status", "reader").await;
    assert_eq!(
        (status.status, status.json()),
        (
            200,
            json!({"session_id": "00000001", "capture": null, "status": "pending"})
        )
    );
    rig.capture("train-a", "https://127.0.0.1:1/x", &json!([]));
    assert_eq!(rig.status(PATHS[3], "reader").await, 404);
    assert_eq!(rig.json(PATHS[4], "reader").await["status"], "absent");
    // In the status and not in the agent's store.
    let gone = json!([{"name": "gone.h5", "type": "Timeline", "bytes": 1, "sha256": "0".repeat(64), "mediaType": ""}]);
    rig.capture("train-a", &format!("https://{}/x", rig.agent.address), &gone);
    let path = "/api/profiling/session/0badcafe/artifacts/gone.h5";
    assert_eq!(rig.status(path, "reader").await, 404);
}

#[tokio::test]
async fn an_agent_that_is_gone_or_holds_something_else_gives_no_artifact() {
    let rig = Rig::new().await;
    for object in std::fs::read_dir(rig.agent.folder.path().join("store/objects")).unwrap() {
        std::fs::write(object.unwrap().path(), b"no").unwrap();
    }
    let corrupt = rig.get(PATHS[3], "reader").await;
    assert_eq!(corrupt.told(), "502 Agent", "{corrupt:?}");
    assert!(corrupt.detail().contains("Corrupt"), "{corrupt:?}");
    // A port of loopback that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    rig.capture("train-a", &format!("https://{}/x", free.unwrap()), &artifacts());
    let gone = rig.get(PATHS[3], "reader").await;
    assert_eq!(gone.told(), "503 AgentUnreachable");
}

#[tokio::test]
async fn only_a_holder_of_an_agents_certificate_sees_the_token() {
    let rig = Rig::new().await;
    let impostor = Rig::new().await;
    // Another authority's certificate for the same name.
    rig.capture("train-a", &impostor.agent_url(), &artifacts());
    let answer = rig.get(PATHS[3], "reader").await;
    assert_eq!(answer.told(), "503 AgentUnreachable", "{answer:?}");
    for url in [
        "http://127.0.0.1:1/x",
        "https://localhost:1/x",
        "https://user@127.0.0.1:1/",
        "file:///x",
        "",
    ] {
        rig.capture("train-a", url, &artifacts());
        assert_eq!(rig.get(PATHS[3], "reader").await.reason(), "NotReady", "{url}");
    }
}

#[tokio::test]
async fn paths_lead_nowhere_else() {
    let rig = Rig::new().await;
    for name in [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "timeline.h5%00",
        "%ff",
        "timeline.h5%3fx=1",
        "a%0d%0aX-Injected:%201",
    ] {
        let answer = rig
            .get(&format!("/api/profiling/session/0badcafe/artifacts/{name}"), "admin")
            .await;
        assert!(matches!(answer.status, 400 | 404), "{name}: {answer:?}");
        assert_eq!(answer.header("x-injected"), "");
    }
    assert_eq!(rig.status("/api/profiling/timeline/0badcafe.xml", "admin").await, 400);
    assert_eq!(rig.status("/api/profiling/../secrets", "admin").await, 404);
    assert_eq!(rig.ask("PUT", PATHS[0], Some("admin"), &[], "").await.status, 405);
}

#[tokio::test]
async fn a_session_is_deleted_with_the_callers_own_token() {
    let rig = Rig::new().await;
    let refused = rig.ask("DELETE", PATHS[0], Some("reader"), &[], "").await;
    assert_eq!(refused.told(), "403 Refused");
    assert_eq!(
        rig.ask("DELETE", PATHS[0], Some("stranger"), &[], "").await.reason(),
        "Forbidden"
    );
    let deleted = rig.ask("DELETE", PATHS[0], Some("admin"), &[], "").await;
    assert_eq!(deleted.json(), json!({"session_id": "0badcafe", "status": "deleted"}));
    let [done] = &rig.cluster.done(Verb::Delete)[..] else {
        panic!("one session is deleted once");
    };
    assert!(
        done.path.ends_with("/namespaces/team/profilingsessions/train"),
        "{done:?}"
    );
    assert_eq!(
        (done.user.as_deref(), &done.body["preconditions"]["uid"]),
        (Some("admin"), &json!("uid-0badcafe"))
    );
}

#[tokio::test]
async fn pages_of_listed_origins_may_call_and_others_may_not() {
    let rig = Rig::new().await;
    for (origin, allowed) in [
        ("https://grafana.example", "https://grafana.example"),
        ("https://evil.example", ""),
    ] {
        let answer = rig
            .ask("GET", "/api/profiling/modes", None, &[("Origin", origin)], "")
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
    }
    let modes = rig.json("/api/profiling/modes", "stranger").await;
    assert_eq!(modes["modes"][1]["id"], "nsys");
    assert!(column(&modes["modes"], "id").contains(&&json!("jax")));
    assert_eq!(rig.json("/api/openapi.json", "stranger").await["openapi"], "3.1.0");
}

#[tokio::test]
async fn progress_is_told_as_it_changes_and_taken_up_where_it_was_left() {
    let rig = Rig::new().await;
    rig.session("team", "train", "0badcafe", 0, "Unknown");
    let mut ears = rig.listen("").await;
    let message = ears.until(r#""status":"pending""#).await;
    assert!(
        message.starts_with("HTTP/1.1 200") && message.contains("content-type: text/event-stream"),
        "{message}"
    );
    let greeting = message.find("event: profiling_started").unwrap();
    assert!(
        greeting < message.find("event: profiling_progress").unwrap(),
        "{message}"
    );
    assert!(
        message.contains(r#""solver":"cg""#) && message.contains(r#""mode":"nsys""#),
        "{message}"
    );
    // The end of the event.
    ears.until("id: ").await;
    let first = ears.ids().pop().unwrap();
    // Who comes back and has heard it hears only what is new.
    let mut again = rig.listen(&first).await;
    again.until("\r\n\r\n").await;
    // There is room for two.
    let full = rig.get(EVENTS, "reader").await;
    assert_eq!(full.told(), "503 Busy");
    rig.session("team", "train", "0badcafe", 0, "True");
    for ears in [&mut ears, &mut again] {
        let message = ears.until("").await;
        assert!(
            message.contains(r#"{"session_id":"0badcafe","status":"completed"}"#),
            "{message}"
        );
    }
    assert_eq!(again.ids(), ears.ids()[1..]);
    assert_eq!(rig.status(EVENTS, "stranger").await, 403);
}
