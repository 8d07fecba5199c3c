//! NVML series under the right pod, scraped by a real Prometheus.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, run};
use flopwatch_system_tests::fetch::{reader_token, stranger_token};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::prometheus::Prometheus;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

#[tokio::test]
async fn a_pods_gpu_memory_is_scraped_under_its_own_labels_and_goes_with_the_pod() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "metrics").await? else {
        return Ok(());
    };
    namespace.run(workload("trainer", false, &[])).await?;
    let prometheus = Prometheus::start(&namespace.client).await?;
    let query = format!(
        "flopwatch_gpu_process_memory_used_bytes{{namespace=\"{}\",pod=\"trainer\"}}",
        namespace.name
    );
    let series = prometheus.eventually(&query).await?;
    let first = series.first().context("no series")?;
    let label = |name: &str| first.metric.get(name).map(String::as_str);
    ensure!(label("container") == Some("main"), "{first:?}");
    ensure!(label("attribution") == Some("process"), "{first:?}");
    ensure!(first.value.1.parse::<f64>()? > 0.0, "{first:?}");
    let devices = prometheus.eventually("flopwatch_gpu_utilization_ratio").await?;
    let mut attributions = devices.iter().map(|one| one.metric.get("attribution"));
    let is_right = attributions.all(|one| one.is_some_and(|one| one == "device"));
    ensure!(is_right, "{devices:?}");

    namespace.delete_pod("trainer", 1).await?;
    eventually("the pod's series to go with the pod", || async {
        Ok(prometheus.query(&query).await?.is_empty().then_some(()))
    })
    .await?;
    namespace.delete().await
}

/// Status of a request and what it says, of a server whose certificate is not looked at.
async fn ask(url: &str, token: Option<&str>) -> Result<(String, String)> {
    let header = token.map(|token| format!("Authorization: Bearer {token}"));
    let mut arguments = vec!["--silent", "--show-error", "--insecure", "--max-time", "20"];
    arguments.extend(["--write-out", "\n%{http_code}", url]);
    if let Some(header) = &header {
        arguments.extend(["--header", header]);
    }
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
    first.run(workload("trainer", false, &[])).await?;
    // As much as a tenant is given in a namespace of theirs.
    let mut tenants = Vec::new();
    for namespace in [&first, &second] {
        tenants.push(reader_token(namespace, "tenant", "flopwatch-user").await?);
    }
    let account = "metrics-prometheus";
    let role = "--clusterrole=flopwatch-metrics-reader";
    let subject = format!("--serviceaccount={}:{account}", first.name);
    let binding = format!("{}-{account}", first.name);
    run("kubectl", &["create", "clusterrolebinding", &binding, role, &subject]).await?;
    let prometheus = stranger_token(&first, account).await?;

    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), chart::NAMESPACE);
    let mut asked = 0;
    for pod in pods.list(&ListParams::default()).await? {
        if pod.annotations().get("prometheus.io/scrape").map(String::as_str) != Some("true") {
            continue;
        }
        let name = pod.name_any();
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
            ensure!(status == expected, "{name}: {status} instead of {expected}: {message}");
            ensure!(
                !message.contains("flopwatch_"),
                "{name}: a refusal tells series: {message}"
            );
        }
        let (status, message) = ask(&url, Some(&prometheus)).await?;
        ensure!(
            status == "200" && message.contains("flopwatch_"),
            "{name}: {status} {message}"
        );
        // What is open to all says nothing but how the pod is.
        for (path, expected) in [("healthz", "200"), ("readyz", "200"), ("metrics", "404")] {
            let (status, message) = ask(&format!("http://{address}:9465/{path}"), None).await?;
            ensure!(
                status == expected && message.len() < 64,
                "{name}: /{path}: {status} {message}"
            );
        }
        asked += 1;
    }
    ensure!(asked >= 3, "only {asked} pods were asked");
    run("kubectl", &["delete", "clusterrolebinding", &binding]).await?;
    second.delete().await?;
    first.delete().await
}
