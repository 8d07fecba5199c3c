//! A capture takes no more of its pod's ephemeral storage than is left for it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::trainer::Trainer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::sleep;

/// Longer than the kubelet takes to look at a pod's volumes again (a minute), and to evict it then.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(80);

#[tokio::test]
async fn a_busy_capture_of_a_pod_with_little_storage_ends_and_the_pod_is_not_evicted() -> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Shared, "tight").await? else {
        return Ok(());
    };
    let mut pod = workload("tight", true, &["--threads", "4", "--range-micros", "2"]);
    pod["spec"]["containers"][0]["resources"]["limits"]["ephemeral-storage"] = json!("300Mi");
    let made = namespace.create_pod(namespace.copied(pod).await?).await?;
    let annotations = made.metadata.annotations.unwrap_or_default();
    // What copied tools leave of it (100 MiB) but 64 MiB for the workload.
    ensure!(
        annotations.get("flopwatch.dev/prepared-capture-bytes") == Some(&(36 << 20).to_string()),
        "{annotations:?}"
    );
    let trainer = Trainer::started(&namespace, "tight").await?;
    trainer.profile(&namespace, "busy", 120).await?;
    let end = namespace
        .nothing_of("busy", &["CaptureTooLarge"], "ephemeral-storage limit")
        .await?;
    trainer.nothing_stays_of(&end.uid).await?;
    sleep(EVICTION_TIMEOUT).await;
    let pod = namespace.api::<Pod>().get("tight").await?;
    let status = pod.status.context("a pod without a status")?;
    ensure!(
        status.phase.as_deref() == Some("Running") && trainer.process.is_alive(),
        "the pod did not outlive its capture: {status:?}"
    );
    namespace.delete().await
}
