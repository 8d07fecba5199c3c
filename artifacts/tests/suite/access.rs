//! Who may read what, over real HTTP, against an API server that answers reviews.

use std::time::{Duration, Instant};

use flopwatch_api::agent_audience;
use flopwatch_api::artifact::artifacts_path;

use crate::rig::{Answer, Captures, Listening, api_server, known, path, raw, readers, reviews, sessions};
use flopwatch_http::ReviewerOptions;
use flopwatch_test_harness::{API_SERVER_AUDIENCE, ApiServer, Fault, Verb};

/// A service that asks so of an API server that knows everybody.
async fn reviewed(options: ReviewerOptions) -> (Captures, ApiServer, Listening) {
    let (captures, api) = (Captures::new().await, readers());
    let listening = Listening::plain(&captures.reviewed(&api, options));
    (captures, api, listening)
}

/// A token of a user for that audience, which says so itself as a service account's does.
fn token(api: &ApiServer, user: &str, audience: &str) -> String {
    api.issue_token(known(user).for_audiences(&[audience]))
}

fn names(list: &Answer) -> Vec<String> {
    let list = list.json();
    let artifacts = list["artifacts"].as_array().unwrap().iter();
    artifacts.map(|a| a["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_right_to_a_session_is_the_right_to_its_artifacts() {
    let (_captures, _api, listening) = reviewed(ReviewerOptions::default()).await;
    let list = artifacts_path("team", "train");
    let absent = artifacts_path("team", "absent");
    let elsewhere = artifacts_path("other", "train");
    let timeline = format!("{list}/timeline.h5");
    let missing = format!("{list}/missing.bin");
    let raw = format!("{list}/raw.nsys-rep");
    let matrix: [(&str, &str, u16); 24] = [
        ("nobody", &list, 401),
        ("nobody", &absent, 401),
        ("stranger", &list, 403),
        ("stranger", &timeline, 403),
        ("stranger", &missing, 403),
        ("stranger", &raw, 403),
        ("stranger", &absent, 403),
        ("stranger", &elsewhere, 403),
        ("limited", &list, 200),
        ("limited", &timeline, 200),
        ("limited", &missing, 404),
        ("limited", &raw, 403),
        ("limited", &absent, 403),
        ("limited", &elsewhere, 403),
        ("reader", &list, 200),
        ("reader", &timeline, 200),
        ("reader", &missing, 404),
        ("reader", &raw, 403),
        ("reader", &absent, 404),
        ("reader", &elsewhere, 403),
        ("rawreader", &list, 200),
        ("rawreader", &timeline, 200),
        ("rawreader", &raw, 200),
        ("rawreader", &absent, 404),
    ];
    for (user, path, status) in matrix {
        let answer = listening.get_as(user, path).await;
        assert_eq!(answer.status, status, "{user} {path}: {}", answer.text());
    }
    assert_eq!(
        names(&listening.get_as("reader", &list).await),
        ["timeline.h5", "summary.json"]
    );
    assert_eq!(
        names(&listening.get_as("rawreader", &list).await),
        ["timeline.h5", "summary.json", "raw.nsys-rep"]
    );
    assert_eq!(listening.get_as("reader", &raw).await.reason(), "RawForbidden");
    assert_eq!(listening.get_as("rawreader", &raw).await.body, b"secret");
}

#[tokio::test]
async fn a_refusal_says_nothing_about_what_exists() {
    let (_captures, _api, listening) = reviewed(ReviewerOptions::default()).await;
    let comparable = |mut answer: Answer| {
        answer.headers.retain(|(name, _)| name != "date");
        answer
    };
    for user in ["stranger", "nobody"] {
        let there = comparable(listening.get_as(user, &artifacts_path("team", "train")).await);
        let not_there = comparable(listening.get_as(user, &artifacts_path("team", "absent")).await);
        assert_eq!(there, not_there);
    }
}

#[tokio::test]
async fn a_request_without_a_good_token_is_told_how_to_send_one() {
    let (_captures, _api, listening) = reviewed(ReviewerOptions::default()).await;
    let path = artifacts_path("team", "train");
    let bad: [&[(&str, &str)]; 5] = [
        &[],
        &[("Authorization", "Bearer wrong")],
        &[("Authorization", "Basic cmVhZGVyOng=")],
        &[("Authorization", "Bearer ")],
        &[("Authorization", "Bearer reader"), ("Authorization", "Bearer reader")],
    ];
    for headers in bad {
        let answer = listening.get(&path, headers).await;
        assert_eq!(answer.told(), "401 Unauthenticated", "{headers:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"flopwatch\"");
    }
    assert_eq!(listening.get("/healthz", &[]).await.status, 200);
}

#[tokio::test]
async fn a_permission_is_remembered_for_its_lifetime_and_a_refusal_for_a_moment() {
    let options = ReviewerOptions {
        lifetime: Duration::from_secs(3),
        ..ReviewerOptions::default()
    };
    let (_captures, api, listening) = reviewed(options).await;
    let path = path("timeline.h5");
    for _ in 0..3 {
        assert_eq!(listening.get_as("reader", &path).await.status, 200);
    }
    let asked = ["tokenreviews", "subjectaccessreviews"].map(|resource| reviews(&api, resource));
    assert_eq!(asked, [1, 1]);
    // Taken away: gone once the lifetime is over.
    api.disallow("reader", &sessions());
    let end = Instant::now() + Duration::from_secs(10);
    while listening.get_as("reader", &path).await.status != 403 {
        assert!(Instant::now() < end, "still remembered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Given back: there a moment later.
    api.allow("reader", sessions());
    let given = Instant::now();
    while listening.get_as("reader", &path).await.status != 200 {
        assert!(given.elapsed() < Duration::from_secs(10), "still refused");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_right_that_is_missing_costs_one_review_and_then_none_for_a_moment() {
    let options = ReviewerOptions {
        denial_lifetime: Duration::from_mins(1),
        ..ReviewerOptions::default()
    };
    let (_captures, api, listening) = reviewed(options).await;
    let path = path("timeline.h5");
    for _ in 0..5 {
        assert_eq!(listening.get_as("stranger", &path).await.status, 403);
    }
    let asked = ["tokenreviews", "subjectaccessreviews"].map(|resource| reviews(&api, resource));
    assert_eq!(asked, [1, 1]);
    // It is of that token and that question alone.
    assert_eq!(listening.get_as("limited", &path).await.status, 200);
    let elsewhere = artifacts_path("other", "train");
    assert_eq!(listening.get_as("stranger", &elsewhere).await.status, 403);
    assert_eq!(reviews(&api, "subjectaccessreviews"), 3);
}

#[tokio::test]
async fn an_api_server_that_fails_or_hangs_lets_nobody_in() {
    let options = ReviewerOptions {
        deadline: Duration::from_millis(300),
        ..ReviewerOptions::default()
    };
    let (captures, api, listening) = reviewed(options).await;
    let path = artifacts_path("team", "train");
    api.fail(usize::MAX, Verb::Create, "tokenreviews", Fault::Code(500));
    let answer = listening.get_as("reader", &path).await;
    assert_eq!(answer.told(), "503 Reviews");
    assert_eq!(answer.header("retry-after"), "2");
    api.heal();
    api.fail(usize::MAX, Verb::Create, "tokenreviews", Fault::Hang);
    let before = Instant::now();
    assert_eq!(listening.get_as("reader", &path).await.status, 503);
    assert!(before.elapsed() < Duration::from_secs(5));
    api.heal();
    assert_eq!(listening.get_as("reader", &path).await.status, 200);
    assert_eq!(
        captures.metric(r#"flopwatch_artifact_access_reviews_total{result="error",review="token"}"#),
        2
    );
}

#[tokio::test]
async fn a_token_for_another_audience_is_no_token() {
    let options = ReviewerOptions {
        audiences: vec!["flopwatch".into()],
        refusal_lifetime: Duration::ZERO,
        ..ReviewerOptions::default()
    };
    let (_captures, api, listening) = reviewed(options).await;
    let path = artifacts_path("team", "train");
    for (audience, status) in [(API_SERVER_AUDIENCE, 401), ("elsewhere", 401), ("flopwatch", 200)] {
        api.add_token("reader", known("reader").for_audiences(&[audience]));
        assert_eq!(listening.get_as("reader", &path).await.status, status, "{audience}");
    }
}

#[tokio::test]
async fn a_token_for_this_service_is_known_beside_those_of_the_api_server() {
    let captures = Captures::new().await;
    let api = api_server(&["reader"], &[("reader", sessions().named("session"))]);
    let options = ReviewerOptions {
        service_audience: Some(agent_audience("a")),
        lifetime: Duration::ZERO,
        ..ReviewerOptions::default()
    };
    let listening = Listening::plain(&captures.reviewed(&api, options));
    let path = path("timeline.h5");
    for token in [
        token(&api, "reader", &agent_audience("a")),
        token(&api, "reader", API_SERVER_AUDIENCE),
        "reader".to_owned(),
    ] {
        let before = reviews(&api, "tokenreviews");
        assert_eq!(listening.get_as(&token, &path).await.status, 200, "{token}");
        assert_eq!(reviews(&api, "tokenreviews") - before, 1, "{token}");
    }
}

#[tokio::test]
async fn a_token_of_the_gateway_for_one_node_is_refused_by_another() {
    let captures = Captures::new().await;
    let api = api_server(&["gateway"], &[("gateway", sessions()), ("gateway", raw())]);
    let agent_of = |node: &str| {
        let options = ReviewerOptions {
            service_audience: Some(agent_audience(node)),
            ..ReviewerOptions::default()
        };
        Listening::plain(&captures.reviewed(&api, options))
    };
    let (first, second) = (agent_of("first"), agent_of("second"));
    let raw = path("raw.nsys-rep");
    let shown = token(&api, "gateway", &agent_audience("first"));
    assert_eq!(first.get_as(&shown, &raw).await.status, 200);
    let replayed = second.get_as(&shown, &raw).await;
    assert_eq!(replayed.told(), "401 Unauthenticated");
    // One for every agent, as there was before, is good for none.
    let for_all = token(&api, "gateway", "flopwatch-agent");
    for agent in [&first, &second] {
        assert_eq!(agent.get_as(&for_all, &raw).await.status, 401);
    }
}

#[tokio::test]
async fn a_token_that_is_none_costs_one_review_and_then_none_for_a_while() {
    let options = ReviewerOptions {
        service_audience: Some(agent_audience("a")),
        refusal_lifetime: Duration::from_secs(2),
        ..ReviewerOptions::default()
    };
    let (_captures, api, listening) = reviewed(options).await;
    let path = artifacts_path("team", "train");
    let reviews = || reviews(&api, "tokenreviews");
    let of_nobody = token(&api, "nobody", &agent_audience("a"));
    api.revoke_token(&of_nobody);
    let elsewhere = token(&api, "reader", "elsewhere/else");
    for junk in ["junk".to_owned(), of_nobody, elsewhere] {
        let before = reviews();
        for _ in 0..5 {
            assert_eq!(listening.get_as(&junk, &path).await.status, 401, "{junk}");
        }
        assert_eq!(reviews() - before, 1, "{junk}");
    }
    // What no cluster gives out is not asked about at all.
    let before = reviews();
    for junk in ["two words".to_owned(), "x".repeat(20_000)] {
        assert_eq!(listening.get_as(&junk, &path).await.status, 401, "{junk:.20}");
    }
    assert_eq!(reviews(), before);
    // A user who comes to be known is let in once that is forgotten.
    api.add_token("junk", known("junk"));
    api.allow("junk", sessions());
    let end = Instant::now() + Duration::from_secs(10);
    while listening.get_as("junk", &path).await.status != 200 {
        assert!(Instant::now() < end, "still refused");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
