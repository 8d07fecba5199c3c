//! What follows a window: a stop that never comes back, and a window that its profiler made
//! shorter.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::Shortened;

use super::sample::{ask, rig};
use super::sample_profiler::Sample;

#[tokio::test]
async fn a_stop_that_never_comes_back_fails_its_capture_and_gives_the_turn_to_the_next() {
    let (release, stuck) = sync_channel::<()>(0);
    let sample = Sample {
        stop_timeout: Some(Duration::from_secs(5)),
        ..Sample::default()
    };
    *sample.stuck.lock().unwrap() = Some(stuck);
    let mut rig = rig(&sample);
    rig.limits.captures = 1;
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    let (reason, message) = rig.end_of("c").await;
    assert_eq!(reason, "CollectionFailed", "{message}");
    assert!(message.contains("within 5 s"), "{message}");
    rig.ask_for("next", 1, &serde_json::json!({"type": "Kineto"}));
    rig.server.edit("captures", "team", "next", |capture| {
        capture["spec"]["require"] = serde_json::json!(["cpu_op"]);
    });
    let (reason, message) = rig.end_of("next").await;
    assert_eq!(reason, "Succeeded", "{message}");
    // A runtime waits for its threads.
    drop(release);
    life.end().await;
}

#[tokio::test]
async fn a_window_that_its_profiler_made_shorter_ends_then_and_its_capture_says_why() {
    let sample = Sample {
        shortened: Some(Shortened {
            length: Duration::from_secs(1),
            why: "1 s of the 60 s that were asked for were recorded".to_owned(),
        }),
        ..Sample::default()
    };
    let rig = rig(&sample);
    ask(&rig, "Kineto", "cpu_op");
    rig.server.edit("captures", "team", "c", |capture| {
        capture["spec"]["durationSeconds"] = serde_json::json!(60);
    });
    let begin = Instant::now();
    let life = rig.live().await;
    let (reason, message) = rig.end_of("c").await;
    assert_eq!(reason, "Succeeded", "{message}");
    assert!(message.contains("; 1 s of the 60 s that were asked for"), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    life.end().await;
}

#[tokio::test]
async fn a_shortened_window_that_the_next_agent_goes_on_with_is_no_longer_than_it() {
    let sample = Sample {
        shortened: Some(Shortened {
            length: Duration::from_secs(3),
            why: "3 s of the 60 s that were asked for were recorded".to_owned(),
        }),
        ..Sample::default()
    };
    let rig = rig(&sample);
    ask(&rig, "Kineto", "cpu_op");
    rig.server.edit("captures", "team", "c", |capture| {
        capture["spec"]["durationSeconds"] = serde_json::json!(60);
    });
    let begin = Instant::now();
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    life.end().await;
    let life = rig.live().await;
    let (reason, message) = rig.end_of("c").await;
    assert_eq!(reason, "Succeeded", "{message}");
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    life.end().await;
}
