//! The gateway as the viewer's pages use it.

use std::convert::Infallible;
use std::process::Command;
use std::time::Duration;

use flopwatch_test_harness::{BrowserTurn, Verb};
use serde_json::{Value, json};

use super::rig::{Answer, Rig, artifacts};

const SIGN_IN: &str = "/api/sign-in";
const JSON: (&str, &str) = ("Content-Type", "application/json");
/// What browsers say of requests of a page to its own server.
const OWN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");
/// What is done to sessions.
const WRITES: [Verb; 3] = [Verb::Create, Verb::Patch, Verb::Delete];

/// Signs in with `token`; the cookie that the browser sends from then on.
async fn signed_in(rig: &Rig, token: &str) -> String {
    let answer = sign_in(rig, token, &[JSON, OWN]).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json(), json!({"user": token}));
    assert_eq!(answer.header("cache-control"), "no-store");
    let cookie = answer.header("set-cookie");
    assert!(!cookie.contains(token), "{cookie}");
    for attribute in ["Path=/", "Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

async fn sign_in(rig: &Rig, token: &str, headers: &[(&str, &str)]) -> Answer {
    rig.ask("POST", SIGN_IN, None, headers, &json!({"token": token}).to_string())
        .await
}

#[tokio::test]
async fn a_browser_that_signed_in_reads_profiles_stops_and_deletes_as_its_user() {
    let rig = Rig::new().await;
    let cookie = signed_in(&rig, "admin").await;
    let own = [("Cookie", cookie.as_str()), OWN];
    let who = rig.ask("GET", SIGN_IN, None, &own, "").await;
    assert_eq!(who.json(), json!({"user": "admin"}));
    let session = rig.ask("GET", super::PATHS[0], None, &own, "").await;
    assert_eq!(session.json()["session_id"], "0badcafe");
    let timeline = [own.as_slice(), &[("Range", "bytes=0-9")]].concat();
    assert_eq!(rig.ask("GET", super::PATHS[3], None, &timeline, "").await.status, 206);
    let with_body = [own.as_slice(), &[JSON]].concat();
    let run = json!({"mode": "auto", "target": {"namespace": "team", "pod": "train"}}).to_string();
    let run = rig.ask("POST", "/api/profiling/run", None, &with_body, &run).await;
    assert_eq!(run.status, 202, "{run:?}");
    let stop = r#"{"stop": "keep"}"#;
    let stopped = rig.ask("POST", &stop_path(), None, &with_body, stop).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert_eq!(rig.ask("DELETE", super::PATHS[0], None, &own, "").await.status, 200);
    let users = WRITES.map(|verb| rig.cluster.done(verb)[0].user.clone());
    assert_eq!(users, ["admin"; 3].map(|user| Some(user.to_owned())));
}

#[tokio::test]
async fn a_page_of_another_site_can_have_nothing_done_in_the_name_of_who_signed_in() {
    let rig = Rig::new().await;
    let cookie = signed_in(&rig, "admin").await;
    let run = json!({"mode": "auto", "target": {"namespace": "team", "pod": "train"}}).to_string();
    let stop = stop_path();
    for site in [
        Some("cross-site"),
        Some("same-site"),
        Some("none"),
        Some("same-origin, x"),
        None,
    ] {
        let mut headers = vec![("Cookie", cookie.as_str()), JSON];
        headers.extend(site.map(|site| (OWN.0, site)));
        for (method, path, body) in [
            ("POST", "/api/profiling/run", run.as_str()),
            ("POST", stop.as_str(), r#"{"stop": "discard"}"#),
            ("DELETE", super::PATHS[0], ""),
            ("GET", super::PATHS[0], ""),
            ("GET", super::PATHS[3], ""),
            ("GET", "/api/profiling/sessions", ""),
            ("GET", "/api/profiling/targets?namespace=team", ""),
        ] {
            let answer = rig.ask(method, path, None, &headers, body).await;
            assert_eq!(answer.status, 401, "{method} {path} from {site:?}");
        }
        // Nor can it sign the browser in as somebody else, or out.
        let other = sign_in(&rig, "reader", &headers).await;
        assert_eq!(other.told(), "403 OtherSite", "{site:?}");
        let out = rig.ask("DELETE", SIGN_IN, None, &headers, "").await;
        assert_eq!((out.status, out.header("set-cookie")), (403, ""), "{site:?}");
        let who = rig.ask("GET", SIGN_IN, None, &headers, "").await;
        assert_eq!(who.json(), json!({"user": null}), "{site:?}");
    }
    let twice = [("Cookie", cookie.as_str()), OWN, (OWN.0, "cross-site")];
    assert_eq!(rig.ask("DELETE", super::PATHS[0], None, &twice, "").await.status, 401);
    assert_eq!(WRITES.map(|verb| rig.cluster.done(verb)), [vec![], vec![], vec![]]);
}

#[tokio::test]
async fn a_token_that_the_cluster_does_not_know_signs_nobody_in() {
    let rig = Rig::new().await;
    let for_agents = rig.cluster.token_of_gateway("flopwatch-agent/node");
    for (body, status) in [
        (json!({"token": "nobody"}), 401),
        (json!({"token": for_agents}), 401),
        (json!({"token": ""}), 400),
        (json!({"token": "two words"}), 400),
        (json!({"token": "line\r\nSet-Cookie: x"}), 400),
        (json!({"token": "x".repeat(2817)}), 400),
        (json!({"token": "admin", "user": "root"}), 400),
        (json!({}), 400),
    ] {
        let answer = rig.ask("POST", SIGN_IN, None, &[JSON, OWN], &body.to_string()).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (status, ""), "{body}");
    }
    let text = [("Content-Type", "text/plain"), OWN];
    assert_eq!(sign_in(&rig, "admin", &text).await.status, 415);
    // A cookie of another gateway, or of this one before it started anew.
    let other = signed_in(&Rig::new().await, "admin").await;
    let headers = [("Cookie", other.as_str()), OWN];
    assert_eq!(rig.ask("GET", super::PATHS[0], None, &headers, "").await.status, 401);
    let who = rig.ask("GET", SIGN_IN, None, &headers, "").await;
    assert_eq!(who.json(), json!({"user": null}));
}

#[tokio::test]
async fn signing_out_has_the_browser_forget() {
    let rig = Rig::new().await;
    let cookie = signed_in(&rig, "reader").await;
    let answer = rig.ask("DELETE", SIGN_IN, None, &[("Cookie", &cookie), OWN], "").await;
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .header("set-cookie")
            .starts_with("__Host-flopwatch=; Path=/; Max-Age=0;"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_header_counts_before_a_cookie() {
    let rig = Rig::new().await;
    let cookie = signed_in(&rig, "admin").await;
    let headers = [("Cookie", cookie.as_str()), OWN];
    let path = super::PATHS[0];
    assert_eq!(rig.get_with(path, "stranger", &headers).await.status, 403);
    assert_eq!(rig.get_with(path, "nobody", &headers).await.status, 401);
    let basic = [headers.as_slice(), &[("Authorization", "Basic eA==")]].concat();
    assert_eq!(rig.ask("GET", path, None, &basic, "").await.status, 401);
}

#[tokio::test]
async fn a_session_is_stopped_with_the_callers_own_token() {
    let rig = Rig::new().await;
    for (user, reason) in [("reader", "Refused"), ("stranger", "Forbidden")] {
        let refused = rig.post(&stop_path(), user, &json!({"stop": "keep"})).await;
        assert_eq!(refused.told(), format!("403 {reason}"), "{user}");
    }
    for body in [json!({}), json!({"stop": "now"}), json!({"stop": "keep", "name": "x"})] {
        assert_eq!(rig.post(&stop_path(), "admin", &body).await.status, 400, "{body}");
    }
    rig.session("team", "train", "0badcafe", 0, "Unknown");
    for (stop, mode) in [("keep", "Keep"), ("discard", "Discard")] {
        let stopped = rig.post(&stop_path(), "admin", &json!({"stop": stop})).await;
        assert_eq!(
            stopped.json(),
            json!({"session_id": "0badcafe", "status": "pending", "stop": stop})
        );
        let change = rig.cluster.done(Verb::Patch).pop().unwrap();
        assert_eq!(change.user.as_deref(), Some("admin"));
        assert_eq!(
            change.body,
            json!({"metadata": {"uid": "uid-0badcafe"}, "spec": {"stop": mode}})
        );
        let changed = rig.cluster.server.get("profilingsessions", "team", "train").unwrap();
        let spec = json!({"target": {"podName": "train"}, "profiler": {"type": "Nsys"}, "stop": mode});
        assert_eq!(changed["spec"], spec, "nothing else is changed");
    }
}

#[tokio::test]
async fn targets_are_the_pods_that_the_caller_may_list() {
    let rig = Rig::new().await;
    // One more than there are in an answer.
    rig.cluster.add_pod("zebra", "Running");
    rig.cluster.server.set_page(2);
    let path = "/api/profiling/targets?namespace=team";
    assert_eq!(
        rig.json(path, "admin").await,
        json!({
            "targets": [{"pod": "train", "node": "node", "containers": [
                {"name": "main", "gpu": true, "prepared": true}, {"name": "logs", "gpu": false, "prepared": false}
            ]}],
            "more": true
        })
    );
    let refused = rig.get(path, "reader").await;
    assert_eq!(refused.told(), "403 Refused");
    for query in ["", "?namespace=", "?namespace=../x", "?namespace=a&x=y"] {
        let answer = rig.get(&format!("/api/profiling/targets{query}"), "admin").await;
        assert_eq!(answer.status, 400, "{query}");
    }
}

#[tokio::test]
async fn the_viewer_is_at_the_root_with_a_policy_of_its_own() {
    let rig = Rig::new().await;
    let page = rig.ask("GET", "/", None, &[], "").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").to_owned();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    let answer = rig.get(super::PATHS[0], "admin").await;
    assert_eq!(answer.header("content-security-policy"), "default-src 'none'; sandbox");
    assert!(answer.header("vary").contains("Cookie"), "{answer:?}");
}

/// What the page says, as `web/tests/gateway.mjs` drives it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_signs_in_profiles_and_opens_a_timeline_in_a_browser() {
    let Some(node) = std::env::var_os("FLOPWATCH_NODE") else {
        println!("skipped: FLOPWATCH_NODE names no Node that would drive a browser");
        return;
    };
    let web = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/tests");
    let timeline = std::fs::read(format!("{web}/data/synthetic.h5")).unwrap();
    // Longer than the agent lets a request wait.
    let rig = Rig::with(&timeline, Some(Duration::from_secs(1))).await;
    rig.session("team", "infer", "00000abc", 1, "Unknown");
    let url = format!("https://localhost:{}/", rig.over_tls().await.port());
    let mut walk = Command::new(node);
    walk.arg(format!("{web}/gateway.mjs"))
        .arg(url)
        .arg(rig.agent.folder.path());
    let driven = tokio::task::spawn_blocking(move || {
        let _turn = BrowserTurn::take();
        walk.output().unwrap()
    });
    let output = tokio::select! {
        output = driven => output.unwrap(),
        never = infer_runs(&rig) => match never {},
    };
    let message = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}\n{complaints}");
    let [made, changed, deleted] = WRITES.map(|verb| rig.cluster.done(verb));
    let run = &made[0].body["spec"];
    assert_eq!(
        (made[0].user.as_deref(), &run["durationSeconds"]),
        (Some("admin"), &json!(7))
    );
    assert_eq!(run["target"]["podName"], "train");
    let stopped: Vec<&Value> = changed.iter().map(|change| &change.body["spec"]["stop"]).collect();
    assert_eq!(stopped, ["Keep"]);
    assert_eq!(deleted.len(), 1);
}

/// Has the capture of `team/infer` collect until somebody stops its session, and publish then.
async fn infer_runs(rig: &Rig) -> Infallible {
    let of_infer = |status: &Value| rig.capture_of("infer", "00000abc", "infer-a", status);
    for turn in 0.. {
        if !rig.cluster.done(Verb::Patch).is_empty() {
            break;
        }
        let live = json!({
            "categories": [{"category": "cuda_kernel", "events": 1_000 + turn}],
            "latestKernels": [{"name": "at::native::gemm", "totalNanoseconds": 2_500_000, "calls": 3}]
        });
        of_infer(&json!({"progress": {
            "stage": "Collecting", "percent": turn % 10 * 10, "message": "the window is open", "live": live
        }}));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    of_infer(&json!({"progress": {"stage": "Publishing", "percent": 95, "message": ""}}));
    tokio::time::sleep(Duration::from_millis(300)).await;
    of_infer(&json!({
        "url": format!("https://{}/v1/anything", rig.agent.address), "artifacts": artifacts(),
        "progress": {"stage": "Done", "percent": 100, "message": ""}
    }));
    rig.session("team", "infer", "00000abc", 1, "True");
    std::future::pending().await
}

fn stop_path() -> String {
    format!("{}/stop", super::PATHS[0])
}
