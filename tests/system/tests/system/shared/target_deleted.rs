//! The target pod is deleted in each stage of its capture.

use anyhow::{Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::node;
use flopwatch_system_tests::parts::SPOOL;
use flopwatch_system_tests::trainer::{End, Trainer};
use k8s_openapi::api::core::v1::Pod;

/// The pod goes as if nobody had profiled it, and neither its node's agent nor its sessions keep
/// anything.
pub(super) async fn nothing_stays(namespace: TestNamespace, trainer: &Trainer, end: &End) -> Result<()> {
    let agent = trainer.agent().await?;
    eventually("the pod and everything of its capture to be gone", || async {
        let pod = namespace.api::<Pod>().get_opt(&trainer.name).await?;
        ensure!(pod.is_none(), "the pod stays");
        let processes = node::of_pod(&trainer.pod)?;
        ensure!(processes.is_empty(), "{processes:?} stay");
        let sessions = node::sessions_of(&trainer.pod)?;
        ensure!(sessions.is_empty(), "{sessions:?} stay");
        let spool = agent.path(SPOOL).join(&end.uid);
        ensure!(!spool.exists(), "{} stays", spool.display());
        Ok(Some(()))
    })
    .await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_target_deleted_while_the_agent_attaches_is_said_to_be_gone() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "gone-attaching").await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    // Without the launcher's word the agent waits for it, and goes no further.
    std::fs::remove_file(trainer.path("/flopwatch/run/state"))?;
    trainer.profile(&namespace, "struck", 5).await?;
    namespace.in_stage("struck", Stage::Attaching).await?;
    namespace.delete_pod("trainer", 1).await?;
    let end = namespace.nothing_of("struck", &["TargetNotRunning"], "").await?;
    nothing_stays(namespace, &trainer, &end).await
}

#[tokio::test]
async fn a_target_deleted_in_the_window_ends_it() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "gone-window").await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    trainer.open_window(&namespace, "struck").await?;
    namespace.delete_pod("trainer", 1).await?;
    let end = namespace.nothing_of("struck", &["ContainerRestarted"], "").await?;
    nothing_stays(namespace, &trainer, &end).await
}

#[tokio::test]
async fn a_target_deleted_while_its_collection_is_stopped_ends_with_it() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "gone-stopping").await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    trainer.open_window(&namespace, "struck").await?;
    namespace.stop("struck", "Keep").await?;
    let stop = trainer.hold_stop().await?;
    namespace.delete_pod("trainer", 1).await?;
    // Whether the container or its tool is missed first is chance.
    let reasons = ["ContainerRestarted", "CollectionFailed"];
    let end = namespace.nothing_of("struck", &reasons, "").await?;
    drop(stop);
    nothing_stays(namespace, &trainer, &end).await
}

/// Deletes the pod when a tool of the agent is about to open a file of the capture, or the agent
/// itself: what was taken out is a result all the same.
async fn is_deleted_before(name: &str, file: &str, by_itself: bool) -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, name).await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    let mut gate = trainer.gate_before(&namespace, "struck", file, by_itself).await?;
    gate.reached().await?;
    namespace.delete_pod("trainer", 1).await?;
    trainer.process.ended().await?;
    drop(gate);
    let end = namespace.success_of("struck").await?;
    nothing_stays(namespace, &trainer, &end).await
}

#[tokio::test]
async fn a_target_deleted_while_its_capture_is_imported_loses_no_result() -> Result<()> {
    is_deleted_before("gone-import", "capture.qdstrm", false).await
}

#[tokio::test]
async fn a_target_deleted_while_its_capture_is_transformed_loses_no_result() -> Result<()> {
    is_deleted_before("gone-transform", "capture.nsys-rep", false).await
}

#[tokio::test]
async fn a_target_deleted_while_its_capture_is_published_loses_no_result() -> Result<()> {
    is_deleted_before("gone-publish", "timeline.h5", true).await
}
