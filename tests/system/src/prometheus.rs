//! A real Prometheus that scrapes the cluster's pods as their annotations say, with a token of an
//! account that may.
//!
//! Debian's build has no discovery by the API server, so the targets are read here and handed over
//! as a file.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::chart;
use crate::cluster::{eventually, run};
use crate::fetch::account_token;
use crate::server::Server;

/// A Prometheus server on loopback that ends with its value.
pub struct Prometheus(Server);

/// One series of an instant query.
#[derive(Debug, Deserialize)]
pub struct Series {
    /// Labels of the series.
    pub metric: std::collections::BTreeMap<String, String>,
    /// Unix time and value.
    pub value: (f64, String),
}

impl Prometheus {
    /// Starts the server on the pods of the release that are there now.
    ///
    /// # Errors
    /// When the program is absent or does not become ready.
    pub async fn start(client: &Client) -> Result<Self> {
        Self::with(client, tempfile::tempdir()?, "").await
    }

    /// Starts the server with rules whose alerts go to the Alertmanager at that address.
    ///
    /// # Errors
    /// When the program is absent or does not become ready.
    pub async fn alerting(client: &Client, alertmanager: &str, rules: &Value) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("rules.yml");
        std::fs::write(&file, rules.to_string())?;
        let more = format!(
            "rule_files: [{}]
alerting: {{ alertmanagers: [{{ static_configs: [{{ targets: ['{alertmanager}'] }}] }}] }}
",
            file.display()
        );
        Self::with(client, folder, &more).await
    }

    async fn with(client: &Client, folder: TempDir, more: &str) -> Result<Self> {
        let targets = folder.path().join("targets.json");
        std::fs::write(&targets, targets_of(client).await?.to_string())?;
        let token = folder.path().join("token");
        std::fs::write(
            &token,
            account_token("test-prometheus", "flopwatch-metrics-reader", Some("flopwatch-metrics")).await?,
        )?;
        let configuration = folder.path().join("prometheus.yml");
        std::fs::write(
            &configuration,
            format!(
                "global: {{ scrape_interval: 1s }}
{more}scrape_configs:
  - job_name: flopwatch
    honor_labels: true
    scheme: https
    authorization: {{ credentials_file: {} }}
    # Each component has a name of its own in its certificate, and a file of targets cannot say which.
    tls_config: {{ insecure_skip_verify: true }}
    file_sd_configs: [{{ files: [{}] }}]
",
                token.display(),
                targets.display()
            ),
        )?;
        let more = [
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            // It tells of an alert before it has found the Alertmanager, and by default once more a
            // minute later.
            "--rules.alert.resend-delay=1s".to_owned(),
        ];
        Ok(Self(Server::start("prometheus", folder, &configuration, &more).await?))
    }

    /// Result of an instant query.
    ///
    /// # Errors
    /// When the query is wrong or the server is gone.
    pub async fn query(&self, query: &str) -> Result<Vec<Series>> {
        #[derive(Deserialize)]
        struct Answer {
            data: Data,
        }
        #[derive(Deserialize)]
        struct Data {
            result: Vec<Series>,
        }
        let url = format!("http://{}/api/v1/query", self.0.address);
        let text = run(
            "curl",
            &[
                "--silent",
                "--fail",
                "--get",
                "--data-urlencode",
                &format!("query={query}"),
                &url,
            ],
        )
        .await?;
        Ok(serde_json::from_str::<Answer>(&text)?.data.result)
    }

    /// Waits until a query has at least one series.
    ///
    /// # Errors
    /// When it has none in time.
    pub async fn eventually(&self, query: &str) -> Result<Vec<Series>> {
        eventually(&format!("{query} to have a series"), || async {
            let series = self.query(query).await?;
            Ok((!series.is_empty()).then_some(series))
        })
        .await
    }
}

/// The release's pods that ask to be scraped, as Prometheus reads targets from a file.
async fn targets_of(client: &Client) -> Result<Value> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), chart::NAMESPACE);
    let mut targets = Vec::new();
    for pod in pods.list(&ListParams::default()).await? {
        let annotation = |name: &str| pod.annotations().get(name).cloned();
        if annotation("prometheus.io/scrape").as_deref() != Some("true") {
            continue;
        }
        let port = annotation("prometheus.io/port").context("a pod to scrape without a port")?;
        let address = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.clone())
            .context("a pod without an address")?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        targets.push(json!({ "targets": [format!("{address}:{port}")], "labels": { "node": node } }));
    }
    Ok(Value::Array(targets))
}
