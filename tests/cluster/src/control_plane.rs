//! etcd, the API server, the controller manager and the scheduler.

use super::daemon::Daemon;
use super::layout::{API_PORT, CONTROL_ADDRESS, ETCD_PORT, Layout, POD_NETWORK, SERVICE_NETWORK};
use anyhow::{Result, bail};
use flopwatch_toolchain::command::wait_until;
use flopwatch_toolchain::progress::step;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

use super::reach::Reach;

/// Names of the parts, in the order that they start.
pub(crate) const PARTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// The ports of this machine's loopback that they listen on (the API server's is on the rig's
/// bridge).
const LOOPBACK_PORTS: [(u16, &str); 4] = [
    (ETCD_PORT, "etcd"),
    (2380, "etcd"),
    (10257, "kube-controller-manager"),
    (10259, "kube-scheduler"),
];

/// An error that names a port which somebody else holds.
pub(crate) fn check_ports() -> Result<()> {
    for (port, part) in LOOPBACK_PORTS {
        if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            bail!(
                "{part} needs port {port} of 127.0.0.1: {error}. Is another Kubernetes running here? Use it with --use-kubeconfig, or stop it"
            );
        }
    }
    Ok(())
}

/// Starts etcd and the API server, and waits until it answers.
pub(crate) fn start_api(layout: &Layout, programs: &Path, reach: &Reach) -> Result<()> {
    step("starting etcd and the API server", || {
        Daemon::new(layout, "etcd").start(Path::new("etcd"), etcd_args(layout))?;
        start_api_server(layout, programs, reach)
    })
}

/// Ends the API server and starts it anew.
pub(crate) fn restart_api(layout: &Layout, programs: &Path, reach: &Reach) -> Result<()> {
    step("starting the API server anew", || {
        Daemon::new(layout, "kube-apiserver").stop()?;
        // The kernel takes a moment to give its address free.
        let is_free = || Ok(TcpListener::bind((CONTROL_ADDRESS, API_PORT)).is_ok());
        if !wait_until(Duration::from_secs(10), is_free)? {
            bail!("the API server's address does not become free");
        }
        start_api_server(layout, programs, reach)
    })
}

/// Starts the API server over etcd, and waits until it answers.
fn start_api_server(layout: &Layout, programs: &Path, reach: &Reach) -> Result<()> {
    let etcd = Daemon::new(layout, "etcd");
    let api = Daemon::new(layout, "kube-apiserver");
    api.start(&programs.join("kube-apiserver"), api_args(layout))?;
    let ready = wait_until(Duration::from_mins(2), || {
        etcd.must_live()?;
        api.must_live()?;
        Ok(reach
            .kubectl()
            .args(["get", "--raw", "/readyz"])
            .deadline(Duration::from_secs(10))
            .quiet()
            .is_ok())
    })?;
    if !ready {
        bail!(
            "the API server does not become ready\n{}\n{}",
            etcd.report(),
            api.report()
        );
    }
    Ok(())
}

/// Starts what works through the API server.
pub(crate) fn start_controllers(layout: &Layout, programs: &Path) -> Result<()> {
    let manager = Daemon::new(layout, "kube-controller-manager");
    manager.start(&programs.join("kube-controller-manager"), manager_args(layout))?;
    let scheduler = Daemon::new(layout, "kube-scheduler");
    scheduler.start(&programs.join("kube-scheduler"), scheduler_args(layout))
}

fn etcd_args(layout: &Layout) -> Vec<String> {
    let client = format!("http://127.0.0.1:{ETCD_PORT}");
    vec![
        format!("--data-dir={}", layout.root().join("etcd").display()),
        // Nothing in it outlives the cluster.
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
    ]
}

fn api_args(layout: &Layout) -> Vec<String> {
    let pki = |file: &str| layout.pki(file).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"),
        format!("--bind-address={CONTROL_ADDRESS}"),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={CONTROL_ADDRESS}"),
        format!("--service-cluster-ip-range={SERVICE_NETWORK}"),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", pki("service-account.pub")),
        format!("--service-account-signing-key-file={}", pki("service-account.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--kubelet-client-certificate={}", pki("apiserver-kubelet.crt")),
        format!("--kubelet-client-key={}", pki("apiserver-kubelet.key")),
        format!("--kubelet-certificate-authority={}", pki("ca.crt")),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--profiling=false".to_owned(),
    ]
}

fn manager_args(layout: &Layout) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", layout.kubeconfig("controller-manager").display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--root-ca-file={}", layout.pki("ca.crt").display()),
        format!(
            "--service-account-private-key-file={}",
            layout.pki("service-account.key").display()
        ),
        format!("--cluster-cidr={POD_NETWORK}"),
        "--use-service-account-credentials".to_owned(),
        // Tests lose nodes and wait until it is noticed; kubelet renews its lease four times as
        // often.
        "--node-monitor-period=2s".to_owned(),
        "--node-monitor-grace-period=15s".to_owned(),
        "--leader-elect=false".to_owned(),
    ]
}

fn scheduler_args(layout: &Layout) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", layout.kubeconfig("scheduler").display()),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
    ]
}
