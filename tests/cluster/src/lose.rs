//! Losing a node and getting it back, for tests and for looking what happens.

use super::daemon::Daemon;
use super::layout::{Layout, NodeLayout, nodes};
use super::{cgroups, network, node, require_root};
use anyhow::{Result, bail};
use clap::Subcommand;
use flopwatch_toolchain::cache::{Cache, remove};
use flopwatch_toolchain::golang::{CONTAINERD, KUBERNETES};
use flopwatch_toolchain::progress::say;

/// What happens to a node.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Pull its cable: all on it runs on, and reaches nobody.
    Disconnect {
        /// The node's name.
        node: String,
    },
    /// Put its cable back.
    Connect {
        /// The node's name.
        node: String,
    },
    /// Switch it off: every process on it is killed.
    Stop {
        /// The node's name.
        node: String,
    },
    /// Switch it on again, with what was on its disk.
    Start {
        /// The node's name.
        node: String,
    },
}

/// Does it; safe to run twice.
pub(crate) fn run(cache: &Cache, layout: &Layout, command: &NodeCommand) -> Result<()> {
    require_root()?;
    match command {
        NodeCommand::Disconnect { node } => {
            network::connect(&losable(layout, node)?, false)?;
            say(format_args!("{node} is disconnected"));
        }
        NodeCommand::Connect { node } => {
            network::connect(&losable(layout, node)?, true)?;
            say(format_args!("{node} is connected"));
        }
        NodeCommand::Stop { node } => {
            let _lock = cache.lock("cluster")?;
            stop(layout, &losable(layout, node)?)?;
            say(format_args!("{node} is off"));
        }
        NodeCommand::Start { node } => {
            let _lock = cache.lock("cluster")?;
            start(cache, layout, &losable(layout, node)?)?;
            say(format_args!("{node} is ready"));
        }
    }
    Ok(())
}

fn losable(layout: &Layout, name: &str) -> Result<NodeLayout> {
    let nodes = nodes(layout);
    let Some(node) = nodes.iter().find(|node| node.name == name) else {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        bail!("the local cluster has no node {name}; it has: {}", names.join(", "));
    };
    if node.is_gateway() {
        bail!("the API server reaches admission through {name}: lose another (cargo xtask cluster up --nodes 2)");
    }
    Ok(node.clone())
}

fn stop(layout: &Layout, node: &NodeLayout) -> Result<()> {
    cgroups::end(node)?;
    for name in node::parts(node) {
        Daemon::new(layout, &name).stop()?;
    }
    remove(&node.containerd().state())
}

fn start(cache: &Cache, layout: &Layout, node: &NodeLayout) -> Result<()> {
    if node::parts(node)
        .iter()
        .all(|name| Daemon::new(layout, name).is_alive())
    {
        return Ok(());
    }
    stop(layout, node)?;
    node::found(cache, layout, node, &nodes(layout))?;
    node::start_containerd(layout, &CONTAINERD.build(cache)?, node)?;
    node::start_kubelet(layout, &KUBERNETES.build(cache)?, node)?;
    node::wait_ready(cache, layout, node)
}
