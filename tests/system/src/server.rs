//! A server that listens on loopback and ends with its value: Prometheus, Alertmanager.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::cluster::{eventually, run};

/// A server whose readiness is asked at `/-/ready`.
pub(crate) struct Server {
    _process: Child,
    folder: TempDir,
    /// Host and port that the server listens on, without a scheme.
    pub(crate) address: String,
}

impl Server {
    /// Starts a program with a configuration in its folder, whose data and log are kept there too.
    ///
    /// # Errors
    /// When the program is absent or does not become ready.
    pub(crate) async fn start(program: &str, folder: TempDir, configuration: &Path, more: &[String]) -> Result<Self> {
        // A free port: bound and released, since the program cannot be asked which one it took.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let log = std::fs::File::create(log_in(&folder))?;
        let process = Command::new(program)
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--web.listen-address={address}"))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let server = Self {
            _process: process,
            folder,
            address,
        };
        eventually(&format!("{program} to be ready"), || async {
            let url = format!("http://{}/-/ready", server.address);
            run("curl", &["--silent", "--fail", &url]).await.map(Some)
        })
        .await?;
        Ok(server)
    }

    /// Text of the server's log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(log_in(&self.folder))?)
    }
}

fn log_in(folder: &TempDir) -> PathBuf {
    folder.path().join("log")
}
