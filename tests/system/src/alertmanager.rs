//! A real Alertmanager that tells the gateway of alerts, as docs/schedules.md says.

use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::cluster::{eventually, run};
use crate::fetch::ArtifactClient;

/// An Alertmanager on loopback that ends with its value.
pub struct Alertmanager {
    _process: Child,
    folder: TempDir,
    address: String,
}

impl Alertmanager {
    /// Starts it. It tells the gateway at `url` (the path included) of each alert by itself, with that token, and trusts what `client` trusts.
    ///
    /// # Errors
    /// When the program is absent or does not become ready.
    pub async fn start(client: &ArtifactClient, url: &str, token: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let credentials = folder.path().join("token");
        std::fs::write(&credentials, token)?;
        let configuration = folder.path().join("alertmanager.yml");
        std::fs::write(
            &configuration,
            format!(
                "route: {{ receiver: flopwatch, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h }}
receivers:
  - name: flopwatch
    webhook_configs:
      - url: {url}
        send_resolved: false
        http_config:
          authorization: {{ credentials_file: {} }}
          tls_config: {{ ca_file: {}, server_name: {} }}
",
                credentials.display(),
                client.authority().display(),
                client.name(),
            ),
        )?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let log = std::fs::File::create(folder.path().join("log"))?;
        let process = Command::new("prometheus-alertmanager")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .context("starting prometheus-alertmanager")?;
        let server = Self {
            _process: process,
            folder,
            address,
        };
        eventually("Alertmanager to be ready", || async {
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

    /// Where Prometheus finds it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Has these alerts fire, each an object with `labels`.
    ///
    /// # Errors
    /// When it does not take them.
    pub async fn fire(&self, alerts: &[Value]) -> Result<()> {
        let url = format!("http://{}/api/v2/alerts", self.address);
        let json = "Content-Type: application/json";
        let text = serde_json::to_string(alerts)?;
        run("curl", &["--silent", "--fail", "--header", json, "--data", &text, &url]).await?;
        Ok(())
    }

    /// What it wrote to its log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("log"))?)
    }
}
