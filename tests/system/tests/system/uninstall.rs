//! Taking Flopwatch away while it works: nothing hangs, and no workload notices. A group of its
//! own, which has the cluster for itself.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::CAPTURE_FINALIZER;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, kubectl};
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::{sample, workload};
use flopwatch_system_tests::sessions::capture_condition;
use kube::ResourceExt as _;

#[tokio::test]
async fn an_uninstall_with_sessions_running_leaves_nothing_stuck_and_no_workload_touched() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Uninstall, "uninstall").await? else {
        return Ok(());
    };
    // The turn lasts beyond the namespace.
    let cluster = namespace.cluster.clone();
    let outcome = taken_away(namespace).await;
    // Whatever happened: who comes next finds the release.
    let installed = chart::install().await;
    outcome?;
    installed?;
    works_again(&cluster).await
}

/// Everything up to the end of the namespace, which is deleted while nothing of Flopwatch runs.
async fn taken_away(namespace: TestNamespace) -> Result<()> {
    namespace.graft(sample("trainer")).await?;
    namespace.profile("finished", "trainer", 1, "Nsys").await?;
    namespace.succeeded("finished").await?;
    namespace.profile("running", "trainer", 280, "Nsys").await?;
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
            let left = kubectl(chart::NAMESPACE, &["get", kind, "-o", "name"]).await?;
            ensure!(left.trim().is_empty(), "{left}");
            Ok(Some(()))
        })
        .await?;
    }

    before.goes_on(&namespace).await?;
    // A pod that opts in where nothing prepares it starts as any other.
    let later = namespace.run(workload("later", true, &[])).await?;
    let annotations = later.metadata.annotations.unwrap_or_default();
    ensure!(!annotations.contains_key("flopwatch.dev/prepared"), "{annotations:?}");
    before.goes_on(&namespace).await?;
    namespace.delete_whole().await
}

/// The chart that was installed again profiles again.
async fn works_again(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.namespace("reinstalled").await?;
    namespace.launch(workload("trainer", true, &[])).await?;
    namespace.profile("again", "trainer", 1, "Nsys").await?;
    namespace.succeeded("again").await?;
    namespace.delete().await
}
