//! A user of the kubectl plugin, who has a kubeconfig with one token and knows nothing else of the
//! cluster.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

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
        let child = self.command(arguments).output();
        let output = tokio::time::timeout(std::time::Duration::from_mins(3), child).await;
        let output = output.with_context(|| format!("{arguments:?} did not end"))??;
        Ok(Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            problems: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs `kubectl flopwatch open` of a session, and gives it with the URL of the timeline once
    /// it serves that.
    ///
    /// # Errors
    /// When it cannot be run, or ends before.
    pub async fn open(&self, session: &str) -> Result<(Child, String)> {
        let mut child = self.command(&["open", session]).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(output).lines();
        let url = async {
            while let Some(line) = lines.next_line().await? {
                let word = line.split_whitespace().next().unwrap_or_default();
                if word.starts_with("http://") && word.ends_with("/artifacts/timeline.h5") && !word.contains('?') {
                    return Ok(word.to_owned());
                }
            }
            bail!("it served nothing")
        };
        let url = tokio::time::timeout(std::time::Duration::from_mins(1), url).await??;
        Ok((child, url))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", &self.path)
            .arg("flopwatch")
            .args(arguments)
            .kill_on_drop(true);
        command
    }
}

/// What this machine's service at `url` answers, status and all.
///
/// # Errors
/// When it does not answer.
pub async fn plain(url: &str) -> Result<String> {
    let (address, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .context("no URL")?;
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(std::time::Duration::from_mins(1), read).await??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
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
