//! What a capture holds is checked against signs that its profiler had no part in; what was missed
//! gets one second try.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::rig::{Rig, eventually};
use super::sample::{ask, rig};
use super::sample_profiler::Sample;

/// A node whose container keeps a processor busy, and a profiler that misses its first collections.
fn missing(collections: u32) -> (Sample, Rig) {
    let sample = Sample::default();
    sample.misses.store(collections, Ordering::SeqCst);
    let rig = rig(&sample);
    rig.containers.inside().processor.1 = Duration::from_secs(1);
    (sample, rig)
}

fn starts(sample: &Sample) -> u32 {
    sample.starts.load(Ordering::SeqCst)
}

#[tokio::test]
async fn what_the_profiler_missed_is_recorded_in_a_second_window_and_the_capture_says_so() {
    let (sample, rig) = missing(1);
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    let message = rig.ends("c", "Succeeded").await;
    assert!(
        message.ends_with("; of a second window, after EventsMissed"),
        "{message}"
    );
    assert_eq!(starts(&sample), 2);
    let capture = rig.server.get("captures", "team", "c").unwrap();
    assert_eq!(capture["status"]["artifacts"].as_array().unwrap().len(), 2);
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn what_two_windows_missed_fails_with_what_says_that_it_happened() {
    let (sample, rig) = missing(9);
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    let message = rig.ends("c", "EventsMissed").await;
    assert!(
        message.contains("no events of cpu_op; it holds 1 annotation"),
        "{message}"
    );
    assert!(message.contains("1000 ms of processor time"), "{message}");
    assert!(
        message.ends_with("(a second window was recorded, after EventsMissed of the first)"),
        "{message}"
    );
    assert_eq!(starts(&sample), 2);
    assert!(!rig.manifest("c").exists());
    life.end().await;
}

#[tokio::test]
async fn an_idle_program_is_not_recorded_a_second_time() {
    let (sample, rig) = missing(9);
    rig.containers.inside().processor.1 = Duration::ZERO;
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "RequiredEventsMissing");
    assert_eq!(starts(&sample), 1);
    life.end().await;
}

#[tokio::test]
async fn kernels_that_the_driver_saw_were_missed_where_the_program_uses_cuda() {
    for (cuda, expected) in [(true, ("EventsMissed", 2)), (false, ("RequiredEventsMissing", 1))] {
        let (sample, rig) = missing(0);
        {
            let mut inside = rig.containers.inside();
            (inside.cuda, inside.gpu) = (cuda, 0.4);
        }
        ask(&rig, "Kineto", "cuda_kernel");
        let life = rig.live().await;
        let (reason, message) = rig.end_of("c").await;
        assert_eq!((reason.as_str(), starts(&sample)), expected, "{message}");
        life.end().await;
    }
}

#[tokio::test]
async fn a_file_that_ends_early_is_recorded_anew_once() {
    for (cuts, expected) in [(1, "Succeeded"), (2, "CaptureTruncated")] {
        let (sample, rig) = missing(0);
        sample.cuts.store(cuts, Ordering::SeqCst);
        ask(&rig, "Kineto", "cpu_op");
        let life = rig.live().await;
        let (reason, message) = rig.end_of("c").await;
        assert_eq!((reason.as_str(), starts(&sample)), (expected, 2), "{message}");
        life.end().await;
    }
}

#[tokio::test]
async fn an_agent_that_finds_a_second_window_open_gives_no_third_one() {
    let (sample, rig) = missing(9);
    ask(&rig, "Kineto", "cpu_op");
    rig.set("c", "durationSeconds", json!(3));
    let life = rig.live().await;
    eventually("the second window", || (starts(&sample) == 2).then_some(())).await;
    rig.in_stage("c", "Collecting").await;
    let life = rig.after(life).await;
    rig.ends("c", "EventsMissed").await;
    assert_eq!(starts(&sample), 2);
    life.end().await;
}

#[tokio::test]
async fn a_capture_that_is_deleted_in_its_second_window_leaves_nothing() {
    let (sample, rig) = missing(9);
    ask(&rig, "Kineto", "cpu_op");
    rig.set("c", "durationSeconds", json!(3));
    let life = rig.live().await;
    eventually("the second window", || (starts(&sample) == 2).then_some(())).await;
    rig.server.delete("captures", "team", "c");
    assert_eq!(rig.end_of("c").await.0, "Discarded");
    assert!(!sample.records.load(Ordering::SeqCst));
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}
