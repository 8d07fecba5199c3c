//! Captures of ranges of the program, and options that a container was not started with.

use std::time::Instant;

use serde_json::{Value, json};

use super::rig::Rig;

const NVTX: &str = "flopwatch.dev/nsys-nvtx-capture";

/// A prepared container that can capture the range `step`.
fn prepared() -> Rig {
    let rig = Rig::new(&json!({"flopwatch.dev/prepared": "main", NVTX: "step"}));
    rig.containers.inside().nsys = true;
    rig
}

fn ranges(trigger: &str, count: u32) -> Value {
    json!({"type": "Nsys", "nsys": {"captureRange": {"trigger": trigger, "count": count}}})
}

#[tokio::test]
async fn a_window_ends_with_the_last_range_and_the_raw_captures_of_all_are_taken() {
    let rig = prepared();
    let life = rig.live().await;
    rig.ask_for("c", 300, &ranges("Nvtx", 2));
    rig.in_stage("c", "Collecting").await;
    let begin = Instant::now();
    {
        let mut inside = rig.containers.inside();
        assert_eq!(inside.collection.range.map(|range| range.count), Some(2));
        inside.end_ranges(2);
    }
    // The node of this test has no Nsight Systems to import them with.
    rig.ends("c", "ImportFailed").await;
    assert!(begin.elapsed().as_secs() < 60, "the window is not waited out");
    assert_eq!(rig.containers.inside().copied, 2);
    assert!(rig.containers.inside().raw.is_empty(), "nothing stays in the container");
    life.end().await;
}

#[tokio::test]
async fn ranges_that_were_over_while_no_agent_was_there_are_taken_by_the_next() {
    let rig = prepared();
    let life = rig.live().await;
    rig.ask_for("c", 300, &ranges("Nvtx", 2));
    rig.in_stage("c", "Collecting").await;
    life.end().await;
    rig.containers.inside().end_ranges(2);
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "ImportFailed");
    assert_eq!(rig.containers.inside().copied, 2);
    life.end().await;
}

#[tokio::test]
async fn a_window_without_the_range_fails_with_what_was_waited_for() {
    let rig = prepared();
    let life = rig.live().await;
    for (name, trigger, waited) in [
        ("n", "Nvtx", "NVTX range \"step\""),
        ("c", "CudaProfilerApi", "cudaProfilerStart"),
    ] {
        rig.ask_for(name, 1, &ranges(trigger, 1));
        let message = rig.ends(name, "RangeMissed").await;
        assert!(message.contains(waited), "{message}");
    }
    life.end().await;
}

#[tokio::test]
async fn an_option_that_the_container_was_not_started_with_is_refused_before_anything_is_collected() {
    let rig = prepared();
    let life = rig.live().await;
    for (name, nsys, annotation) in [
        ("a", json!({"cudaGraphTrace": "Node"}), "nsys-cuda-graph-trace: node"),
        (
            "b",
            json!({"captureRange": {"trigger": "Nvtx", "name": "epoch"}}),
            "nsys-nvtx-capture: epoch",
        ),
    ] {
        rig.ask_for(name, 300, &json!({"type": "Auto", "nsys": nsys}));
        let message = rig.ends(name, "OptionNotPrepared").await;
        assert!(message.contains(annotation), "{message}");
    }
    assert!(rig.containers.inside().started.is_empty());
    life.end().await;
}
