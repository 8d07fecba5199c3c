//! The agent is killed in windows of the profilers that programs bring themselves, and while it
//! converts what they gave.

use anyhow::Result;
use flopwatch_api::artifact::TRACES;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::gate::Gate;
use flopwatch_system_tests::trainer::Trainer;
use nix::sys::signal::Signal;

use super::super::release::{self, Place};
use super::comes_to_its_end;

/// Kills the agent in a window of that profiler.
async fn is_killed_in_a_window(namespace: &TestNamespace, trainer: &Trainer, profiler: &str) -> Result<()> {
    let session = format!("window-{}", profiler.to_lowercase());
    let agent = trainer.agent().await?;
    trainer.open_window_of(namespace, &session, profiler, 8).await?;
    agent.process.signal(Signal::SIGKILL)?;
    let end = comes_to_its_end(namespace, &agent, &session).await?;
    trainer.has_no_mark_of(namespace, &end).await
}

#[tokio::test]
async fn an_agent_killed_in_windows_of_pytorch_and_jax_and_while_it_converts_leaves_nothing() -> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Faults, "kill-frameworks").await? else {
        return Ok(());
    };
    let shared = release::shared_by(&namespace, Place::Kept).await?;
    let trainer = Trainer::start_frameworks(&namespace, "trainer").await?;
    drop(shared);
    let (_, alone) = release::agent(&namespace, Place::Kept).await?;
    is_killed_in_a_window(&namespace, &trainer, "Kineto").await?;
    is_killed_in_a_window(&namespace, &trainer, "Jax").await?;

    let agent = trainer.agent().await?;
    let (_, spool) = trainer.open_window_of(&namespace, "converts", "Kineto", 1).await?;
    let own = agent.process;
    let mut gate = Gate::before(&spool, TRACES, move |opener| opener != own)?;
    gate.reached().await?;
    agent.process.signal(Signal::SIGKILL)?;
    drop(gate);
    let end = comes_to_its_end(&namespace, &agent, "converts").await?;
    let shared = alone.downgrade();
    trainer.has_no_mark_of(&namespace, &end).await?;
    trainer.succeeds(&namespace, "kineto", "Kineto").await?;
    trainer.succeeds(&namespace, "jax", "Jax").await?;
    drop(shared);
    namespace.delete().await
}
