//! A user of the kubectl plugin, who has a kubeconfig with one token and knows nothing else of the
//! cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::chart;
use crate::cluster::{TestNamespace, run};

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub problems: String,
}

/// A user with a kubeconfig of their own, and `kubectl flopwatch` on the PATH.
pub struct User {
    kubeconfig: PathBuf,
    path: String,
}

impl User {
    /// Takes the tests' kubeconfig with the token of that account alone.
    ///
    /// # Errors
    /// When the plugin is not named, or the kubeconfig cannot be read or written.
    pub async fn new(folder: &Path, namespace: &TestNamespace, token: &str) -> Result<Self> {
        let plugin =
            std::env::var("FLOPWATCH_PLUGIN").context("FLOPWATCH_PLUGIN: cargo xtask test names the program")?;
        let programs = Path::new(&plugin).parent().context("no folder")?.display().to_string();
        let text = run("kubectl", &["config", "view", "--raw", "--minify", "--output", "json"]).await?;
        let mut config: Value = serde_json::from_str(&text)?;
        config["users"] = json!([{ "name": "user", "user": { "token": token } }]);
        config["contexts"][0]["context"]["user"] = json!("user");
        config["contexts"][0]["context"]["namespace"] = json!(namespace.name);
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, config.to_string())?;
        Ok(Self {
            kubeconfig,
            path: format!("{programs}:{}", std::env::var("PATH")?),
        })
    }

    /// The file of the kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs `kubectl flopwatch` with these words.
    ///
    /// # Errors
    /// When it cannot be run, or does not end.
    pub async fn flopwatch(&self, arguments: &[&str]) -> Result<Said> {
        let child = Command::new("kubectl")
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", &self.path)
            .arg("flopwatch")
            .args(arguments)
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(std::time::Duration::from_mins(3), child).await;
        let output = output.with_context(|| format!("{arguments:?} did not end"))??;
        Ok(Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            problems: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// A right to reach the gateway by a port-forward, as the chart gives it to whom
/// `access.gatewayCallers` names.
pub struct GatewayCaller {
    binding: String,
}

/// Lets a service account of the namespace reach the gateway.
///
/// # Errors
/// When the API server refuses.
pub async fn may_reach_gateway(namespace: &TestNamespace, account: &str) -> Result<GatewayCaller> {
    let binding = namespace.name.clone();
    let account = format!("--serviceaccount={}:{account}", namespace.name);
    let bind = [
        "create",
        "rolebinding",
        &binding,
        "--role=flopwatch-gateway-caller",
        &account,
    ];
    run("kubectl", &[&["-n", chart::NAMESPACE], &bind[..]].concat()).await?;
    Ok(GatewayCaller { binding })
}

impl GatewayCaller {
    /// Takes it away.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn end(self) -> Result<()> {
        run(
            "kubectl",
            &["-n", chart::NAMESPACE, "delete", "rolebinding", &self.binding],
        )
        .await
        .map(drop)
    }
}
