//! Sessions with Nsight Compute: the real program as far as it comes without a GPU, and a double of
//! it for what comes after.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::pods::{template, with_ncu_double, workload};
use flopwatch_system_tests::sessions::of_copy;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::sync::Mutex;

use super::first_session::download;
use super::replica::{endpoints, serving};

/// One capture at a time has a node's counters, and another is refused: the pods of both tests may
/// come to one node.
static COUNTERS: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn the_real_nsight_compute_starts_a_pods_program_and_says_that_it_lacks_a_driver() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "ncu-real").await? else {
        return Ok(());
    };
    let _turn = COUNTERS.lock().await;
    namespace.allow_pod_templates().await?;
    let spec = json!({
        "target": { "podTemplate": template(&["--seconds", "1"]) }, "durationSeconds": 60,
        "profiler": { "type": "Ncu", "ncu": { "set": "Full", "kernelRegex": "gemm" } }
    });
    namespace.create_session("real", spec).await?;
    namespace
        .fails_with("real", "RequiredEventsMissing", &["No kernels were profiled"])
        .await?;
    let capture = namespace.only_capture("real").await?;
    let pod = &capture.spec.pod_ref.name;
    // Its library in the program ends the program where there is no driver.
    let code = namespace.exit_code(pod).await?;
    ensure!(code == 1, "the exit code of Nsight Compute, not {code}");
    let log = namespace.logs(pod).await?;
    ensure!(log.contains("failed to connect to the CUDA driver"), "{log}");
    namespace.delete_session("real").await?;
    namespace.pod_gone(pod).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_copy_that_a_double_of_nsight_compute_starts_leaves_counters_and_the_original_serves_on() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "ncu-copy").await? else {
        return Ok(());
    };
    let _turn = COUNTERS.lock().await;
    namespace.allow_pod_templates().await?;
    let before = serving(&namespace, with_ncu_double(workload("trainer", false, &[]))).await?;
    namespace
        .create_session("counted", of_copy("trainer", 2, "Ncu"))
        .await?;
    let made = namespace.own_pod("counted").await?;
    let capture = namespace.succeeded("counted").await?;
    let timeline = download(&namespace, &capture).await?;
    let counters = timeline.profiles.first().context("no profile of a kernel")?;
    ensure!(!counters.metrics.is_empty(), "a profile without a counter");
    let behind = endpoints(&namespace).await?;
    ensure!(behind == ["trainer"], "{behind:?}");
    namespace.pod_gone(&made.name_any()).await?;
    before.goes_on(&namespace).await.context("after a capture")?;
    namespace.delete().await
}
