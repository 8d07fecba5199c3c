//! A pod of real PyTorch and JAX ends in a window: its container, which comes back, and the pod.

use anyhow::Result;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::trainer::Trainer;
use nix::sys::signal::Signal;

use super::target_deleted::nothing_stays;

/// Whether the container or what it answers is missed first is chance.
const GONE: [&str; 3] = ["ContainerRestarted", "TargetNotRunning", "CollectionFailed"];

/// The container restarts in a window of one profiler, and the pod is deleted in a window of
/// another.
async fn ends_in_windows(name: &str, first: &str, second: &str) -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, name).await? else {
        return Ok(());
    };
    let trainer = Trainer::start_frameworks(&namespace, "trainer").await?;
    trainer.open_window_of(&namespace, "restarts", first, 60).await?;
    trainer.process.signal(Signal::SIGKILL)?;
    let end = namespace.nothing_of("restarts", &GONE, "").await?;

    let again = trainer.restarted(&namespace).await?;
    again.has_no_mark_of(&namespace, &end).await?;
    again.succeeds(&namespace, "afterwards", second).await?;
    again.open_window_of(&namespace, "deleted", second, 60).await?;
    namespace.delete_pod("trainer", 1).await?;
    let end = namespace.nothing_of("deleted", &GONE, "").await?;
    nothing_stays(namespace, &again, &end).await
}

#[tokio::test]
async fn a_container_restarts_in_a_window_of_kineto_and_its_pod_is_deleted_in_one_of_jax() -> Result<()> {
    ends_in_windows("gone-kineto", "Kineto", "Jax").await
}

#[tokio::test]
async fn a_container_restarts_in_a_window_of_jax_and_its_pod_is_deleted_in_one_of_kineto() -> Result<()> {
    ends_in_windows("gone-jax", "Jax", "Kineto").await
}
