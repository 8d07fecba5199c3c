//! A node: containerd, kubelet and kube-proxy with their configuration, in namespaces of the node's
//! own.

use super::daemon::Daemon;
use super::layout::{Layout, NodeLayout, POD_NETWORK};
use super::{isolation, network, status};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::wait_until;
use flopwatch_toolchain::golang::PAUSE;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

const PROGRAMS: [&str; 3] = ["containerd", "kubelet", "kube-proxy"];
/// The bridge that the node's pods hang on.
const POD_BRIDGE: &str = "flopwatch-pods";

/// The names of a node's programs, in the order they start.
pub(crate) fn parts(node: &NodeLayout) -> [String; 4] {
    let [containerd, kubelet, proxy] = PROGRAMS.map(|part| format!("{}-{part}", node.name));
    [isolation::name(node), containerd, kubelet, proxy]
}

/// Starts the node's first process and puts its cable in.
pub(crate) fn found(cache: &Cache, layout: &Layout, node: &NodeLayout, nodes: &[NodeLayout]) -> Result<()> {
    let init = PAUSE.build(cache)?.join("pause");
    isolation::start(layout, node, &init).with_context(|| format!("isolating {}", node.name))?;
    network::attach(layout, node, nodes).with_context(|| format!("connecting {}", node.name))
}

/// Starts containerd and waits until it answers.
pub(crate) fn start_containerd(layout: &Layout, programs: &Path, node: &NodeLayout) -> Result<()> {
    let containerd = node.containerd();
    containerd.configure(programs, &node.path("cni/conf"))?;
    fs::write(
        node.path("cni/conf/10-flopwatch.conflist"),
        cni_config(node).to_string(),
    )?;
    let config = containerd.config().into_os_string();
    let daemon = start(
        layout,
        node,
        "containerd",
        &programs.join("containerd"),
        ["--config".into(), config],
    )?;
    containerd.wait(programs, &daemon)
}

/// Starts kubelet and kube-proxy.
pub(crate) fn start_kubelet(layout: &Layout, programs: &Path, node: &NodeLayout) -> Result<()> {
    let config = node.path("kubelet.json");
    fs::write(&config, kubelet_config(layout, node).to_string())?;
    let args = [
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", layout.kubeconfig(&node.name).display()),
        format!("--hostname-override={}", node.name),
        format!("--node-ip={}", node.address),
        format!("--root-dir={}", node.path("kubelet").display()),
    ];
    start(
        layout,
        node,
        "kubelet",
        &programs.join("kubelet"),
        args.map(OsString::from),
    )?;
    let config = node.path("kube-proxy.json");
    fs::write(&config, proxy_config(layout, node).to_string())?;
    let args = [OsString::from(format!("--config={}", config.display()))];
    start(layout, node, "kube-proxy", &programs.join("kube-proxy"), args).map(drop)
}

/// Waits until the API server calls the node ready.
pub(crate) fn wait_ready(cache: &Cache, layout: &Layout, node: &NodeLayout) -> Result<()> {
    let parts = parts(node).map(|name| Daemon::new(layout, &name));
    let ready = wait_until(Duration::from_secs(90), || {
        parts.iter().try_for_each(Daemon::must_live)?;
        Ok(status::is_ready(cache, layout, &node.name))
    })?;
    if !ready {
        let reports: Vec<String> = parts.iter().map(Daemon::report).collect();
        bail!("{} does not become ready\n{}", node.name, reports.join("\n"));
    }
    Ok(())
}

fn start(
    layout: &Layout,
    node: &NodeLayout,
    part: &str,
    program: &Path,
    args: impl IntoIterator<Item = OsString>,
) -> Result<Daemon> {
    let daemon = Daemon::new(layout, &format!("{}-{part}", node.name));
    daemon.start(Path::new("sh"), isolation::inside(layout, node, program, args)?)?;
    Ok(daemon)
}

fn cni_config(node: &NodeLayout) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": format!("flopwatch-{}", node.name),
        "plugins": [
            {
                "type": "bridge",
                "bridge": POD_BRIDGE,
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
        "containerRuntimeEndpoint": format!("unix://{}", node.containerd().socket().display()),
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
        // Renewed every 3 s: see the controller manager's grace period.
        "nodeLeaseDurationSeconds": 12,
        // Tests kill containers on purpose, and then wait for them: the least that kubelet takes.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        // The images cannot be pulled again, so none may be collected, and no pod evicted for a
        // full disk too early.
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
        // A pod that reaches itself or a neighbour through a Service gets its answer through it
        // too.
        "iptables": {"masqueradeAll": true},
    })
}
