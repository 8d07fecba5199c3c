//! The flight recorder in pods: what was before anybody asked.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_system_tests::cluster::{Group, TestNamespace, run};
use flopwatch_system_tests::pods::{labelled, prepared_for, workload};
use flopwatch_system_tests::recordings::{ends_with_its_programs_last_line, ranges};

#[tokio::test]
async fn what_a_container_did_before_the_kernel_ended_it_for_memory_is_kept_to_its_last_range() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "recorder-memory").await? else {
        return Ok(());
    };
    let words = ["--range-micros", "2000", "--seconds", "8", "--exhaust-memory"];
    let greedy = labelled(workload("trainer", false, &words), "recorder");
    namespace.create_pod(greedy).await?;
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 137, "{code}");
    ends_with_its_programs_last_line(&namespace).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_pod_that_is_prepared_for_the_recorder_alone_keeps_its_command_and_needs_no_session() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "recorder-alone").await? else {
        return Ok(());
    };
    let made = namespace.create_pod(prepared_for("trainer", "recorder")).await?;
    let spec = made.spec.context("no spec")?;
    let command = spec.containers[0].command.clone().unwrap_or_default();
    ensure!(command == ["/usr/local/bin/flopwatch-sample-workload"], "{command:?}");
    namespace.running("trainer").await?;
    namespace.has_run("trainer", Duration::from_secs(3)).await?;
    let plugin = std::env::var("FLOPWATCH_PLUGIN").context("FLOPWATCH_PLUGIN: cargo xtask test names the program")?;
    let words = ["recent", "pod/trainer", "--seconds", "2", "--name", "asked"];
    let said = run(&plugin, &[&words[..], &["-n", &namespace.name]].concat()).await?;
    ensure!(said.contains("asked"), "{said}");
    let capture = namespace.succeeded("asked").await?;
    let recorded = namespace.timeline(&capture, TIMELINE).await?;
    let (first, last, count) = ranges(&recorded)?;
    let length = last - first;
    ensure!(count > 300 && length <= 2_000_000_000, "{count} in {length} ns");

    namespace.run(workload("plain", false, &[])).await?;
    namespace.profile_main("plain", "plain", 2, "Recorder").await?;
    namespace
        .fails_with("plain", "NotPrepared", &["flopwatch.dev/prepare: recorder"])
        .await?;
    namespace.delete().await
}

#[tokio::test]
async fn what_a_container_did_before_it_failed_is_kept_and_an_event_says_how_to_get_it() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "recorder-end").await? else {
        return Ok(());
    };
    let words = ["--range-micros", "2000", "--seconds", "8", "--fail-code", "5"];
    let failing = labelled(workload("trainer", false, &words), "recorder");
    namespace.create_pod(failing).await?;
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 5, "{code}");
    let (_, note) = namespace.event("trainer", "RecordingKept").await?;
    ensure!(
        note.contains("ended with code 5") && note.contains("recent pod/trainer"),
        "{note}"
    );
    namespace.profile_main("after", "trainer", 5, "Recorder").await?;
    let capture = namespace.succeeded("after").await?;
    let recorded = namespace.timeline(&capture, TIMELINE).await?;
    let (first, last, count) = ranges(&recorded)?;
    let length = last - first;
    ensure!(count > 500 && length > 3_000_000_000, "{count} in {length} ns");
    namespace.delete().await
}
