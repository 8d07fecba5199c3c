//! What flight recorders hold of a program's pace before anybody asked.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::{PRELUDE, TIMELINE};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::prepared_for;
use flopwatch_system_tests::prometheus::Prometheus;
use flopwatch_system_tests::recordings::{heartbeat, ranges};
use flopwatch_system_tests::sessions::{spec, with};
use serde_json::json;

#[tokio::test]
async fn what_a_pod_did_before_anybody_asked_is_there_at_once_and_before_every_window() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Timed, "recorder").await? else {
        return Ok(());
    };
    let nodes = namespace.nodes().await?;
    let _alone = match nodes.len() {
        1 => Some(super::RECORDERS.write().await),
        _ => None,
    };
    let node = nodes.last().context("a cluster without nodes")?;
    let pod = on_node(prepared_for("trainer", "nsys.recorder"), node);
    namespace.create_pod(pod).await?;
    let state = namespace.launch_state("trainer").await?;
    ensure!(state["reason"] == "session", "{state}");
    let before = PodState::of(&namespace, "trainer").await?;
    namespace.has_run("trainer", Duration::from_secs(6)).await?;

    let reported = json!({ "overhead": { "action": "Report" } });
    let asked = |profiler: &str, seconds: u32| with(spec("trainer", seconds, profiler), reported.clone());
    namespace.create_session("recent", asked("Recorder", 5)).await?;
    let capture = namespace.succeeded("recent").await?;
    let recorded = namespace.timeline(&capture, TIMELINE).await?;
    ensure!(recorded.duration_ns == 5_000_000_000, "{} ns", recorded.duration_ns);
    let (first, last, count) = ranges(&recorded)?;
    let length = last - first;
    ensure!(length > 4_500_000_000 && count > 1_000, "{count} ranges in {length} ns");

    namespace.create_session("window", asked("Nsys", 2)).await?;
    let capture = namespace.succeeded("window").await?;
    let window = namespace.timeline(&capture, TIMELINE).await?;
    let prelude = namespace.timeline(&capture, PRELUDE).await?;
    let (seen, _, in_window) = ranges(&window)?;
    let (_, kept, in_prelude) = ranges(&prelude)?;
    ensure!(in_window > 500 && in_prelude > 1_000, "{in_window}, {in_prelude}");
    // The recorder was read as the window opened.
    let apart = kept.abs_diff(seen);
    ensure!(apart < 1_000_000_000, "{apart} ns between them");
    // Three ranges of 2 ms and more are a step.
    for (name, file, least) in [
        ("recorded", &recorded, 3),
        ("prelude", &prelude, 5),
        ("window", &window, 1),
    ] {
        let rates = heartbeat(file, "step")?;
        // A program has none before its first step, for which it may wait on a busy machine.
        let before = rates.iter().take_while(|rate| **rate <= 0.0).count();
        let rates = rates.get(before..).unwrap_or_default();
        ensure!(rates.len() >= least, "{name}: {rates:?}");
        ensure!(
            rates.iter().all(|rate| (1.0..170.0).contains(rate)),
            "{name}: {rates:?}"
        );
    }
    let prometheus = Prometheus::start(&namespace.client).await?;
    let whose = format!("{{namespace=\"{}\",pod=\"trainer\",container=\"main\"", namespace.name);
    let calls = prometheus
        .eventually(&format!("flopwatch_range_calls_total{whose},range=\"step\"}}"))
        .await?;
    let steps = calls.first().context("no series")?.value.1.parse::<f64>()?;
    ensure!(steps > 500.0, "{steps} steps in more than eight seconds");
    let left_out = prometheus
        .eventually(&format!("flopwatch_range_names_left_out{whose}}}"))
        .await?;
    ensure!(
        left_out.first().is_some_and(|one| one.value.1 == "2"),
        "of four names two have series: {left_out:?}"
    );
    before.goes_on(&namespace).await?;
    namespace.delete().await
}
