//! A real Alertmanager that tells the gateway of alerts, as docs/schedules.md says.

use anyhow::Result;
use serde_json::Value;

use crate::cluster::run;
use crate::fetch::ArtifactClient;
use crate::server::Server;

/// An Alertmanager on loopback that ends with its value.
pub struct Alertmanager(Server);

impl Alertmanager {
    /// Starts it. It tells the gateway at `url` (the path included) of each alert by itself, with
    /// that token, and trusts what `client` trusts.
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
        let more = [
            format!("--storage.path={}", folder.path().join("data").display()),
            "--cluster.listen-address=".to_owned(),
        ];
        let server = Server::start("prometheus-alertmanager", folder, &configuration, &more).await?;
        Ok(Self(server))
    }

    /// Where Prometheus finds it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Has these alerts fire, each an object with `labels`.
    ///
    /// # Errors
    /// When it does not take them.
    pub async fn fire(&self, alerts: &[Value]) -> Result<()> {
        let url = format!("http://{}/api/v2/alerts", self.0.address);
        let json = "Content-Type: application/json";
        let text = serde_json::to_string(alerts)?;
        run("curl", &["--silent", "--fail", "--header", json, "--data", &text, &url]).await?;
        Ok(())
    }

    /// How often it was told of an alert that fires.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn told(&self) -> Result<u64> {
        let url = format!("http://{}/metrics", self.0.address);
        let metrics = run("curl", &["--silent", "--fail", &url]).await?;
        Ok(firing(&metrics))
    }

    /// Text of the server's log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        self.0.log()
    }
}

/// How many alerts that fire its metrics count as received, by both versions of its API.
fn firing(metrics: &str) -> u64 {
    let lines = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix("alertmanager_alerts_received_total{")?;
        let (labels, count) = rest.split_once("} ")?;
        labels
            .contains("status=\"firing\"")
            .then(|| count.parse::<u64>().ok())?
    });
    lines.sum()
}

#[cfg(test)]
mod tests {
    use super::firing;

    #[test]
    fn alerts_that_fire_are_counted_and_those_that_are_over_are_not() {
        let metrics = "# TYPE alertmanager_alerts_received_total counter\n\
            alertmanager_alerts_received_total{status=\"firing\",version=\"v2\"} 7\n\
            alertmanager_alerts_received_total{status=\"resolved\",version=\"v2\"} 2\n\
            alertmanager_alerts_received_total{status=\"firing\",version=\"v1\"} 1\n\
            alertmanager_alerts_invalid_total{version=\"v2\"} 3\n";
        assert_eq!(firing(metrics), 8);
        assert_eq!(firing(""), 0);
    }
}
