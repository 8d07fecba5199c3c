//! A capture belongs to the container that it was attached to, and to no later one.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, TestNamespace, eventually};
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::capture_condition;
use k8s_openapi::api::core::v1::Pod;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Waits until the pod's container runs again.
async fn restarted(namespace: &TestNamespace, name: &str) -> Result<()> {
    eventually("the container to run again", || async {
        let pod = namespace.api::<Pod>().get(name).await?;
        let container = pod
            .status
            .and_then(|status| status.container_statuses)
            .and_then(|all| all.into_iter().next());
        Ok(container
            .filter(|one| one.restart_count > 0 && one.state.as_ref().is_some_and(|state| state.running.is_some())))
    })
    .await
    .map(drop)
}

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
    restarted(&namespace, "trainer").await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_container_that_restarts_after_its_profiler_was_killed_is_grafted_again_over_the_same_shared_memory()
-> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("healing").await?;
    let mut pod = workload("trainer", true, &[]);
    pod["spec"]["restartPolicy"] = json!("Always");
    namespace.create_pod(namespace.on_kept_node(pod).await?).await?;
    let first = namespace.launch_state("trainer").await?;
    ensure!(first["grafted"] == json!(true), "{first}");
    // A start whose session did not live for 30 s is followed by a plain one.
    eventually("the start to be marked as survived", || async {
        let marker = namespace.shell("trainer", "cat /flopwatch/run/marker").await?;
        Ok(marker.contains("survived=true").then_some(()))
    })
    .await?;
    let pod = namespace.running("trainer").await?;
    for process in node::sessions_of(&pod)?
        .into_iter()
        .filter(|process| process.runs("nsys"))
    {
        // One that has ended with the one before it is as good.
        process.signal(Signal::SIGKILL).ok();
    }
    namespace.shell("trainer", "kill -TERM 1").await?;
    restarted(&namespace, "trainer").await?;
    let second: Value = eventually("the launcher of the second life to decide", || async {
        let state = namespace.launch_state("trainer").await?;
        Ok((state["unix_ms"] != first["unix_ms"]).then_some(state))
    })
    .await?;
    ensure!(second["grafted"] == json!(true), "{second}");
    let names = namespace.shell("trainer", "ls /dev/shm").await?;
    let agents = names
        .lines()
        .filter(|name| name.starts_with("quadd-agent-instance-"))
        .count();
    ensure!(agents == 1, "{names}");
    namespace.delete().await
}
