//! Windows that cost their target too much.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::{Capture, Stage};
use flopwatch_api::overhead::{CaptureOverhead, OverheadReason, OverheadVerdict};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::node::{self, Process};
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::prepared_for;
use flopwatch_system_tests::sessions::capture_condition;
use flopwatch_system_tests::simulated_gpu::{Program, stepping};
use nix::sys::signal::Signal;
use tokio::time::sleep;

/// Time for which a program runs before it is profiled.
pub(crate) const BASELINE_DURATION: Duration = Duration::from_secs(20);

pub(crate) fn overhead(capture: &Capture) -> Result<&CaptureOverhead> {
    let overhead = capture.status.as_ref().and_then(|status| status.overhead.as_ref());
    overhead.context("the capture does not say what it cost")
}

#[tokio::test]
async fn a_window_in_which_the_program_slows_down_is_ended_within_seconds_and_published() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "over-budget").await? else {
        return Ok(());
    };
    let running = namespace.run(prepared_for("trainer", "recorder")).await?;
    is_ended_where_it_slows(&namespace, node::first_process(&running)?, "Metrics").await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_window_of_the_cuda_tracer_in_which_the_program_slows_down_is_ended_too() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "over-budget-cuda").await? else {
        return Ok(());
    };
    namespace.create_pod(stepping("trainer", "cuda")).await?;
    let program = Program::begun(&namespace, "trainer").await?;
    program.tell("pace 1000 600000")?;
    let mut all = node::of_pod(&program.pod)?.into_iter();
    let steps = all.find(|one| one.runs("flopwatch-sample-workload"));
    is_ended_where_it_slows(&namespace, steps.context("no sample workload")?, "Cuda").await?;
    ensure!(program.process.is_alive(), "the program ended");
    namespace.delete().await
}

/// A program of the pod `trainer` is slowed in a window, which ends for that and is published.
async fn is_ended_where_it_slows(namespace: &TestNamespace, program: Process, profiler: &str) -> Result<()> {
    namespace.has_run("trainer", BASELINE_DURATION).await?;
    let before = PodState::of(namespace, "trainer").await?;
    namespace.profile_main("costly", "trainer", 120, profiler).await?;
    namespace.in_stage("costly", Stage::Collecting).await?;
    // As if the profiler took two thirds of its time: it is stopped for that long, again and again.
    let harm = tokio::spawn(slowed(program));
    let begin = std::time::Instant::now();
    let ended = namespace.finished("costly").await;
    let took = begin.elapsed();
    harm.abort();
    program.signal(Signal::SIGCONT)?;
    ended?;
    let capture = namespace.only_capture("costly").await?;
    let end = capture_condition(&capture, "Succeeded").context("no end")?;
    ensure!(end.reason == "OverBudget", "{}: {}", end.reason, end.message);
    // Statuses are written every two seconds, and the summary is made after the window.
    ensure!(took < Duration::from_secs(30), "{took:?}");
    let told = overhead(&capture)?;
    ensure!(
        (told.verdict, told.reason) == (OverheadVerdict::Exceeded, OverheadReason::Stopped),
        "{told:?}"
    );
    let status = capture.status.as_ref().context("no status")?;
    let artifacts = &status.artifacts;
    ensure!(
        artifacts.iter().any(|artifact| artifact.name == "summary.json"),
        "{artifacts:?}"
    );
    let window = status.summary.as_ref().context("no summary")?.window_nanoseconds;
    ensure!(window < 20_000_000_000, "the window was open for {window} ns");
    before.goes_on(namespace).await
}

/// Stops a process for 200 ms of every 300 ms, for a minute at most.
async fn slowed(program: Process) -> Result<()> {
    for _ in 0..200 {
        program.signal(Signal::SIGSTOP)?;
        sleep(Duration::from_millis(200)).await;
        program.signal(Signal::SIGCONT)?;
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
