//! A containerd's folder: its configuration, its socket, and the images in it.

use super::daemon::Daemon;
use crate::image::{BuiltImage, Image};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::command::{Run, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a containerd keeps what.
#[derive(Debug, Clone)]
pub(crate) struct Containerd {
    root: PathBuf,
    /// For what ends with it; the paths of sockets must be short.
    run: PathBuf,
}

impl Containerd {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            run: root.clone(),
            root,
        }
    }

    /// Puts what ends with the containerd into another folder.
    pub(crate) fn run_in(self, run: PathBuf) -> Self {
        Self { run, ..self }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.run.join("containerd.sock")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// What outlives it: images, their unpacked layers, containers.
    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("root")
    }

    /// What a machine's start would find empty.
    pub(crate) fn state(&self) -> PathBuf {
        self.run.join("state")
    }

    /// Where the images that were imported are written down.
    fn imported_file(&self) -> PathBuf {
        self.root.join("imported-images")
    }

    /// The builds of the images that it has.
    pub(crate) fn imported(&self) -> Vec<String> {
        fs::read_to_string(self.imported_file())
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn note_imported(&self, ids: &[String]) -> Result<()> {
        Ok(fs::write(self.imported_file(), ids.join("\n"))?)
    }

    /// Writes its configuration; `programs` is its programs' folder, `networks` that of the CNI
    /// configuration.
    pub(crate) fn configure(&self, programs: &Path, networks: &Path) -> Result<()> {
        fs::create_dir_all(&self.root)?;
        fs::create_dir_all(&self.run)?;
        let text = self.render(programs, networks, !may_lower_oom_score());
        Ok(fs::write(self.config(), text)?)
    }

    fn render(&self, programs: &Path, networks: &Path, restrict_oom_score: bool) -> String {
        let pause = Image::Pause.reference();
        format!(
            r#"version = 3
root = {root}
state = {state}
[grpc]
  address = {socket}
[plugins."io.containerd.internal.v1.opt"]
  path = {opt}
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {restrict_oom_score}
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = {shim}
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = {networks}
"#,
            root = quoted(&self.data()),
            state = quoted(&self.state()),
            socket = quoted(&self.socket()),
            opt = quoted(&self.root.join("opt")),
            shim = quoted(&programs.join("containerd-shim-runc-v2")),
            networks = quoted(networks),
        )
    }

    /// Waits until it answers.
    pub(crate) fn wait(&self, programs: &Path, daemon: &Daemon) -> Result<()> {
        let ready = wait_until(Duration::from_secs(30), || {
            daemon.must_live()?;
            Ok(self
                .ctr(programs)
                .arg("version")
                .deadline(Duration::from_secs(10))
                .quiet()
                .is_ok())
        })?;
        if ready {
            Ok(())
        } else {
            bail!("containerd does not answer\n{}", daemon.report())
        }
    }

    fn ctr(&self, programs: &Path) -> Run {
        Run::new(programs.join("ctr"))
            .arg("--address")
            .arg(self.socket())
            .args(["--namespace", "k8s.io"])
    }
}

/// Imports those images that it does not have in this build; gives the references of the new ones.
pub(crate) fn import(programs: &Path, containerd: &Containerd, images: &[BuiltImage]) -> Result<Vec<String>> {
    let mut imported = containerd.imported();
    let mut new = Vec::new();
    for built in images {
        let id = built.id();
        if imported.contains(&id) {
            continue;
        }
        containerd
            .ctr(programs)
            .args(["images", "import"])
            .arg(&built.archive)
            .deadline(Duration::from_mins(5))
            .quiet()
            .with_context(|| format!("cannot import {}", built.image.reference()))?;
        new.push(built.image.reference());
        let prefix = id.rsplit_once('-').map_or(id.as_str(), |(prefix, _)| prefix).to_owned();
        imported.retain(|other| other.rsplit_once('-').is_none_or(|(other, _)| other != prefix));
        imported.push(id);
        containerd.note_imported(&imported)?;
    }
    Ok(new)
}

/// A path as a TOML string, which quotes like JSON what occurs in paths.
fn quoted(path: &Path) -> String {
    Value::from(path.display().to_string()).to_string()
}

/// Without CAP_SYS_RESOURCE no process may be made less likely to be killed, and every sandbox
/// would fail to start.
fn may_lower_oom_score() -> bool {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|caps| caps & CAP_SYS_RESOURCE != 0)
}
