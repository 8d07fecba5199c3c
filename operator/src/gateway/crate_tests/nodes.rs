//! What the gateway shows to the agents of several nodes, and what it takes from them.

use axum::Router;
use flopwatch_bucket_rig::{S3Server, SECRET_KEY};
use flopwatch_http::{Server, ServerLimits, Service};
use flopwatch_test_harness::{Fault, Verb};
use prometheus::IntCounter;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::rig::{NODE, OTHER_NODE, Rig, artifacts, finished};
use super::stored::bucket;

const SUMMARY: &str = "/api/profiling/session/0badcafe/artifacts/summary.json";

fn audience(node: &str) -> String {
    format!("flopwatch-agent/{node}")
}

#[tokio::test]
async fn each_nodes_agent_is_shown_a_token_of_its_own() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        assert_eq!(rig.status(SUMMARY, "reader").await, 200);
    }
    assert_eq!(rig.cluster.audiences(), [audience(NODE)], "it is asked for once");
}

#[tokio::test]
async fn who_asks_while_the_api_server_gives_no_token_is_told_to_ask_again() {
    let rig = Rig::new().await;
    let server = &rig.cluster.server;
    server.fail(1, Verb::Create, "serviceaccounts/token", Fault::Code(500));
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!(answer.told(), "503 ApiServer");
    assert_eq!(answer.header("retry-after"), "2", "{answer:?}");
    assert_eq!(rig.status(SUMMARY, "reader").await, 200);
}

#[tokio::test]
async fn a_gateway_that_may_have_no_token_says_who_mends_that_and_not_to_ask_again() {
    let rig = Rig::new().await;
    rig.cluster.take_token_right();
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!(answer.told(), "500 Gateway");
    assert_eq!(answer.header("retry-after"), "", "{answer:?}");
    let detail = answer.detail();
    assert!(
        detail.contains("serviceaccounts") && detail.contains("helm upgrade"),
        "{detail}"
    );
    rig.cluster.give_token_right();
    assert_eq!(rig.status(SUMMARY, "reader").await, 200);
}

#[test]
fn every_path_that_an_agent_answers_says_that_the_gateway_may_fail_itself() {
    let document: Value = serde_json::from_str(&crate::gateway::openapi().unwrap()).unwrap();
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|item| item.as_object().unwrap().values());
    let of_agents: Vec<&Value> = operations
        .map(|operation| &operation["responses"])
        .filter(|responses| responses["502"].is_object())
        .collect();
    assert!(!of_agents.is_empty());
    for responses in of_agents {
        assert!(responses["500"].is_object(), "{responses}");
    }
}

#[tokio::test]
async fn a_capture_that_names_another_nodes_agent_gets_nothing_there() {
    let server = S3Server::start().await;
    let rig = Rig::with_store(bucket(&server, SECRET_KEY)).await;
    let other = rig.other.as_ref().unwrap().address;
    rig.copied(Some(&format!("https://{other}/x")), None);
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!(answer.told(), "502 Agent");
    assert!(answer.detail().contains("401"), "{answer:?}");
    assert_eq!(rig.cluster.audiences(), [audience(NODE)]);
}

#[tokio::test]
async fn who_has_no_certificate_of_the_node_is_shown_nothing() {
    let rig = Rig::new().await;
    // The agent there has those of two other nodes.
    let status = finished(&rig.agent_url(), &artifacts());
    rig.capture_on("third-node", "train", "0badcafe", "train-a", &status);
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!(answer.told(), "503 AgentUnreachable");
    assert!(answer.detail().contains("certificate"), "{answer:?}");
}

#[tokio::test]
async fn the_agent_that_makes_a_form_of_a_copy_is_shown_a_token_of_its_own_node() {
    let server = S3Server::start().await;
    let bucket = bucket(&server, SECRET_KEY);
    let rig = Rig::with_store(bucket.clone()).await;
    rig.agent.copy_to(&bucket).await;
    rig.copied(None, Some("s3://x"));
    let form = "/api/profiling/session/0badcafe/artifacts/timeline.csv";
    assert_eq!(rig.status(form, "reader").await, 200);
    assert_eq!(rig.cluster.audiences(), [audience(OTHER_NODE)]);
}

/// What a node serves in its agent's place, with its agent's certificate, once somebody else is
/// root there.
struct Usurper;

/// Headers that no agent sends, and what the usurper says in them.
const FOREIGN: [(&str, &str); 6] = [
    ("set-cookie", "__Host-flopwatch=theirs; Path=/; Secure; HttpOnly"),
    ("clear-site-data", "\"cookies\""),
    ("refresh", "0; url=https://usurper.example/"),
    ("link", "<https://usurper.example/x.css>; rel=stylesheet"),
    ("access-control-allow-origin", "https://usurper.example"),
    ("x-anything", "else"),
];

impl Service for Usurper {
    fn router(&self) -> Router {
        let own = [("etag", "\"0a\""), ("content-type", "application/json")];
        Router::new().fallback(move || async move { (FOREIGN, own, "{}") })
    }

    fn is_open(&self) -> bool {
        false
    }

    fn refused_connections(&self) -> IntCounter {
        IntCounter::new("refused", "Connections that were refused.").unwrap()
    }
}

#[tokio::test]
async fn a_node_puts_no_cookie_into_a_browser_and_no_other_header_that_agents_do_not_send() {
    let rig = Rig::new().await;
    let any = ([127, 0, 0, 1], 0).into();
    let bound = Server::bind_tls(&Usurper, any, rig.agent.folder.path(), ServerLimits::default()).await;
    let (server, stop) = (bound.unwrap(), CancellationToken::new());
    rig.capture("train-a", &format!("https://{}/x", server.local_addr()), &artifacts());
    tokio::spawn(server.run(stop.clone()));
    let answer = rig.get(SUMMARY, "reader").await;
    stop.cancel();
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"{}"[..]), "{answer:?}");
    assert_eq!(
        (answer.header("etag"), answer.header("content-type")),
        ("\"0a\"", "application/json")
    );
    for (name, _) in FOREIGN {
        assert_eq!(answer.header(name), "", "{answer:?}");
    }
}
