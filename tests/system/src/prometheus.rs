//! A real Prometheus that scrapes the cluster's pods as their annotations say.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::chart;
use crate::cluster::{eventually, run};

/// A Prometheus server on loopback that ends with its value.
pub struct Prometheus {
    _process: Child,
    _folder: TempDir,
    address: String,
}

/// One series of an instant query.
#[derive(Debug, Deserialize)]
pub struct Series {
    /// Labels.
    pub metric: std::collections::BTreeMap<String, String>,
    /// Unix time and value.
    pub value: (f64, String),
}

impl Prometheus {
    /// Starts the server; it finds the pods through the API server.
    ///
    /// # Errors
    /// When the program is absent or does not become ready.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = std::env::var("KUBECONFIG").context("KUBECONFIG")?;
        let configuration = folder.path().join("prometheus.yml");
        std::fs::write(&configuration, configuration_text(&kubeconfig))?;
        // A free port: bound and let go, since Prometheus cannot be asked which one it took.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let log = std::fs::File::create(folder.path().join("log"))?;
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .context("starting prometheus")?;
        let server = Self {
            _process: process,
            _folder: folder,
            address,
        };
        eventually("Prometheus to be ready", || async {
            run(
                "curl",
                &["--silent", "--fail", &format!("http://{}/-/ready", server.address)],
            )
            .await
            .map(Some)
        })
        .await?;
        Ok(server)
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
        let url = format!("http://{}/api/v1/query", self.address);
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

fn configuration_text(kubeconfig: &str) -> String {
    let kubeconfig = Path::new(kubeconfig).display();
    let namespace = chart::NAMESPACE;
    format!(
        "global: {{ scrape_interval: 1s }}
scrape_configs:
  - job_name: flopwatch
    honor_labels: true
    kubernetes_sd_configs:
      - {{ role: pod, kubeconfig_file: {kubeconfig}, namespaces: {{ names: [{namespace}] }} }}
    relabel_configs:
      - {{ source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape], action: keep, regex: \"true\" }}
      - {{ source_labels: [__meta_kubernetes_pod_container_port_name], action: keep, regex: metrics }}
      - {{ source_labels: [__meta_kubernetes_pod_node_name], target_label: node }}
      - {{ source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_component], target_label: component }}
"
    )
}
