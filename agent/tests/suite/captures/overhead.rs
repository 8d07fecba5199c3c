//! What a capture costs its target and its node.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flopwatch_agent::node::heartbeats::{HEARTBEAT_INTERVAL, Heartbeats};
use flopwatch_agent::node::starts::Answer;
use flopwatch_agent::overhead::Opened;
use flopwatch_api::overhead::OverheadSpec;
use flopwatch_test_harness::workload;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::rig::{Rig, eventually};
use super::sample::{ask, asked, rig};
use super::sample_profiler::Sample;
use crate::paced::Paced;

/// Steps of 20 ms that a program takes before its window, so that its usual pace is known well on a
/// busy machine too.
const STEPS: u64 = 250;

/// Reads what recorders count, as the agent does, until it is aborted.
fn reading(heartbeats: &Heartbeats) -> JoinHandle<()> {
    let heartbeats = heartbeats.clone();
    tokio::spawn(async move {
        loop {
            heartbeats.read();
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
    })
}

/// A program in the container whose usual pace is known by now, in a folder of its own below one;
/// its recorder is read until what is beside it is aborted.
pub(crate) async fn known(rig: &Rig, folder: &Path) -> (Paced, JoinHandle<()>) {
    let program = Paced::start(Command::new(workload::program()), folder, "abc", 2);
    rig.heartbeats.begin("abc", program.whose(), Arc::clone(&program.ring));
    let reading = reading(&rig.heartbeats);
    eventually("enough readings", || {
        let steps = std::fs::metadata(&program.steps).map_or(0, |file| file.len() / 8);
        if steps < STEPS {
            return None;
        }
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let now_ns = u64::try_from(now_ns).unwrap();
        let opened = Opened {
            attach_ns: now_ns,
            open_ns: now_ns,
        };
        rig.heartbeats.watch("abc", &OverheadSpec::default(), opened).ok()
    })
    .await;
    (program, reading)
}

fn status(rig: &Rig) -> Value {
    rig.server.get("captures", "team", "c").unwrap()["status"].clone()
}

#[tokio::test]
async fn a_program_that_was_slowed_too_much_is_not_given_a_second_window_for_what_the_first_missed() {
    let sample = Sample::default();
    sample.misses.store(9, Ordering::SeqCst);
    let rig = rig(&sample);
    // Without the cost there would be a second window: the program was busy, and nothing of it was
    // recorded.
    rig.containers.inside().processor.1 = Duration::from_secs(1);
    let folder = tempfile::tempdir().unwrap();
    let (program, reading) = known(&rig, folder.path()).await;
    ask(&rig, "Kineto", "cpu_op");
    rig.set("c", "durationSeconds", json!(60));
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    let begin = Instant::now();
    program.slow_down(90_000);
    let (reason, message) = rig.end_of("c").await;
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "the window went on for {:?}: {}",
        begin.elapsed(),
        status(&rig)["overhead"]
    );
    assert_eq!(reason, "EventsMissed", "{message}");
    assert_eq!(sample.starts.load(Ordering::SeqCst), 1, "{message}");
    life.end().await;
    reading.abort();
}

#[tokio::test]
async fn a_program_that_is_held_does_not_wait_for_readings_of_a_counter_that_it_cannot_publish_yet() {
    let rig = Rig::prepared(None);
    rig.ask_for("c", 2, &json!({"type": "Nsys"}));
    rig.server.edit("captures", "team", "c", |capture| {
        capture["spec"]["start"] = json!("ContainerStart");
        capture["spec"]["overhead"] = json!({"signal": {"prometheus": {
            "port": 9400, "counter": "steps_total", "baselineSeconds": 60,
        }}});
    });
    let life = rig.live().await;
    let begin = Instant::now();
    let answer = life.node.starts.offer("uid-p", "abc").await;
    assert_eq!(answer, Answer::Started);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    life.end().await;
}

#[tokio::test]
async fn the_processor_time_of_the_profiler_and_of_the_agents_children_is_told_where_it_is_known() {
    for (uses, expected) in [(Some(250), json!(250)), (None, Value::Null)] {
        let sample = Sample {
            uses,
            ..Sample::default()
        };
        let rig = asked(&sample);
        let life = rig.live().await;
        rig.ends("c", "Succeeded").await;
        let told = status(&rig)["processorTime"].clone();
        assert_eq!(told["profilerMilliseconds"], expected, "{told}");
        let processing = told["processingMilliseconds"].as_i64().unwrap();
        assert!((1..60_000).contains(&processing), "{told}");
        assert_eq!(
            rig.summary("c")["processor_time"],
            json!({"profiler_ms": expected, "processing_ms": processing})
        );
        life.end().await;
    }
}
