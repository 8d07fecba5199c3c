//! What each part of the cluster does.

use super::daemon::Daemon;
use super::layout::{Layout, nodes};
use super::{control_plane, network, node, reach};
use anyhow::{Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::golang::KUBERNETES;
use flopwatch_toolchain::progress::result;
use std::time::Duration;

/// All programs of the cluster.
pub(crate) fn daemons(layout: &Layout) -> Vec<Daemon> {
    let control = control_plane::PARTS.map(str::to_owned);
    let nodes = nodes(layout);
    let names = control.into_iter().chain(nodes.iter().flat_map(node::parts));
    names.map(|name| Daemon::new(layout, &name)).collect()
}

/// Whether every part runs and every node is ready.
pub(crate) fn is_up(cache: &Cache, layout: &Layout) -> Result<bool> {
    Ok(runs(cache, layout)? && nodes(layout).iter().all(|node| is_ready(cache, layout, &node.name)))
}

fn runs(cache: &Cache, layout: &Layout) -> Result<bool> {
    Ok(layout.exists() && KUBERNETES.built(cache)?.is_some() && daemons(layout).iter().all(Daemon::is_alive))
}

/// Waits until every node is ready: after an API server that was away, one is not for a moment. An
/// error where a part does not run.
pub(crate) fn wait_up(cache: &Cache, layout: &Layout) -> Result<()> {
    if !runs(cache, layout)? {
        bail!("the cluster is not up: cargo xtask cluster up");
    }
    nodes(layout)
        .iter()
        .try_for_each(|node| node::wait_ready(cache, layout, node))
}

/// Whether the API server calls a node ready.
pub(crate) fn is_ready(cache: &Cache, layout: &Layout, node: &str) -> bool {
    let ready = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
    let ask = |reach: reach::Reach| {
        reach
            .kubectl()
            .args(["get", "node", node, "-o", ready])
            .deadline(Duration::from_secs(10))
            .output()
    };
    reach::own_so_far(cache, layout)
        .and_then(ask)
        .is_ok_and(|status| status == "True")
}

/// Prints each part's state; an error when not all is well.
pub(crate) fn status(cache: &Cache, layout: &Layout) -> Result<()> {
    if !layout.exists() {
        result("the local cluster is down");
        bail!("start it: cargo xtask cluster up");
    }
    for daemon in daemons(layout) {
        let state = match daemon.pid() {
            Some(pid) => format!("runs (process {pid})"),
            None if daemon.was_started() => format!("ended; its log: {}", daemon.log.display()),
            None => "not started".to_owned(),
        };
        result(format_args!("{:<26} {state}", daemon.name));
    }
    for node in nodes(layout) {
        let state = if is_ready(cache, layout, &node.name) {
            "ready"
        } else {
            "not ready"
        };
        let cable = if network::is_connected(&node) {
            "connected"
        } else {
            "disconnected"
        };
        result(format_args!("{:<26} {state}, {cable}, {}", node.name, node.address));
        for image in node.containerd().imported() {
            result(format_args!("{:<26} image {image}", node.name));
        }
    }
    if is_up(cache, layout)? {
        return Ok(());
    }
    bail!("not all parts run; start anew: cargo xtask cluster up")
}
