//! A pod of real PyTorch and JAX ends in a window: its container, which comes back, and the pod.

use anyhow::{Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::trainer::Trainer;
use nix::sys::signal::Signal;

use super::target_deleted::{delete, nothing_stays};

/// The container restarts in a window of one profiler, and the pod is deleted in a window of
/// another.
async fn ends_in_windows(name: &str, first: &str, second: &str) -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace(name).await?;
    let trainer = Trainer::start_frameworks(&namespace, "trainer").await?;
    trainer.open_window_of(&namespace, "restarts", first, 60).await?;
    trainer.process.signal(Signal::SIGKILL)?;
    let end = namespace.end_of("restarts").await?;
    is_said_to_be_gone(&end.reason, end.artifacts)?;

    let again = trainer.restarted(&namespace).await?;
    again.has_no_mark_of(&namespace, &end).await?;
    again.succeeds(&namespace, "afterwards", second).await?;
    again.open_window_of(&namespace, "deleted", second, 60).await?;
    delete(&namespace, &again).await?;
    let end = namespace.end_of("deleted").await?;
    is_said_to_be_gone(&end.reason, end.artifacts)?;
    nothing_stays(namespace, &again, &end).await
}

/// Whether the container or what it answers is missed first is chance.
fn is_said_to_be_gone(reason: &str, artifacts: usize) -> Result<()> {
    let is_right = ["ContainerRestarted", "TargetNotRunning", "CollectionFailed"].contains(&reason);
    ensure!(is_right && artifacts == 0, "{reason}, {artifacts} artifacts");
    Ok(())
}

#[tokio::test]
async fn a_container_restarts_in_a_window_of_kineto_and_its_pod_is_deleted_in_one_of_jax() -> Result<()> {
    ends_in_windows("gone-kineto", "Kineto", "Jax").await
}

#[tokio::test]
async fn a_container_restarts_in_a_window_of_jax_and_its_pod_is_deleted_in_one_of_kineto() -> Result<()> {
    ends_in_windows("gone-jax", "Jax", "Kineto").await
}
