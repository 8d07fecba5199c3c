//! A capture belongs to the container that it was attached to, and to no later one.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, eventually};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::capture_condition;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

#[tokio::test]
async fn a_container_that_restarts_within_the_window_ends_its_capture_with_that_reason() -> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("restart").await?;
    let mut pod = workload("trainer", true, &[]);
    pod["spec"]["restartPolicy"] = json!("Always");
    namespace.create_pod(pod).await?;
    namespace.launch_state("trainer").await?;
    namespace
        .create_session(
            "pinned",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 300, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    namespace.attached("pinned").await?;
    let pinned = namespace
        .only_capture("pinned")
        .await?
        .status
        .and_then(|status| status.container_id);
    let pinned = pinned.context("the capture names no container")?;
    namespace.shell("trainer", "kill -TERM 1").await?;
    namespace.finished("pinned").await?;
    let capture = namespace.only_capture("pinned").await?;
    let failed = capture_condition(&capture, "Succeeded").context("no condition")?;
    ensure!(
        failed.status == "False" && failed.reason == "ContainerRestarted" && failed.message.contains("of 300 s"),
        "{failed:?}"
    );
    ensure!(
        capture.status.and_then(|status| status.container_id).as_ref() == Some(&pinned),
        "the capture went on to another container"
    );
    eventually("the container to run again", || async {
        let pod = namespace.api::<Pod>().get("trainer").await?;
        let container = pod
            .status
            .and_then(|status| status.container_statuses)
            .and_then(|all| all.into_iter().next());
        Ok(container
            .filter(|one| one.restart_count > 0 && one.state.as_ref().is_some_and(|state| state.running.is_some())))
    })
    .await?;
    namespace.delete().await
}
