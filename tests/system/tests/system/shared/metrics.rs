//! NVML series under the right pod, scraped by a real Prometheus.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, eventually, run};
use flopwatch_system_tests::fetch::{reader_token, token};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::prometheus::Prometheus;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};

#[tokio::test]
async fn a_pods_gpu_memory_is_scraped_under_its_own_labels_and_goes_with_the_pod() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
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

/// Status of a request and what it says, of a server whose certificate is not looked at.
async fn ask(url: &str, token: Option<&str>) -> Result<(String, String)> {
    let header = token.map(|token| format!("Authorization: Bearer {token}"));
    let mut arguments = vec![
        "--silent",
        "--show-error",
        "--insecure",
        "--max-time",
        "20",
        "--write-out",
        "\n%{http_code}",
    ];
    if let Some(header) = &header {
        arguments.extend(["--header", header]);
    }
    arguments.push(url);
    let message = run("curl", &arguments).await?;
    let (body, status) = message.trim_end().rsplit_once('\n').context("no status")?;
    Ok((status.to_owned(), body.to_owned()))
}

#[tokio::test]
async fn two_tenants_and_metrics() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let first = cluster.namespace("tenant-a").await?;
    let second = cluster.namespace("tenant-b").await?;
    first.create_pod(workload("trainer", false, &[])).await?;
    first.running("trainer").await?;
    // As much as a tenant is given in a namespace of theirs.
    let mut tenants = Vec::new();
    for namespace in [&first, &second] {
        tenants.push(reader_token(namespace, "tenant", "flopwatch-user").await?);
    }
    let account = "metrics-prometheus";
    run("kubectl", &["-n", &first.name, "create", "serviceaccount", account]).await?;
    let (subject, role) = (
        format!("--serviceaccount={}:{account}", first.name),
        "--clusterrole=flopwatch-metrics-reader",
    );
    let binding = format!("{}-{account}", first.name);
    run("kubectl", &["create", "clusterrolebinding", &binding, role, &subject]).await?;
    let prometheus = token(&first.name, account).await?;

    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), chart::NAMESPACE);
    let mut asked = 0;
    for pod in pods.list(&ListParams::default()).await? {
        if pod.annotations().get("prometheus.io/scrape").map(String::as_str) != Some("true") {
            continue;
        }
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let address = address.context("a pod without an address")?;
        let url = format!("https://{address}:9464/metrics");
        let who = [
            (None, "401"),
            (Some("nonsense"), "401"),
            (tenants.first().map(String::as_str), "403"),
            (tenants.last().map(String::as_str), "403"),
        ];
        for (token, expected) in who {
            let (status, message) = ask(&url, token).await?;
            ensure!(
                status == expected,
                "{}: {status} instead of {expected}: {message}",
                pod.name_any()
            );
            ensure!(
                !message.contains("flopwatch_"),
                "{}: a refusal tells series: {message}",
                pod.name_any()
            );
        }
        let (status, message) = ask(&url, Some(&prometheus)).await?;
        ensure!(
            status == "200" && message.contains("flopwatch_"),
            "{}: {status} {message}",
            pod.name_any()
        );
        // What is open to all says nothing but how the pod is.
        for (path, expected) in [("healthz", "200"), ("readyz", "200"), ("metrics", "404")] {
            let (status, message) = ask(&format!("http://{address}:9465/{path}"), None).await?;
            ensure!(
                status == expected && message.len() < 64,
                "{}: /{path}: {status} {message}",
                pod.name_any()
            );
        }
        asked += 1;
    }
    ensure!(asked >= 3, "only {asked} pods were asked");
    run("kubectl", &["delete", "clusterrolebinding", &binding]).await?;
    second.delete().await?;
    first.delete().await
}
