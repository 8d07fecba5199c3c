//! How often a status is written, and what comes of it when the API server refuses it for a while,
//! or for good.

use flopwatch_test_harness::{Fault, Verb};
use serde_json::json;

use super::rig::{Rig, eventually};

/// A capture whose window closes while the API server answers every write with that code; what it
/// says when that is over.
async fn told_in_the_end(code: u16) -> String {
    let rig = Rig::new(&json!({}));
    let life = rig.collecting("c", 4).await;
    rig.stored_but_untold("c", code).await;
    let refused = rig.server.calls().len();
    eventually("a refusal after that", || {
        (rig.server.calls().len() > refused + 1).then_some(())
    })
    .await;
    assert!(!rig.spooled().is_empty(), "the journal stays until the end is told");
    rig.server.heal();
    let (reason, _) = rig.end_of("c").await;
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    assert_eq!(rig.containers.inside().sampled, 1, "nothing was recorded anew");
    life.end().await;
    reason
}

#[tokio::test]
async fn a_finished_capture_outlives_an_api_server_that_forbids_it_for_a_while() {
    assert_eq!(told_in_the_end(403).await, "Succeeded");
}

#[tokio::test]
async fn a_finished_capture_outlives_conflicts() {
    assert_eq!(told_in_the_end(409).await, "Succeeded");
}

#[tokio::test]
async fn a_finished_capture_outlives_an_api_server_that_fails() {
    assert_eq!(told_in_the_end(500).await, "Succeeded");
}

#[tokio::test]
async fn a_status_that_was_written_and_answered_with_a_conflict_is_written_again_and_stays() {
    let rig = Rig::new(&json!({}));
    let life = rig.live().await;
    rig.server.fail(3, Verb::Patch, "captures/status", Fault::DoneBut(409));
    rig.ask("c", 1);
    assert_eq!(rig.end_of("c").await.0, "Succeeded");
    life.end().await;
}

#[tokio::test]
async fn nothing_is_written_over_a_later_capture_of_the_same_name() {
    let rig = Rig::new(&json!({}));
    let life = rig.collecting("c", 4).await;
    rig.server.edit("captures", "team", "c", |capture| {
        capture["metadata"]["finalizers"] = json!([]);
    });
    rig.server.delete("captures", "team", "c");
    // On another node, so that this agent has no business with it, and of a kind of capture that it
    // does not know.
    rig.server.put(&json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
        "metadata": {"name": "c", "namespace": "team", "uid": "another"}, "spec": {"nodeName": "n2"}
    }));
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    let later = rig.server.get("captures", "team", "c").unwrap();
    assert!(later["status"].is_null(), "{later}");
    life.end().await;
}

#[tokio::test]
async fn a_capture_whose_status_is_written_once_a_minute_says_at_once_how_it_ended() {
    let rig = Rig::new(&json!({}));
    rig.ask("c", 3);
    rig.set("c", "statusIntervalSeconds", json!(60));
    let life = rig.live().await;
    let begun = std::time::Instant::now();
    assert_eq!(rig.end_of("c").await.0, "Succeeded");
    assert!(begun.elapsed().as_secs() < 50, "the end waits for nothing");
    let status = |call: &String| call.starts_with("patch") && call.ends_with("/captures/c/status");
    let written = rig.server.writes().iter().filter(|call| status(call)).count();
    assert_eq!(written, 2, "when it was taken, and its end");
    life.end().await;
}
