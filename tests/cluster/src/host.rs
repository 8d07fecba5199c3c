//! What the cluster's programs change on the machine outside the cluster's folder, and how it goes
//! back.

use super::layout::Layout;
use anyhow::{Context as _, Result};
use flopwatch_toolchain::cache::remove;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Kernel settings that kubelet and kube-proxy set and that network namespaces do not divide.
const SETTINGS: [&str; 6] = [
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/netfilter/nf_conntrack_max",
    "vm/overcommit_memory",
];

/// Folders whose names are fixed in those programs, and those of Flopwatch's agent and of the
/// tests. Most are only places where each node mounts its own.
const FOLDERS: [&str; 11] = [
    "/etc/kubernetes",
    "/run/containerd",
    "/run/flannel",
    "/run/xtables.lock",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/flopwatch",
    "/var/lib/flopwatch-rig",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];

/// How the machine was before the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HostState {
    settings: Vec<(String, String)>,
    absent: Vec<PathBuf>,
}

fn file(layout: &Layout) -> PathBuf {
    layout.root().join("host.json")
}

/// Writes down how the machine is.
pub(crate) fn remember(layout: &Layout) -> Result<()> {
    let read = |name: &&str| {
        Some((
            (*name).to_owned(),
            fs::read_to_string(setting(name)).ok()?.trim().to_owned(),
        ))
    };
    let state = HostState {
        settings: SETTINGS.iter().filter_map(read).collect(),
        absent: FOLDERS
            .iter()
            .map(PathBuf::from)
            .filter(|folder| !folder.exists())
            .collect(),
    };
    Ok(fs::write(file(layout), state.render())?)
}

/// Puts it back.
pub(crate) fn restore(layout: &Layout) -> Result<()> {
    let Ok(text) = fs::read_to_string(file(layout)) else {
        return Ok(());
    };
    let state = HostState::parse(&text).context("host.json in the cluster's folder is broken")?;
    for (name, before) in &state.settings {
        if fs::read_to_string(setting(name)).is_ok_and(|now| now.trim() != before) {
            fs::write(setting(name), before).with_context(|| format!("cannot set {name} back to {before}"))?;
        }
    }
    state.absent.iter().try_for_each(|folder| remove(folder))
}

fn setting(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}

impl HostState {
    fn render(&self) -> String {
        json!({"settings": self.settings, "absent": self.absent}).to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let setting = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
        Some(Self {
            settings: value
                .get("settings")?
                .as_array()?
                .iter()
                .map(setting)
                .collect::<Option<_>>()?,
            absent: value
                .get("absent")?
                .as_array()?
                .iter()
                .map(|path| path.as_str().map(PathBuf::from))
                .collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_down_is_read_back() {
        let state = HostState {
            settings: vec![("vm/overcommit_memory".into(), "0".into())],
            absent: vec!["/var/lib/kubelet".into()],
        };
        assert_eq!(HostState::parse(&state.render()), Some(state));
        assert_eq!(HostState::parse("{}"), None);
    }
}
