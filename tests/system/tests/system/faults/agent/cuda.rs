//! The agent is killed in a window of the CUDA tracer, which goes on without it, and stands still
//! while kernels are recorded all the time, which ends without it.

use anyhow::{Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::recordings::timeline;
use flopwatch_system_tests::simulated_gpu::{Program, records, told, traced};
use nix::sys::signal::Signal;

use super::super::release::{self, Place};
use super::comes_to_its_end;

#[tokio::test]
async fn a_window_goes_on_without_its_agent_and_the_next_one_has_what_was_launched_meanwhile() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Faults).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("kill-cuda").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let (node, alone) = release::agent(&namespace, Place::Other).await?;
    namespace.create_pod(on_node(told("trainer", "cuda"), &node)).await?;
    let mut program = Program::begun(&namespace, "trainer").await?;
    let agent = Running::agent_of(&namespace.client, &program.pod).await?;
    namespace.create_session("struck", traced("trainer", 280)).await?;
    namespace.in_stage("struck", Stage::Collecting).await?;
    let before = program.launched(1000).await?;
    agent.process.signal(Signal::SIGKILL)?;
    let meanwhile = program.recorded("launch 500").await?;
    ensure!(meanwhile >= 500, "{meanwhile} records without an agent");
    let end = comes_to_its_end(&namespace, &agent, "struck").await?;
    ensure!(end.succeeded, "{end:?}");
    let _shared = alone.downgrade();
    let capture = namespace.only_capture("struck").await?;
    let found = records(&timeline(&cluster, &token, &capture, TIMELINE).await?);
    let launched = before + meanwhile;
    ensure!(found == launched, "{found} in the timeline, {launched} by the program");
    program.goes_on_alone().await?;
    namespace.delete().await
}

#[tokio::test]
async fn what_is_recorded_all_the_time_ends_without_an_agent_and_begins_again_with_it() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Faults).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("stop-kernels").await?;
    let (node, alone) = release::agent(&namespace, Place::Other).await?;
    namespace
        .create_pod(on_node(told("trainer", "cuda.recorder-kernels"), &node))
        .await?;
    let mut program = Program::begun(&namespace, "trainer").await?;
    program.launched(100).await?;
    let agent = Running::agent_of(&namespace.client, &program.pod).await?;
    agent.process.signal(Signal::SIGSTOP)?;
    let ended = program.left_alone().await;
    agent.process.signal(Signal::SIGCONT)?;
    ended?;
    let _shared = alone.downgrade();
    program.launched(100).await?;
    namespace.delete().await
}
