//! Stopping the cluster and leaving nothing.

use super::layout::{Layout, nodes};
use super::{containers, host, mounts, network, require_root, status};
use crate::cache::Cache;
use crate::progress::{say, step};
use anyhow::Result;

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
    let nodes = nodes(layout);
    step("stopping the cluster", || {
        // Those first that would start others again: kube-proxy and kubelet are the last of the list.
        for daemon in status::daemons(layout)
            .iter()
            .rev()
            .filter(|daemon| !daemon.name.ends_with("-containerd"))
        {
            daemon.stop()?;
        }
        containers::end()?;
        for daemon in status::daemons(layout)
            .iter()
            .filter(|daemon| daemon.name.ends_with("-containerd"))
        {
            daemon.stop()?;
        }
        nodes.iter().try_for_each(containers::end_shims)?;
        containers::remove_sessions();
        mounts::unmount_below(layout.root())?;
        network::remove(&nodes)?;
        host::restore(layout)?;
        layout.remove()
    })
}
