//! The flight recorder in pods: what was before anybody asked.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::preparation::PREPARE_LABEL;
use flopwatch_system_tests::cluster::{Cluster, Group, run};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::pods::{prepared_for, workload};
use flopwatch_system_tests::recordings::{ends_with_its_programs_last_line, ranges, timeline};
use serde_json::json;

use super::first_session::succeeded;
use super::refusals::capture_failure;

#[tokio::test]
async fn what_a_container_did_before_the_kernel_ended_it_for_memory_is_kept_to_its_last_range() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-memory").await?;
    let words = ["--range-micros", "2000", "--seconds", "8", "--exhaust-memory"];
    let mut greedy = workload("trainer", false, &words);
    greedy["metadata"]["labels"][PREPARE_LABEL] = json!("recorder");
    namespace.create_pod(greedy).await?;
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 137, "{code}");
    ends_with_its_programs_last_line(&cluster, &namespace).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_pod_that_is_prepared_for_the_recorder_alone_keeps_its_command_and_needs_no_session() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-alone").await?;
    let made = namespace.create_pod(prepared_for("trainer", "recorder")).await?;
    let spec = made.spec.context("no spec")?;
    let command = spec.containers[0].command.clone().unwrap_or_default();
    ensure!(command == ["/usr/local/bin/flopwatch-sample-workload"], "{command:?}");
    namespace.running("trainer").await?;
    namespace.has_run("trainer", Duration::from_secs(3)).await?;
    let plugin = std::env::var("FLOPWATCH_PLUGIN").context("FLOPWATCH_PLUGIN: cargo xtask test names the program")?;
    let words = [
        "recent",
        "pod/trainer",
        "--seconds",
        "2",
        "--name",
        "asked",
        "-n",
        &namespace.name,
    ];
    let said = run(&plugin, &words).await?;
    ensure!(said.contains("asked"), "{said}");
    let capture = succeeded(&namespace, "asked").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let recorded = timeline(&cluster, &token, &capture, "timeline.h5").await?;
    let (first, last, count) = ranges(&recorded)?;
    ensure!(
        count > 300 && last - first <= 2_000_000_000,
        "{count}, {first} to {last}"
    );

    namespace.create_pod(workload("plain", false, &[])).await?;
    namespace.running("plain").await?;
    let spec = json!({
        "target": { "podName": "plain", "containerNames": ["main"] }, "durationSeconds": 2, "profiler": { "type": "Recorder" }
    });
    namespace.create_session("plain", spec).await?;
    let (reason, message) = capture_failure(&namespace, "plain").await?;
    ensure!(
        reason == "NotPrepared" && message.contains("flopwatch.dev/prepare: recorder"),
        "{reason}: {message}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn what_a_container_did_before_it_failed_is_kept_and_an_event_says_how_to_get_it() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-end").await?;
    let mut failing = workload(
        "trainer",
        false,
        &["--range-micros", "2000", "--seconds", "8", "--fail-code", "5"],
    );
    failing["metadata"]["labels"][PREPARE_LABEL] = json!("recorder");
    namespace.create_pod(failing).await?;
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 5, "{code}");
    let (_, note) = namespace.event("trainer", "RecordingKept").await?;
    ensure!(
        note.contains("ended with code 5") && note.contains("recent pod/trainer"),
        "{note}"
    );
    let spec = json!({
        "target": { "podName": "trainer", "containerNames": ["main"] }, "durationSeconds": 5, "profiler": { "type": "Recorder" }
    });
    namespace.create_session("after", spec).await?;
    let capture = succeeded(&namespace, "after").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let recorded = timeline(&cluster, &token, &capture, "timeline.h5").await?;
    let (first, last, count) = ranges(&recorded)?;
    ensure!(
        count > 500 && last - first > 3_000_000_000,
        "{count}, {first} to {last}"
    );
    namespace.delete().await
}
