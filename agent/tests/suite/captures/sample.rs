//! A profiler that the agent does not know is one file and one line in the registry: its captures
//! run to their end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flopwatch_agent::profilers::metrics::Metrics;
use flopwatch_agent::profilers::nsys::Nsys;
use flopwatch_agent::profilers::{Journaled, Registry};
use serde_json::json;

use super::rig::{Rig, eventually};
use super::sample_profiler::Sample;

/// A node with one profiler more.
pub(crate) fn rig(sample: &Sample) -> Rig {
    let mut rig = Rig::new(&json!({}));
    rig.profilers = Registry::new(vec![
        Arc::new(Journaled(Nsys)),
        Arc::new(Journaled(sample.clone())),
        Arc::new(Journaled(Metrics)),
    ]);
    rig
}

/// A capture with that profiler, which must hold events of a category.
pub(crate) fn ask(rig: &Rig, type_: &str, category: &str) {
    ask_named(rig, "c", 2, type_, category);
}

/// The same for a capture of another name and length.
pub(crate) fn ask_named(rig: &Rig, name: &str, seconds: u32, type_: &str, category: &str) {
    let mut capture = Rig::capture(name, seconds);
    capture["spec"]["profiler"] = json!({"type": type_});
    capture["spec"]["require"] = json!([category]);
    rig.server.put(&capture);
}

/// A node with one profiler more, and a capture with it that must hold an operator.
pub(crate) fn asked(sample: &Sample) -> Rig {
    let rig = rig(sample);
    ask(&rig, "Kineto", "cpu_op");
    rig
}

/// An agent that ends in the window of a capture of that profiler.
async fn left_collecting(rig: &Rig) {
    ask(rig, "Kineto", "cpu_op");
    rig.set("c", "durationSeconds", json!(4));
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    life.end().await;
}

#[tokio::test]
async fn a_capture_of_a_profiler_that_was_added_is_published_with_what_it_recorded() {
    let sample = Sample::default();
    let rig = asked(&sample);
    let life = rig.live().await;
    let message = rig.ends("c", "Succeeded").await;
    assert!(
        message.starts_with("1 events") && message.contains("with Kineto"),
        "{message}"
    );
    let capture = rig.server.get("captures", "team", "c").unwrap();
    assert_eq!(capture["status"]["profiler"], "Kineto");
    let held = &capture["status"]["summary"]["categories"];
    assert!(
        held.as_array()
            .unwrap()
            .contains(&json!({"category": "cpu_op", "events": 1})),
        "{held}"
    );
    assert_eq!(capture["status"]["artifacts"].as_array().unwrap().len(), 2);
    assert!(!sample.records.load(Ordering::SeqCst), "it was stopped");
    life.end().await;
}

#[tokio::test]
async fn a_capture_that_keeps_its_raw_files_alone_keeps_all_that_its_timeline_is_made_of() {
    let sample = Sample::default();
    let rig = asked(&sample);
    rig.set("c", "outputs", json!(["Raw"]));
    let life = rig.live().await;
    rig.ends("c", "Succeeded").await;
    let capture = rig.server.get("captures", "team", "c").unwrap();
    let artifacts = capture["status"]["artifacts"].as_array().unwrap();
    let found: Vec<_> = artifacts
        .iter()
        .map(|of| json!([of["name"], of["type"], of["sensitive"]]))
        .collect();
    let raw = |name: &str| json!([name, "Raw", true]);
    assert_eq!(found, [raw("capture.tar"), raw("samples.json")]);
    let manifest = std::fs::read(rig.manifest("c")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["captured"], json!(["cpu_op"]));
    life.end().await;
}

#[tokio::test]
async fn auto_takes_the_profiler_that_was_added_where_it_is_the_deepest_that_is_open() {
    let sample = Sample::default();
    let rig = rig(&sample);
    ask(&rig, "Auto", "nvtx_range");
    let life = rig.live().await;
    let message = rig.ends("c", "RequiredEventsMissing").await;
    assert!(
        message.contains("no events of nvtx_range; it holds 1 cpu_op"),
        "{message}"
    );
    life.end().await;
}

#[tokio::test]
async fn the_next_agent_asks_the_profiler_that_was_added_and_goes_on_with_its_collection() {
    let sample = Sample::default();
    let rig = rig(&sample);
    left_collecting(&rig).await;
    assert!(sample.records.load(Ordering::SeqCst), "it is left as it is");
    let life = rig.live().await;
    rig.ends("c", "Succeeded").await;
    assert_eq!(sample.starts.load(Ordering::SeqCst), 1, "it was not started anew");
    life.end().await;
}

#[tokio::test]
async fn a_collection_of_the_profiler_that_was_added_is_thrown_away_with_its_capture() {
    let sample = Sample::default();
    let rig = asked(&sample);
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    rig.server.delete("captures", "team", "c");
    assert_eq!(rig.end_of("c").await.0, "Discarded");
    assert!(!sample.records.load(Ordering::SeqCst));
    life.end().await;
}

#[tokio::test]
async fn a_file_that_is_no_trace_fails_the_transform_and_the_message_names_it() {
    let sample = Sample::default();
    sample.rubbish.store(9, Ordering::SeqCst);
    let rig = asked(&sample);
    let life = rig.live().await;
    let message = rig.ends("c", "TransformFailed").await;
    assert!(message.contains("trace.json"), "{message}");
    life.end().await;
}

/// A node whose profiler's files are no traces, and a capture that is to keep them.
fn keeps_rubbish() -> Rig {
    let sample = Sample::default();
    sample.rubbish.store(9, Ordering::SeqCst);
    let rig = asked(&sample);
    keep_raw(&rig);
    rig
}

fn keep_raw(rig: &Rig) {
    rig.set("c", "outputs", json!(["Timeline", "Summary", "Raw"]));
}

/// Names of what a capture published, by its status.
fn published(rig: &Rig) -> Vec<String> {
    let capture = rig.server.get("captures", "team", "c").unwrap();
    let artifacts = capture["status"]["artifacts"].as_array().cloned().unwrap_or_default();
    artifacts
        .iter()
        .map(|artifact| artifact["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn what_cannot_be_transformed_is_published_where_raw_was_asked_for_with_the_reason_beside_it() {
    let rig = keeps_rubbish();
    let life = rig.live().await;
    let message = rig.ends("c", "TransformFailed").await;
    assert_eq!(message.matches("trace.json: ").count(), 1, "{message}");
    assert!(
        message.ends_with("what was recorded is published (capture.tar, samples.json)"),
        "{message}"
    );
    assert_eq!(published(&rig), ["capture.tar", "samples.json"]);
    let condition = |type_| rig.condition("c", type_).unwrap().0;
    assert_eq!(
        [condition("Transformed"), condition("Published")],
        ["False".to_owned(), "True".to_owned()]
    );
    assert_eq!(rig.published("c", "capture.tar"), b"no trace");
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn what_cannot_be_transformed_leaves_nothing_where_raw_was_not_asked_for() {
    let rig = keeps_rubbish();
    rig.set("c", "outputs", json!(["Timeline", "Summary"]));
    let life = rig.live().await;
    let message = rig.ends("c", "TransformFailed").await;
    assert!(!message.contains("is published"), "{message}");
    assert_eq!(published(&rig), Vec::<String>::new());
    assert!(!rig.manifest("c").exists());
    life.end().await;
}

#[tokio::test]
async fn the_next_agent_tells_of_a_raw_capture_that_is_kept_and_does_not_take_it_for_a_success() {
    let rig = keeps_rubbish();
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    rig.stored_but_untold("c", 403).await;
    life.end().await;
    rig.server.heal();
    let life = rig.live().await;
    rig.ends("c", "TransformFailed").await;
    assert_eq!(published(&rig), ["capture.tar", "samples.json"]);
    life.end().await;
}

#[tokio::test]
async fn a_window_without_what_was_required_is_kept_raw_where_that_was_asked_for() {
    let sample = Sample::default();
    let rig = rig(&sample);
    ask(&rig, "Kineto", "nvtx_range");
    keep_raw(&rig);
    let life = rig.live().await;
    let message = rig.ends("c", "RequiredEventsMissing").await;
    assert_eq!(published(&rig), ["capture.tar", "samples.json"], "{message}");
    life.end().await;
}

#[tokio::test]
async fn a_profiler_whose_collection_begins_anew_is_told_of_that_of_the_earlier_agent() {
    let sample = Sample::default();
    let rig = rig(&sample);
    left_collecting(&rig).await;
    assert_eq!(sample.follows.load(Ordering::SeqCst), 0);
    sample.loses.store(true, Ordering::SeqCst);
    let life = rig.live().await;
    rig.ends("c", "Succeeded").await;
    let counts = (&sample.follows, &sample.starts);
    assert_eq!(
        (counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst)),
        (1, 2)
    );
    life.end().await;
}
