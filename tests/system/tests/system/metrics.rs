//! NVML series under the right pod, scraped by a real Prometheus.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, eventually};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::prometheus::Prometheus;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;

#[tokio::test]
async fn a_pods_gpu_memory_is_scraped_under_its_own_labels_and_goes_with_the_pod() -> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("metrics").await?;
    namespace.create_pod(workload("trainer", false, &[])).await?;
    namespace.running("trainer").await?;
    let prometheus = Prometheus::start(&cluster.client).await?;
    let query = format!(
        "flopwatch_gpu_process_memory_used_bytes{{namespace=\"{}\",pod=\"trainer\"}}",
        namespace.name
    );
    let series = prometheus.eventually(&query).await?;
    let first = series.first().context("no series")?;
    ensure!(
        first.metric.get("container").map(String::as_str) == Some("main"),
        "{first:?}"
    );
    ensure!(
        first.metric.get("attribution").map(String::as_str) == Some("process"),
        "{first:?}"
    );
    ensure!(first.value.1.parse::<f64>()? > 0.0, "{first:?}");
    let devices = prometheus.eventually("flopwatch_gpu_utilization_ratio").await?;
    ensure!(
        devices
            .iter()
            .all(|one| one.metric.get("attribution").map(String::as_str) == Some("device")),
        "{devices:?}"
    );

    namespace
        .api::<Pod>()
        .delete("trainer", &DeleteParams::default().grace_period(1))
        .await?;
    eventually("the pod's series to go with the pod", || async {
        Ok(prometheus.query(&query).await?.is_empty().then_some(()))
    })
    .await?;
    namespace.delete().await
}
