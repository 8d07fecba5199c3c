//! Taking Flopwatch away while it works: nothing hangs, and no workload notices. A group of its
//! own, which has the cluster for itself.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::CAPTURE_FINALIZER;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, run};
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use kube::ResourceExt as _;
use serde_json::json;

#[tokio::test]
async fn an_uninstall_with_sessions_running_leaves_nothing_stuck_and_no_workload_touched() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Uninstall).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("uninstall").await?;
    let outcome = taken_away(namespace).await;
    // Whatever happened: who comes next finds the release.
    let installed = chart::install().await;
    outcome?;
    installed?;
    works_again(&cluster).await
}

/// Everything up to the end of the namespace, which is deleted while nothing of Flopwatch runs.
async fn taken_away(namespace: TestNamespace) -> Result<()> {
    namespace
        .create_pod(workload("trainer", true, &["--range-micros", "2000"]))
        .await?;
    let state = namespace.launch_state("trainer").await?;
    ensure!(state["grafted"] == json!(true), "the start was not grafted: {state}");
    let spec = |seconds: u32| json!({ "target": { "podName": "trainer" }, "durationSeconds": seconds, "profiler": { "type": "Nsys" } });
    namespace.create_session("finished", spec(1)).await?;
    let ended = namespace.finished("finished").await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "True", "{succeeded:?}");
    namespace.create_session("running", spec(280)).await?;
    namespace.attached("running").await?;
    for session in ["finished", "running"] {
        let held = namespace.only_capture(session).await?.finalizers().to_vec();
        ensure!(
            held.iter().any(|one| one == CAPTURE_FINALIZER),
            "{session} shows nothing, its capture is not held: {held:?}"
        );
    }

    let before = PodState::of(&namespace, "trainer").await?;
    chart::uninstall().await?;

    for (session, status, reason) in [("finished", "True", None), ("running", "False", Some("Discarded"))] {
        let capture = namespace.only_capture(session).await?;
        let held = capture.finalizers();
        ensure!(held.is_empty(), "{session} is still held: {held:?}");
        let end = capture_condition(&capture, "Succeeded").context("no condition")?;
        ensure!(
            end.status == status && reason.is_none_or(|reason| end.reason == reason),
            "{session}: its agent did not end it: {end:?}"
        );
    }
    for kind in ["pods", "jobs", "deployments", "daemonsets"] {
        eventually(&format!("the release's {kind} to be gone"), || async {
            let left = run("kubectl", &["-n", chart::NAMESPACE, "get", kind, "-o", "name"]).await?;
            ensure!(left.trim().is_empty(), "{left}");
            Ok(Some(()))
        })
        .await?;
    }

    before.goes_on(&namespace).await?;
    // A pod that opts in where nothing prepares it starts as any other.
    namespace.create_pod(workload("later", true, &[])).await?;
    let later = namespace.running("later").await?;
    let annotations = later.metadata.annotations.unwrap_or_default();
    ensure!(!annotations.contains_key("flopwatch.dev/prepared"), "{annotations:?}");
    before.goes_on(&namespace).await?;
    namespace.delete_whole().await
}

/// The chart that was installed again profiles again.
async fn works_again(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.namespace("reinstalled").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    namespace
        .create_session(
            "again",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 1, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    let ended = namespace.finished("again").await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "True", "{succeeded:?}");
    namespace.delete().await
}
