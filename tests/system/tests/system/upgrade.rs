//! Upgrading while sessions run: every part of the release is replaced, and no workload notices.
//! The release is everybody's, so this is a group of its own.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually, run};
use flopwatch_system_tests::parts::{ARTIFACTS, Running};
use flopwatch_system_tests::pods::sample;
use flopwatch_system_tests::trainer::Trainer;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};

#[tokio::test]
async fn an_upgrade_with_sessions_running_touches_no_workload_and_serves_who_was_prepared_before() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Upgrade, "upgrade").await? else {
        return Ok(());
    };
    let (busy, quiet) = tokio::try_join!(Trainer::start(&namespace, "busy"), Trainer::start(&namespace, "quiet"))?;
    quiet.profile(&namespace, "before", 1).await?;
    let before = namespace.success_of("before").await?;
    busy.open_window(&namespace, "during").await?;
    let agent = busy.agent().await?;
    let controller = Running::controller(&namespace.client).await?;

    let next = next_version()?;
    chart::upgrade(next.path(), &["--set", "controller.nodeLostSeconds=25"]).await?;

    // All of them are others now.
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), chart::NAMESPACE);
    eventually("the release's earlier pods to be gone", || async {
        let all = pods.list(&ListParams::default()).await?;
        let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
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
    let artifacts = agent.path(ARTIFACTS);
    let artifacts = artifacts.to_str().context("path")?;
    for artifact in &kept.artifacts {
        let name = format!("*{}*", &artifact.sha256);
        let stored = run("find", &[artifacts, "-name", &name]).await?;
        ensure!(!stored.trim().is_empty(), "{} is gone from the node", artifact.name);
    }
    let goes_on = async {
        busy.nothing_stays_of(&during.uid).await?;
        busy.is_unharmed(&namespace).await?;
        busy.profile(&namespace, "later", 1).await?;
        namespace.success_of("later").await.map(drop)
    };
    let begins = async {
        namespace.create_pod(sample("fresh")).await?;
        let fresh = Trainer::started(&namespace, "fresh").await?;
        fresh.profile(&namespace, "fresh", 1).await?;
        namespace.success_of("fresh").await.map(drop)
    };
    // Prepared by the version before, served by this one; and the version after prepares.
    tokio::try_join!(quiet.recovers(&namespace, &before), goes_on, begins)?;
    // Nothing is stuck: sessions go, captures with them, then the namespace.
    let (sessions, all) = (namespace.api::<ProfilingSession>(), ListParams::default());
    sessions.delete_collection(&DeleteParams::background(), &all).await?;
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
    let lines = text.lines().map(|line| match line.strip_prefix("version:") {
        Some(version) => format!("version: {}-next", version.trim()),
        None => line.to_owned(),
    });
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n"))?;
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
