//! Sessions with Nsight Compute: the real program as far as it comes without a GPU, and a double of
//! it for what comes after.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::pods::{template, with_ncu_double, workload};
use flopwatch_trace::ReadLimits;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::sync::Mutex;

use super::first_session::{download, succeeded};
use super::refusals::capture_failure;
use super::replica::{endpoints, serving};

/// One capture at a time has a node's counters, and another is refused: the pods of both tests may
/// come to one node.
static COUNTERS: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn the_real_nsight_compute_starts_a_pods_program_and_says_that_it_lacks_a_driver() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let _turn = COUNTERS.lock().await;
    let namespace = cluster.namespace("ncu-real").await?;
    namespace.allow_pod_templates().await?;
    let spec = json!({
        "target": { "podTemplate": template(&["--seconds", "1"]) }, "durationSeconds": 60,
        "profiler": { "type": "Ncu", "ncu": { "set": "Full", "kernelRegex": "gemm" } }
    });
    namespace.create_session("real", spec).await?;
    let (reason, message) = capture_failure(&namespace, "real").await?;
    ensure!(
        reason == "RequiredEventsMissing" && message.contains("No kernels were profiled"),
        "{reason}: {message}"
    );
    let capture = namespace.only_capture("real").await?;
    let pod = &capture.spec.pod_ref.name;
    // Its library in the program ends the program where there is no driver.
    let code = namespace.exit_code(pod).await?;
    ensure!(code == 1, "the exit code of Nsight Compute, not {code}");
    let log = namespace.logs(pod).await?;
    ensure!(log.contains("failed to connect to the CUDA driver"), "{log}");
    namespace
        .api::<ProfilingSession>()
        .delete("real", &DeleteParams::default())
        .await?;
    namespace.pod_gone(pod).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_copy_that_a_double_of_nsight_compute_starts_leaves_counters_and_the_original_serves_on() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let _turn = COUNTERS.lock().await;
    let namespace = cluster.namespace("ncu-copy").await?;
    namespace.allow_pod_templates().await?;
    let before = serving(&namespace, with_ncu_double(workload("trainer", false, &[]))).await?;
    let spec = json!({ "target": { "replicaOf": "trainer" }, "durationSeconds": 2, "profiler": { "type": "Ncu" } });
    namespace.create_session("counted", spec).await?;
    let made = namespace.own_pod("counted").await?;
    let capture = succeeded(&namespace, "counted").await?;
    let file = download(&cluster, &namespace, &capture).await?;
    let timeline = flopwatch_trace::timeline_file::read(file.path(), &ReadLimits::default())?.capture;
    let counters = timeline.profiles.first().context("no profile of a kernel")?;
    ensure!(!counters.metrics.is_empty(), "a profile without a counter");
    let behind = endpoints(&namespace).await?;
    ensure!(behind == ["trainer"], "{behind:?}");
    namespace.pod_gone(&made.name_any()).await?;
    before.goes_on(&namespace).await.context("after a capture")?;
    namespace.delete().await
}
