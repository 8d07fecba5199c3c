//! What one capture recorded is processed while the next one records in the same container.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flopwatch_attach::nsys::HostTools;
use flopwatch_test_harness::script;
use serde_json::json;
use tempfile::TempDir;

use super::rig::{Life, Rig, eventually};
use super::sample::{ask_named, rig};
use super::sample_profiler::Sample;

/// An importer that is held until it is let go.
struct HeldImporter {
    folder: TempDir,
}

impl HeldImporter {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let held = Self { folder };
        let text = format!("until [ -e {} ]; do sleep 0.05; done", held.at("go").display());
        script::write(&held.at("importer"), &text);
        held
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tools(&self) -> HostTools {
        HostTools {
            nsys: self.at("importer"),
            importer: self.at("importer"),
            libraries: Vec::new(),
        }
    }

    fn let_go(&self) {
        std::fs::write(self.at("go"), "").unwrap();
    }
}

/// A node whose importer is held, and which carries out so many captures at once.
fn held(at_once: usize) -> (Sample, Rig, HeldImporter) {
    let importer = HeldImporter::new();
    let sample = Sample {
        importer: Some(importer.tools()),
        ..Sample::default()
    };
    let mut rig = rig(&sample);
    rig.limits.captures = at_once;
    (sample, rig, importer)
}

/// A capture of the one container.
fn ask(rig: &Rig, name: &str, seconds: u32) {
    ask_named(rig, name, seconds, "Kineto", "cpu_op");
}

/// A life of the agent in which what the first capture recorded is held, and a second one of that
/// length records.
async fn both_begun(rig: &Rig, seconds: u32) -> Life {
    let life = rig.live().await;
    ask(rig, "first", 1);
    rig.in_stage("first", "Transforming").await;
    ask(rig, "second", seconds);
    rig.in_stage("second", "Collecting").await;
    life
}

fn has_ended(rig: &Rig, name: &str) -> bool {
    rig.condition(name, "Succeeded")
        .is_some_and(|(status, ..)| status != "Unknown")
}

/// Waits until a capture's progress says that.
async fn says(rig: &Rig, name: &str, words: &str) {
    eventually(words, || {
        let capture = rig.server.get("captures", "team", name)?;
        let message = capture["status"]["progress"]["message"].as_str()?.to_owned();
        message.contains(words).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_window_records_while_what_the_one_before_recorded_is_imported() {
    let (sample, rig, importer) = held(2);
    let life = both_begun(&rig, 6).await;
    assert!(sample.records.load(Ordering::SeqCst));
    rig.in_stage("second", "Transforming").await;
    assert!(!has_ended(&rig, "first"), "its importer is held");
    importer.let_go();
    for name in ["first", "second"] {
        rig.ends(name, "Succeeded").await;
        assert!(rig.manifest(name).exists());
    }
    assert_eq!(sample.starts.load(Ordering::SeqCst), 2);
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn a_capture_that_ends_while_it_is_imported_leaves_the_next_ones_window_alone() {
    let (sample, rig, importer) = held(2);
    let life = both_begun(&rig, 300).await;
    rig.server.delete("captures", "team", "first");
    assert_eq!(rig.end_of("first").await.0, "Discarded");
    assert!(sample.records.load(Ordering::SeqCst), "the second one's collection");
    importer.let_go();
    rig.set("second", "stop", json!("Keep"));
    rig.ends("second", "Succeeded").await;
    life.end().await;
}

#[tokio::test]
async fn as_many_wait_to_be_processed_as_there_is_room_for_and_a_window_more_waits_and_says_why() {
    let (sample, rig, importer) = held(1);
    let life = rig.live().await;
    ask(&rig, "first", 1);
    rig.in_stage("first", "Transforming").await;
    ask(&rig, "second", 1);
    says(&rig, "second", "waiting for a turn to be processed").await;
    ask(&rig, "third", 1);
    says(
        &rig,
        "third",
        "2 captures that were recorded on node n1 are processed or wait for it",
    )
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(sample.starts.load(Ordering::SeqCst), 2, "there is no room for a third");
    importer.let_go();
    for name in ["first", "second", "third"] {
        rig.ends(name, "Succeeded").await;
    }
    life.end().await;
}

#[tokio::test]
async fn the_next_agent_goes_on_with_the_window_and_with_what_waits_to_be_processed() {
    let (sample, rig, importer) = held(1);
    let life = both_begun(&rig, 4).await;
    let life = rig.after(life).await;
    rig.in_stage("second", "Transforming").await;
    // The container is left to others in this life too, though what both recorded waits.
    assert!(!has_ended(&rig, "first") && !has_ended(&rig, "second"));
    importer.let_go();
    for name in ["first", "second"] {
        let message = rig.ends(name, "Succeeded").await;
        assert!(message.ends_with("the node's agent restarted meanwhile"), "{message}");
    }
    assert_eq!(sample.starts.load(Ordering::SeqCst), 2, "nothing was recorded anew");
    life.end().await;
}

#[tokio::test]
async fn a_second_window_for_what_the_first_missed_takes_the_container_from_nobody() {
    let (sample, rig, importer) = held(2);
    sample.misses.store(1, Ordering::SeqCst);
    rig.containers.inside().processor.1 = Duration::from_secs(1);
    let life = both_begun(&rig, 300).await;
    importer.let_go();
    let message = rig.ends("first", "EventsMissed").await;
    assert!(
        message.ends_with("(no further window was recorded: capture team/second records in container main now)"),
        "{message}"
    );
    assert!(sample.records.load(Ordering::SeqCst), "the second one's collection");
    rig.server.delete("captures", "team", "second");
    assert_eq!(rig.end_of("second").await.0, "Discarded");
    life.end().await;
}
