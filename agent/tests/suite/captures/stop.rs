//! What follows a window: a stop that never comes back, and a window that its profiler made
//! shorter.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::Shortened;

use super::sample::{ask, ask_named, asked, rig};
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
    let message = rig.ends("c", "CollectionFailed").await;
    assert!(message.contains("within 5 s"), "{message}");
    ask_named(&rig, "next", 1, "Kineto", "cpu_op");
    rig.ends("next", "Succeeded").await;
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
    let rig = asked(&sample);
    rig.set("c", "durationSeconds", serde_json::json!(60));
    let begin = Instant::now();
    let life = rig.live().await;
    let message = rig.ends("c", "Succeeded").await;
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
    let rig = asked(&sample);
    rig.set("c", "durationSeconds", serde_json::json!(60));
    let begin = Instant::now();
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    let life = rig.after(life).await;
    rig.ends("c", "Succeeded").await;
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    life.end().await;
}
