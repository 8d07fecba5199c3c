//! Stopping the cluster and leaving nothing.

use super::daemon::Daemon;
use super::layout::{Layout, MAX_NODES, NodeLayout};
use super::{cgroups, host, network, require_root, status};
use anyhow::Result;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::{say, step};

/// Stops it; does nothing where there is none.
pub(crate) fn down(cache: &Cache, layout: &Layout) -> Result<()> {
    if !layout.exists() {
        say("the local cluster is down");
        return Ok(());
    }
    require_root()?;
    let _lock = cache.lock("cluster")?;
    clear(layout)
}

/// Removes everything of a cluster, however far it came.
pub(crate) fn clear(layout: &Layout) -> Result<()> {
    if !layout.exists() {
        return Ok(());
    }
    step("stopping the cluster", || {
        // The nodes first, with all that their programs would otherwise start again. Whatever the
        // last recipe had come to write down, a node's processes are those in its cgroup.
        cgroups::end_all_nodes(layout)?;
        let daemons = status::daemons(layout);
        daemons.iter().rev().try_for_each(Daemon::stop)?;
        let nodes: Vec<NodeLayout> = (1..=MAX_NODES).map(|number| NodeLayout::new(layout, number)).collect();
        network::remove(&nodes)?;
        host::restore(layout)?;
        layout.remove()
    })
}
