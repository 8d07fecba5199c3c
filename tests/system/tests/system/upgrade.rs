//! Upgrading while sessions run: every part of the release is replaced, and no workload notices.
//! The release is everybody's, so this is a group of its own.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, eventually, run};
use flopwatch_system_tests::parts::{ARTIFACTS, Running};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::trainer::Trainer;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

#[tokio::test]
async fn an_upgrade_with_sessions_running_touches_no_workload_and_serves_who_was_prepared_before() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Upgrade).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("upgrade").await?;
    let (busy, quiet) = tokio::try_join!(Trainer::start(&namespace, "busy"), Trainer::start(&namespace, "quiet"))?;
    quiet.profile(&namespace, "before", 1).await?;
    let before = namespace.end_of("before").await?;
    ensure!(before.succeeded, "{before:?}");
    busy.open_window(&namespace, "during").await?;
    let agent = busy.agent().await?;
    let controller = Running::controller(&namespace.client).await?;

    let next = next_version()?;
    chart::upgrade(next.path(), &["--set", "controller.nodeLostSeconds=25"]).await?;

    // All of them are others now.
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), chart::NAMESPACE);
    eventually("the release's earlier pods to be gone", || async {
        let names: Vec<String> = pods
            .list(&ListParams::default())
            .await?
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        let earlier = [&agent.pod, &controller.pod].map(ResourceExt::name_any);
        ensure!(!earlier.iter().any(|name| names.contains(name)), "{names:?}");
        Ok(Some(()))
    })
    .await?;
    // The session that ran has carried on or says why not, and what was published is there yet.
    namespace.stop("during", "Keep").await?;
    let during = namespace.end_of("during").await?;
    let carried_on = during.succeeded && during.artifacts > 0;
    let given_up = !during.succeeded && during.reason == "AgentRestarted" && during.artifacts == 0;
    ensure!(carried_on || given_up, "{during:?}");
    let kept = namespace.only_capture("before").await?.status.context("no status")?;
    ensure!(kept.artifacts.len() == before.artifacts, "{:?}", kept.artifacts);
    let agent = quiet.agent().await?;
    for artifact in &kept.artifacts {
        let stored = run(
            "find",
            &[
                agent.path(ARTIFACTS).to_str().context("path")?,
                "-name",
                &format!("*{}*", &artifact.sha256),
            ],
        )
        .await?;
        ensure!(!stored.trim().is_empty(), "{} is gone from the node", artifact.name);
    }
    let goes_on = async {
        busy.nothing_stays_of(&during.uid).await?;
        busy.is_unharmed(&namespace).await?;
        busy.profile(&namespace, "later", 1).await?;
        let later = namespace.end_of("later").await?;
        ensure!(later.succeeded, "{later:?}");
        Ok(())
    };
    let begins = async {
        namespace
            .create_pod(workload("fresh", true, &["--range-micros", "2000"]))
            .await?;
        let fresh = Trainer::started(&namespace, "fresh").await?;
        fresh.profile(&namespace, "fresh", 1).await?;
        let end = namespace.end_of("fresh").await?;
        ensure!(end.succeeded, "{end:?}");
        Ok(())
    };
    // Prepared by the version before, served by this one; and the version after prepares.
    tokio::try_join!(quiet.recovers(&namespace, &before), goes_on, begins)?;
    // Nothing is stuck: sessions go, captures with them, then the namespace.
    namespace
        .api::<ProfilingSession>()
        .delete_collection(&kube::api::DeleteParams::background(), &ListParams::default())
        .await?;
    eventually("all captures to be gone", || async {
        let left = namespace.api::<Capture>().list(&ListParams::default()).await?;
        Ok(left.items.is_empty().then_some(()))
    })
    .await?;
    busy.is_unharmed(&namespace).await?;
    namespace.delete().await
}

/// The chart as its next release would be: another version of the chart, which every pod carries in
/// a label.
fn next_version() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    copy(&chart::folder(), folder.path())?;
    let file = folder.path().join("Chart.yaml");
    let text = std::fs::read_to_string(&file)?;
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.strip_prefix("version:") {
            Some(version) => format!("version: {}-next", version.trim()),
            None => line.to_owned(),
        })
        .collect();
    std::fs::write(&file, lines.join("\n"))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)?.flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
