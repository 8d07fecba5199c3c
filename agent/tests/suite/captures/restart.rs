//! One agent ends in the middle of a capture, and the next goes on.

use std::sync::atomic::Ordering;

use flopwatch_test_harness::{Fault, Verb};
use serde_json::json;

use super::rig::{Rig, eventually};
use super::sample;
use super::sample_profiler::Sample;

/// A node whose agent stored a capture's artifacts, could not tell of it, and ended.
async fn untold() -> Rig {
    let rig = Rig::new(&json!({}));
    let life = rig.collecting("c", 4).await;
    rig.stored_but_untold("c", 403).await;
    life.end().await;
    rig.server.heal();
    rig
}

#[tokio::test]
async fn what_lies_in_the_store_is_told_by_the_next_agent_and_not_recorded_anew() {
    let rig = untold().await;
    let capture = rig.server.get("captures", "team", "c").unwrap();
    assert_eq!(
        capture["status"]["artifacts"],
        json!(null),
        "the first agent could not tell"
    );

    let life = rig.live().await;
    let message = rig.ends("c", "Succeeded").await;
    assert!(
        message.contains("with Metrics") && message.ends_with("; the node's agent restarted meanwhile"),
        "{message}"
    );
    let capture = rig.server.get("captures", "team", "c").unwrap();
    assert_eq!(capture["status"]["artifacts"].as_array().unwrap().len(), 2);
    assert!(capture["status"]["summary"]["windowNanoseconds"].as_i64().unwrap() >= 4_000_000_000);
    assert_eq!(rig.containers.inside().sampled, 1, "nothing was recorded anew");
    life.end().await;
}

#[tokio::test]
async fn what_lies_in_the_store_is_told_even_where_the_record_of_it_is_lost() {
    let rig = untold().await;
    std::fs::remove_file(rig.journal("c")).unwrap();
    let life = rig.live().await;
    rig.ends("c", "Succeeded").await;
    assert_eq!(rig.containers.inside().sampled, 1, "nothing was recorded anew");
    life.end().await;
}

#[tokio::test]
async fn an_open_window_is_kept_open_by_the_next_agent_and_its_raw_capture_fetched_once() {
    let rig = Rig::prepared(None);
    let life = rig.collecting("c", 4).await;
    life.end().await;
    assert!(rig.containers.inside().collecting.is_some(), "it is left as it is");
    let life = rig.live().await;
    // There is no importer here, so this is as far as it gets.
    rig.ends("c", "ImportFailed").await;
    {
        let inside = rig.containers.inside();
        assert_eq!((inside.started.len(), inside.copied), (1, 1), "{inside:?}");
        assert!(inside.raw.is_empty(), "{inside:?}");
    }
    life.end().await;
}

#[tokio::test]
async fn a_window_that_the_api_server_was_never_told_of_is_kept_open_by_the_next_agent() {
    let sample = Sample::default();
    let rig = sample::asked(&sample);
    rig.set("c", "durationSeconds", json!(4));
    rig.server
        .fail(usize::MAX, Verb::Patch, "captures/status", Fault::Code(403));
    let life = rig.live().await;
    let journal = rig.journal("c");
    eventually("the window to be written down", || {
        let text = std::fs::read_to_string(&journal).ok()?;
        text.contains("\"Window\"").then_some(())
    })
    .await;
    life.end().await;
    rig.server.heal();
    let life = rig.live().await;
    rig.ends("c", "Succeeded").await;
    assert_eq!(sample.starts.load(Ordering::SeqCst), 1, "it was not started anew");
    life.end().await;
}

#[tokio::test]
async fn a_capture_that_was_stopped_while_no_agent_was_there_is_discarded_by_the_next() {
    let rig = Rig::prepared(None);
    let life = rig.collecting("c", 300).await;
    life.end().await;
    rig.set("c", "stop", json!("Discard"));
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "Discarded");
    assert!(rig.containers.inside().collecting.is_none());
    life.end().await;
}
