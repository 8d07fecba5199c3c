//! Raw captures and collections in prepared containers that belong to no capture any more.
//!
//! They stay where an agent died and its captures were gone before the next one came. The session's
//! supervisor ends such a collection by itself; what it wrote lies in the pod's volume, and is
//! removed here.

mod traces;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::pod;
use flopwatch_api::preparation::PreparationWord;
use flopwatch_attach::graft::{GraftError, Target};
use flopwatch_pipeline::failure::chain;
use futures::StreamExt;
use tracing::{debug, info, warn};

use crate::node::host::grafted;
use crate::node::{Node, pods};
use crate::profilers::nsys::{clean, owner};

/// How long a container's files are waited for, and how long what was found in it may take to be
/// ended.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);
const CLEANUP_TIMEOUT: Duration = Duration::from_mins(3);
/// Containers that are looked at at once.
const MAX_CONCURRENT: usize = 8;

/// What belongs to no capture.
struct Leftovers {
    collection: Option<String>,
    captures: Vec<String>,
}

/// Looks into every prepared container of the node once; `keep` says whether a capture of that UID
/// is still to be taken. In the pod's volume for the profiler everything is Flopwatch's; elsewhere
/// nothing goes but what belonged to captures of `ours`, those of this node by their UIDs. A
/// container whose files do not answer is left for the next time, and holds up no other.
pub(super) async fn sweep(
    node: &Arc<Node>,
    ours: HashSet<String>,
    keep: impl Fn(&str) -> bool + Send + Sync + 'static,
) {
    let containers: Vec<String> = node
        .pods
        .state()
        .iter()
        .flat_map(|pod| {
            pod::prepared_containers(pod)
                .filter_map(|name| pods::running_container_id(pod, name))
                .collect::<Vec<_>>()
        })
        .collect();
    let keep = Arc::new(keep);
    let kept = Arc::clone(&keep);
    let is_orphan = move |uid: &str| ours.contains(uid) && !kept(uid);
    sweep_traces(node, &Arc::new(is_orphan)).await;
    let sweeps = containers.into_iter().map(|id| {
        let (node, keep) = (Arc::clone(node), Arc::clone(&keep));
        async move {
            let looked = tokio::task::spawn_blocking(move || {
                if let Some(target) = grafted(&node, &id) {
                    sweep_container(&node, &id, &target, keep);
                }
            });
            if let Err(error) = looked.await {
                warn!(%error, "the look for orphaned captures ended early");
            }
        }
    });
    futures::stream::iter(sweeps)
        .buffer_unordered(MAX_CONCURRENT)
        .collect::<()>()
        .await;
}

/// Looks into every container that was prepared for Kineto.
async fn sweep_traces(node: &Arc<Node>, is_orphan: &Arc<impl Fn(&str) -> bool + Send + Sync + 'static>) {
    for pod in node.pods.state() {
        let prepared = pod::prepared_for_anything(&pod)
            .filter(|name| pod::prepared_for(&pod, name).contains(PreparationWord::Kineto));
        for id in prepared.filter_map(|name| pods::running_container_id(&pod, name)) {
            let (node, is_orphan) = (Arc::clone(node), Arc::clone(is_orphan));
            let looked = tokio::task::spawn_blocking(move || {
                if let Some(process) = node.containers.first_process(&id) {
                    let (procfs, gate) = (node.containers.procfs(), &node.entering.gate);
                    traces::sweep_container(&procfs, gate, &id, process, move |capture| is_orphan(capture));
                }
            });
            if let Err(error) = looked.await {
                warn!(%error, "the look for orphaned traces ended early");
            }
        }
    }
}

fn sweep_container(node: &Node, id: &str, target: &Target, keep: Arc<impl Fn(&str) -> bool + Send + Sync + 'static>) {
    let (pid, gate) = (target.process.pid, &node.entering.gate);
    let key = format!("{id} sweep");
    let looking = target.clone();
    let found = match gate.within(&key, FILES_TIMEOUT, move || inspect(&looking, &*keep)) {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            debug!(pid, error = %chain(&error), "a container cannot be looked into for orphaned captures");
            return;
        }
        Err(error) => {
            warn!(pid, %error, "a container's files do not answer; what may be orphaned in it stays for now");
            return;
        }
    };
    let cleaning = target.clone();
    let cleaned = gate.within(&key, CLEANUP_TIMEOUT, move || end(&cleaning, found));
    match cleaned {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(pid, error = %chain(&error), "orphaned captures cannot be removed"),
        Err(error) => warn!(pid, %error, "orphaned captures are not removed in time"),
    }
}

fn inspect(target: &Target, keep: &impl Fn(&str) -> bool) -> Result<Leftovers, GraftError> {
    let is_orphan = |name: &String| owner(name).is_some_and(|uid| !keep(uid));
    Ok(Leftovers {
        collection: target.recorded()?.filter(is_orphan),
        captures: target.captures()?.into_iter().filter(is_orphan).collect(),
    })
}

fn end(target: &Target, found: Leftovers) -> Result<(), GraftError> {
    let pid = target.process.pid;
    if let Some(name) = found.collection {
        info!(pid, name, "found a collection that belongs to no capture");
        clean(target, &name);
    }
    for name in found.captures {
        let removed = target.remove_capture(&target.capture(&name))?;
        info!(pid, name, removed, "found a raw capture that belongs to no capture");
    }
    Ok(())
}
