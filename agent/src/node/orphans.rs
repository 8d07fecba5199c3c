//! Raw captures and collections in prepared containers that belong to no capture any more.
//!
//! They stay where an agent died and its captures were gone before the next one came. The session's keeper ends such a
//! collection by itself; what it wrote lies in the pod's volume, and is removed here.

use std::sync::Arc;

use flopwatch_api::preparation::{PREPARED_ANNOTATION, split_names};
use flopwatch_attach::graft::{GraftError, Target};
use tracing::{debug, info, warn};

use crate::failure::chain;
use crate::node::work::{clean, grafted};
use crate::node::{Node, pods};

/// Beginning of the names of raw captures that agents take.
const PREFIX: &str = "capture-";

/// Name of a capture's raw capture in its container, without its extension.
pub(super) fn file_name(uid: &str) -> String {
    format!("{PREFIX}{uid}")
}

/// The capture that a raw capture belongs to; none when no agent named it.
fn owner(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Looks into every prepared container of the node once; `keep` says whether a capture of that UID is still to be taken.
pub(super) async fn sweep(node: &Arc<Node>, keep: impl Fn(&str) -> bool + Send + 'static) {
    let containers: Vec<String> = node
        .pods
        .state()
        .iter()
        .flat_map(|pod| {
            let prepared = pods::annotation(pod, PREPARED_ANNOTATION).unwrap_or_default();
            split_names(prepared)
                .filter_map(|name| pods::running_container_id(pod, name))
                .collect::<Vec<_>>()
        })
        .collect();
    let node = Arc::clone(node);
    let looked = tokio::task::spawn_blocking(move || {
        for id in containers {
            if let Some(target) = grafted(&node, &id) {
                sweep_container(&target, &keep);
            }
        }
    });
    if let Err(error) = looked.await {
        warn!(%error, "the look for orphaned captures ended early");
    }
}

fn sweep_container(target: &Target, keep: &impl Fn(&str) -> bool) {
    let is_orphan = |name: &str| owner(name).is_some_and(|uid| !keep(uid));
    let look = || {
        if let Some(name) = target.recorded()?.filter(|name| is_orphan(name)) {
            info!(
                pid = target.process.pid,
                name, "found a collection that belongs to no capture"
            );
            clean(target, &name);
        }
        for name in target.captures()?.into_iter().filter(|name| is_orphan(name)) {
            let removed = target.remove_capture(&target.capture(&name))?;
            info!(
                pid = target.process.pid,
                name, removed, "found a raw capture that belongs to no capture"
            );
        }
        Ok::<_, GraftError>(())
    };
    if let Err(error) = look() {
        debug!(pid = target.process.pid, error = %chain(&error), "a container cannot be looked into for orphaned captures");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_agent_named_has_an_owner() {
        assert_eq!(owner(&file_name("0-1")), Some("0-1"));
        for name in ["start", "x-capture-1", ""] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
