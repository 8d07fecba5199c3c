//! What the gateway shows to the agents of several nodes.

use flopwatch_bucket_rig::{S3Server, SECRET_KEY};

use super::rig::{NODE, OTHER_NODE, Rig, artifacts, finished};
use super::stored::bucket;

const SUMMARY: &str = "/api/profiling/session/0badcafe/artifacts/summary.json";

fn audience(node: &str) -> String {
    format!("flopwatch-agent/{node}")
}

#[tokio::test]
async fn h5_each_nodes_agent_is_shown_a_token_of_its_own() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        assert_eq!(rig.get(SUMMARY, "reader").await.status, 200);
    }
    assert_eq!(rig.cluster.audiences(), [audience(NODE)], "it is asked for once");
}

#[tokio::test]
async fn h5_a_capture_that_names_another_nodes_agent_gets_nothing_there() {
    let server = S3Server::start().await;
    let rig = Rig::with_store(bucket(&server, SECRET_KEY)).await;
    let other = rig.other.as_ref().unwrap().address;
    rig.copied(Some(&format!("https://{other}/x")), None);
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!((answer.status, answer.reason().as_str()), (502, "Agent"));
    assert!(answer.json()["detail"].as_str().unwrap().contains("401"), "{answer:?}");
    assert_eq!(rig.cluster.audiences(), [audience(NODE)]);
}

#[tokio::test]
async fn h5_who_has_no_certificate_of_the_node_is_shown_nothing() {
    let rig = Rig::new().await;
    // The agent there has those of two other nodes.
    let status = finished(&rig.agent_url(), &artifacts());
    rig.capture_on("third-node", "train", "0badcafe", "train-a", &status);
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!((answer.status, answer.reason().as_str()), (503, "AgentUnreachable"));
    assert!(
        answer.json()["detail"].as_str().unwrap().contains("certificate"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_agent_that_makes_a_form_of_a_copy_is_shown_a_token_of_its_own_node() {
    let server = S3Server::start().await;
    let bucket = bucket(&server, SECRET_KEY);
    let rig = Rig::with_store(bucket.clone()).await;
    rig.agent.copy_to(&bucket).await;
    rig.copied(None, Some("s3://x"));
    let form = "/api/profiling/session/0badcafe/artifacts/timeline.csv";
    assert_eq!(rig.get(form, "reader").await.status, 200);
    assert_eq!(rig.cluster.audiences(), [audience(OTHER_NODE)]);
}
