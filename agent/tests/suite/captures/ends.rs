//! A capture appears, is carried to its end, or is ended before.

use serde_json::json;

use super::rig::{Rig, eventually};

#[tokio::test]
async fn a_capture_that_appears_is_taken_and_runs_to_its_end() {
    let rig = Rig::new(&json!({}));
    rig.containers.inside().assigned = vec!["GPU-1::2".to_owned(), "MIG-7".to_owned()];
    let life = rig.live().await;
    rig.ask("c", 1);
    rig.ends("c", "Succeeded").await;
    let capture = rig.server.get("captures", "team", "c").unwrap();
    let gpus = json!([{"uuid": "GPU-1", "share": "Shared"}, {"uuid": "MIG-7", "share": "MigDevice"}]);
    assert_eq!(capture["status"]["gpus"], gpus);
    let artifacts = capture["status"]["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 2, "{artifacts:?}");
    assert!(rig.manifest("c").exists());
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn a_capture_that_is_deleted_in_its_window_ends_at_once_and_leaves_nothing() {
    let rig = Rig::prepared(None);
    let life = rig.collecting("c", 300).await;
    assert!(rig.containers.inside().collecting.is_some());
    rig.server.delete("captures", "team", "c");
    rig.ends("c", "Discarded").await;
    {
        let inside = rig.containers.inside();
        assert!(inside.collecting.is_none() && inside.raw.is_empty(), "{inside:?}");
    }
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    assert!(!rig.manifest("c").exists());
    life.end().await;
}

#[tokio::test]
async fn a_capture_whose_object_vanishes_while_the_watch_is_away_ends_too() {
    let rig = Rig::prepared(None);
    let life = rig.collecting("c", 300).await;
    rig.server.end_watches();
    rig.server.edit("captures", "team", "c", |capture| {
        capture["metadata"]["finalizers"] = json!([]);
    });
    rig.server.delete("captures", "team", "c");
    eventually("the collection to be ended", || {
        rig.containers.inside().collecting.is_none().then_some(())
    })
    .await;
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn a_second_capture_of_a_container_is_refused_and_one_too_many_waits() {
    let rig = Rig::new(&json!({}));
    let life = rig.collecting("first", 300).await;
    rig.ask("second", 1);
    assert_eq!(rig.end_of("second").await.0, "ContainerBusy");
    rig.server.delete("captures", "team", "first");
    assert_eq!(rig.end_of("first").await.0, "Discarded");
    life.end().await;
}

#[tokio::test]
async fn a_capture_that_is_asked_for_while_another_is_thrown_away_takes_its_container_afterwards() {
    let rig = Rig::prepared(None);
    let life = rig.collecting("first", 300).await;
    rig.server.delete("captures", "team", "first");
    rig.ask("second", 1);
    let (reason, message) = rig.end_of("second").await;
    assert_ne!(reason, "ContainerBusy", "{message}");
    life.end().await;
}
