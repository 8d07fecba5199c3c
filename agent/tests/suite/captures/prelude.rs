//! What was before a window, beside the window's own timeline.

use std::time::Duration;

use flopwatch_agent::node::heartbeats::Heartbeats;
use serde_json::{Value, json};

use super::overhead::known;
use super::rig::{Rig, eventually};
use super::sample::{ask, rig};
use super::sample_profiler::Sample;

/// First bytes of a timeline file.
const HDF5_MAGIC: &[u8] = b"\x89HDF";

/// The stage that the journal of the capture has.
fn stage(rig: &Rig) -> Option<String> {
    let journal: Value = serde_json::from_slice(&std::fs::read(rig.journal("c")).ok()?).ok()?;
    journal["stage"].as_object()?.keys().next().cloned()
}

#[tokio::test]
async fn what_was_before_a_window_is_a_timeline_while_the_window_is_still_open() {
    let sample = Sample::default();
    let mut rig = rig(&sample);
    rig.heartbeats = Heartbeats::new(Duration::from_mins(1));
    let folder = tempfile::tempdir().unwrap();
    let (_program, reading) = known(&rig, folder.path()).await;
    ask(&rig, "Kineto", "cpu_op");
    rig.server.edit("captures", "team", "c", |capture| {
        capture["spec"]["durationSeconds"] = json!(20);
    });
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    let made = rig.spool().join(rig.uid("c")).join("before/work/prelude.h5");
    eventually("the prelude", || made.is_file().then_some(())).await;
    assert_eq!(stage(&rig).as_deref(), Some("Window"));
    let (reason, message) = rig.end_of("c").await;
    assert_eq!(reason, "Succeeded", "{message}");
    assert!(rig.published("c", "prelude.h5").starts_with(HDF5_MAGIC));
    life.end().await;
    reading.abort();
}

#[tokio::test]
async fn a_window_that_the_next_agent_goes_on_with_has_what_was_before_it() {
    let sample = Sample::default();
    let mut rig = rig(&sample);
    rig.heartbeats = Heartbeats::new(Duration::from_mins(1));
    let folder = tempfile::tempdir().unwrap();
    let (_program, reading) = known(&rig, folder.path()).await;
    ask(&rig, "Kineto", "cpu_op");
    rig.server.edit("captures", "team", "c", |capture| {
        capture["spec"]["durationSeconds"] = json!(6);
    });
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    life.end().await;
    let life = rig.live().await;
    let (reason, message) = rig.end_of("c").await;
    assert_eq!(reason, "Succeeded", "{message}");
    assert!(rig.published("c", "prelude.h5").starts_with(HDF5_MAGIC));
    life.end().await;
    reading.abort();
}
