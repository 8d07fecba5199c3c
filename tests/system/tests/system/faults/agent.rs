//! The agent is killed in each stage of a capture: that of the node that carries no other part, so
//! that tests which take the controller away run beside these.

mod cuda;
mod profilers;

use anyhow::{Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::node::Process;
use flopwatch_system_tests::parts::{Running, SPOOL};
use flopwatch_system_tests::trainer::{End, Trainer};
use nix::sys::signal::Signal;

use super::release::{Alone, Place, recovers, trainer_and_agent};

/// What an agent that was killed may make of the capture that it had: carry it on, or end it and
/// say so. Never more.
fn is_right(end: &End) -> Result<()> {
    let carried_on = end.succeeded && end.artifacts > 0;
    let given_up = !end.succeeded && end.reason == "AgentRestarted" && end.artifacts == 0;
    ensure!(carried_on || given_up, "{end:?}");
    Ok(())
}

/// The next agent ends the capture as it may and keeps nothing of it.
async fn comes_to_its_end(namespace: &TestNamespace, killed: &Running, session: &str) -> Result<End> {
    let agent = killed.restarted(&namespace.client).await?;
    namespace.stop(session, "Keep").await?;
    ends_as_it_may(namespace, &agent, session).await
}

/// The agent ends the capture that an earlier one had as it may, and keeps nothing of it.
async fn ends_as_it_may(namespace: &TestNamespace, agent: &Running, session: &str) -> Result<End> {
    let end = namespace.end_of(session).await?;
    is_right(&end)?;
    eventually("the agent to have no capture and no tool", || async {
        let spool: Vec<_> = std::fs::read_dir(agent.path(SPOOL))?.flatten().collect();
        let tools: Vec<_> = agent.children()?.into_iter().map(Process::words).collect();
        ensure!(spool.is_empty() && tools.is_empty(), "{spool:?} {tools:?}");
        Ok(Some(()))
    })
    .await?;
    Ok(end)
}

/// The agent comes back, ends the capture, and leaves nothing; the workload has seen none of it.
async fn converges(namespace: TestNamespace, trainer: &Trainer, killed: &Running, alone: Alone) -> Result<()> {
    let end = comes_to_its_end(&namespace, killed, "struck").await?;
    recovers(namespace, trainer, &end, alone).await
}

/// Kills the agent when somebody is about to open `file` of the capture's spool folder: a child of
/// the agent, or itself.
async fn is_killed_before(name: &str, file: &str, by_itself: bool) -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, name).await? else {
        return Ok(());
    };
    let (trainer, alone) = trainer_and_agent(&namespace, Place::Other).await?;
    let agent = trainer.agent().await?;
    let mut gate = trainer.gate_before(&namespace, "struck", file, by_itself).await?;
    let opener = gate.reached().await?;
    agent.process.signal(Signal::SIGKILL)?;
    drop(gate);
    // Its tools end with the agent.
    opener.ended().await?;
    agent.process.ended().await?;
    converges(namespace, &trainer, &agent, alone).await
}

#[tokio::test]
async fn an_agent_killed_while_it_attaches_leaves_nothing() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "kill-attaching").await? else {
        return Ok(());
    };
    let (trainer, alone) = trainer_and_agent(&namespace, Place::Other).await?;
    let agent = trainer.agent().await?;
    // Without the launcher's word the agent waits for it, and goes no further.
    let state = trainer.path("/flopwatch/run/state");
    let hidden = state.with_extension("hidden");
    std::fs::rename(&state, &hidden)?;
    trainer.profile(&namespace, "struck", 2).await?;
    namespace.in_stage("struck", Stage::Attaching).await?;
    agent.process.signal(Signal::SIGKILL)?;
    std::fs::rename(&hidden, &state)?;
    converges(namespace, &trainer, &agent, alone).await
}

#[tokio::test]
async fn an_agent_killed_in_the_window_leaves_nothing() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "kill-window").await? else {
        return Ok(());
    };
    let (trainer, alone) = trainer_and_agent(&namespace, Place::Other).await?;
    let agent = trainer.agent().await?;
    trainer.open_window(&namespace, "struck").await?;
    agent.process.signal(Signal::SIGKILL)?;
    converges(namespace, &trainer, &agent, alone).await
}

#[tokio::test]
async fn an_agent_killed_while_it_stops_the_collection_leaves_the_session_as_it_was() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "kill-stop").await? else {
        return Ok(());
    };
    let (trainer, alone) = trainer_and_agent(&namespace, Place::Other).await?;
    let agent = trainer.agent().await?;
    trainer.open_window(&namespace, "struck").await?;
    namespace.stop("struck", "Keep").await?;
    // It has nobody to tell when it goes on.
    let stop = trainer.hold_stop().await?;
    agent.process.signal(Signal::SIGKILL)?;
    drop(stop);
    converges(namespace, &trainer, &agent, alone).await
}

#[tokio::test]
async fn an_agent_killed_while_its_importer_works_takes_it_along() -> Result<()> {
    is_killed_before("kill-import", "capture.qdstrm", false).await
}

#[tokio::test]
async fn an_agent_killed_while_its_transform_works_takes_it_along() -> Result<()> {
    is_killed_before("kill-transform", "capture.nsys-rep", false).await
}

#[tokio::test]
async fn an_agent_killed_while_it_publishes_shows_all_or_nothing() -> Result<()> {
    is_killed_before("kill-publish", "timeline.h5", true).await
}
