//! A node: containerd, kubelet and kube-proxy with their configuration.

use super::daemon::Daemon;
use super::layout::{Layout, NodeLayout, POD_NETWORK};
use crate::command::{Run, wait_until};
use crate::image::{BuiltImage, Image};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The names of a node's programs.
pub(crate) fn parts(node: &NodeLayout) -> [String; 3] {
    ["containerd", "kubelet", "kube-proxy"].map(|part| format!("{}-{part}", node.name))
}

/// Where the images that were imported are written down.
fn imported_file(node: &NodeLayout) -> PathBuf {
    node.path("imported-images")
}

/// Starts containerd and waits until it answers.
pub(crate) fn start_containerd(layout: &Layout, node: &NodeLayout) -> Result<()> {
    let [name, ..] = parts(node);
    let daemon = Daemon::new(layout, &name);
    fs::write(
        node.path("containerd/config.toml"),
        containerd_config(node, !may_lower_oom_score()),
    )?;
    fs::write(
        node.path("cni/conf/10-flopwatch.conflist"),
        cni_config(node).to_string(),
    )?;
    daemon.start(
        Path::new("containerd"),
        [Path::new("--config"), &node.path("containerd/config.toml")],
    )?;
    let ready = wait_until(Duration::from_secs(30), || {
        daemon.must_live()?;
        Ok(ctr(node)
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

/// Starts kubelet and kube-proxy.
pub(crate) fn start_kubelet(layout: &Layout, programs: &Path, node: &NodeLayout) -> Result<()> {
    let [_, kubelet, proxy] = parts(node);
    let config = node.path("kubelet.json");
    fs::write(&config, kubelet_config(layout, node).to_string())?;
    let args = [
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", layout.kubeconfig(&node.name).display()),
        format!("--hostname-override={}", node.name),
        format!("--node-ip={}", node.address),
        format!("--root-dir={}", node.path("kubelet").display()),
    ];
    Daemon::new(layout, &kubelet).start(&programs.join("kubelet"), args)?;
    let config = node.path("kube-proxy.json");
    fs::write(&config, proxy_config(layout, node).to_string())?;
    Daemon::new(layout, &proxy).start(&programs.join("kube-proxy"), [format!("--config={}", config.display())])
}

fn ctr(node: &NodeLayout) -> Run {
    Run::new("ctr")
        .arg("--address")
        .arg(node.containerd_socket())
        .args(["--namespace", "k8s.io"])
}

/// The builds of the images that the node has.
pub(crate) fn imported(node: &NodeLayout) -> Vec<String> {
    fs::read_to_string(imported_file(node))
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Imports those images that the node does not have in this build; gives the references of the new ones.
pub(crate) fn import(node: &NodeLayout, images: &[BuiltImage]) -> Result<Vec<String>> {
    let file = imported_file(node);
    let mut imported = imported(node);
    let mut new = Vec::new();
    for built in images {
        let id = built.id();
        if imported.contains(&id) {
            continue;
        }
        ctr(node)
            .args(["images", "import"])
            .arg(&built.archive)
            .deadline(Duration::from_mins(5))
            .quiet()
            .with_context(|| format!("cannot import {}", built.image.reference()))?;
        new.push(built.image.reference());
        let prefix = id.rsplit_once('-').map_or(id.as_str(), |(prefix, _)| prefix).to_owned();
        imported.retain(|other| other.rsplit_once('-').is_none_or(|(other, _)| other != prefix));
        imported.push(id);
        fs::write(&file, imported.join("\n"))?;
    }
    Ok(new)
}

/// A path as a TOML or JSON string; both quote alike what occurs in paths.
fn quoted(path: &Path) -> String {
    Value::from(path.display().to_string()).to_string()
}

fn containerd_config(node: &NodeLayout, restrict_oom_score: bool) -> String {
    let pause = Image::Pause.reference();
    format!(
        r#"version = 2
root = {root}
state = {state}
[grpc]
  address = {socket}
[plugins."io.containerd.internal.v1.opt"]
  path = {opt}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = {restrict_oom_score}
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = {cni}
"#,
        root = quoted(&node.path("containerd/root")),
        state = quoted(&node.path("containerd/state")),
        socket = quoted(&node.containerd_socket()),
        opt = quoted(&node.path("containerd/opt")),
        cni = quoted(&node.path("cni/conf")),
    )
}

/// Without CAP_SYS_RESOURCE no process may be made less likely to be killed, and every sandbox would fail to start.
fn may_lower_oom_score() -> bool {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|caps| caps & CAP_SYS_RESOURCE != 0)
}

fn cni_config(node: &NodeLayout) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": format!("flopwatch-{}", node.name),
        "plugins": [
            {
                "type": "bridge",
                "bridge": node.pod_bridge,
                "isGateway": true,
                "ipMasq": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": node.path("cni/data"),
                    "ranges": [[{"subnet": node.pod_subnet}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            // Lets pods' packets through where the machine's own firewall forwards none by default.
            {"type": "firewall", "backend": "iptables"},
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn kubelet_config(layout: &Layout, node: &NodeLayout) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": "127.0.0.1",
        "failCgroupV1": false,
        "failSwapOn": false,
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": format!("unix://{}", node.containerd_socket().display()),
        "podLogsDir": node.path("logs"),
        "volumePluginDir": node.path("plugins"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": layout.pki("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": layout.pki(&format!("{}.crt", node.name)),
        "tlsPrivateKeyFile": layout.pki(&format!("{}.key", node.name)),
        "clusterDomain": "cluster.local",
        // The images cannot be pulled again, so none may be collected, and no pod evicted for a full disk too early.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
    })
}

fn proxy_config(layout: &Layout, node: &NodeLayout) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": layout.kubeconfig("proxy")},
        "hostnameOverride": node.name,
        "mode": "iptables",
        "clusterCIDR": POD_NETWORK,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        // The machine's limits stay as they are.
        "conntrack": {"maxPerCore": 0},
        // A pod that reaches itself or a neighbour through a Service gets its answer through it too.
        "iptables": {"masqueradeAll": true},
    })
}
