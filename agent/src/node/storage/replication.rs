//! Replicas in the object store, the limits of the node's own disk, and addresses: what is kept
//! right of captures that have ended.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_api::session::StorageMode;
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_artifacts::{CaptureId, EvictionLimits};
use flopwatch_pipeline::failure::chain;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use super::{failure_of, too_slow};
use crate::node::Node;
use crate::node::capture_id::capture_id;
use crate::node::captures::Captures;
use crate::node::writer::Target;
use crate::status::Draft;

/// Time between two looks at what is still to be copied and at the limits.
const POLL_INTERVAL: Duration = Duration::from_mins(1);
/// Captures that are copied at once.
const MAX_CONCURRENT: usize = 2;
/// Longest copy of one capture; the next look goes on with it.
const COPY_TIMEOUT: Duration = Duration::from_mins(30);

/// Whether replicas of a capture are still to be made: those of which the status has no digest are
/// read by nobody.
fn is_due(status: &CaptureStatus, mode: StorageMode) -> bool {
    let stored = status.store_url.is_some() && status.store_sha256.is_some();
    mode != StorageMode::Node && !status.artifacts.is_empty() && !stored && status.url.is_some()
}

/// Copies what is to be copied, keeps the limits, and keeps addresses right, until the node is told
/// to stop.
pub(in crate::node) async fn keep(node: Arc<Node>, captures: Arc<Captures>) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = async {
            tokio::select! {
                _ = ticks.tick() => {}
                () = node.storage.notify.notified() => {}
            }
        };
        if node.stop.run_until_cancelled(next).await.is_none() {
            return;
        }
        let ended = captures.ended();
        let work = async {
            readdress(&node, &ended).await;
            evict(&node, &captures, &ended).await;
            copy(&node, &ended).await;
        };
        if node.stop.run_until_cancelled(work).await.is_none() {
            return;
        }
    }
}

/// Says where artifacts are served now: an agent that starts anew has another address.
async fn readdress(node: &Node, ended: &[Arc<Capture>]) {
    for capture in ended {
        let url = node.url_of(capture);
        let elsewhere = capture.status.as_ref().and_then(|status| status.url.as_ref());
        if elsewhere.is_some_and(|known| *known != url) {
            change(node, capture, |draft| draft.serve_at(url.clone())).await;
        }
    }
}

/// Keeps the node's limits.
async fn evict(node: &Node, captures: &Captures, ended: &[Arc<Capture>]) {
    let limits = node.storage.limits();
    if limits == EvictionLimits::default() {
        return;
    }
    let copied = ended.iter().filter(|capture| {
        let status = capture.status.as_ref();
        status.is_some_and(|status| status.store_sha256.is_some())
    });
    let copied: HashSet<CaptureId> = copied.map(|capture| capture_id(capture.as_ref())).collect();
    match node.store.evict_captures(limits, &copied, &captures.busy()).await {
        Ok(gone) => {
            for id in gone {
                info!(
                    namespace = id.namespace,
                    capture = id.name,
                    "artifacts left the node to keep its limits"
                );
                node.metrics.evicted();
                let message = "the node removed the artifacts to keep within its limits of size and age";
                if let Some(capture) = ended.iter().find(|capture| capture_id(capture.as_ref()) == id) {
                    change(node, capture, |draft| draft.evict(message)).await;
                }
            }
        }
        Err(error) => {
            warn!(error = %chain(&error), "the limits of the node's artifacts cannot be kept and are tried again");
        }
    }
}

/// Copies what has no replicas yet and is to have some.
async fn copy(node: &Node, ended: &[Arc<Capture>]) {
    let Some(bucket) = node.storage.bucket() else {
        return;
    };
    let due = ended.iter().filter(|capture| {
        let mode = node.storage.mode(&capture.spec);
        capture.status.as_ref().is_some_and(|status| is_due(status, mode))
    });
    let due: Vec<Arc<Capture>> = due.cloned().collect();
    node.metrics.uploads_due(due.len());
    // Boxed: the compiler cannot tell otherwise that they live long enough.
    let copies: Vec<BoxFuture<'_, ()>> = due
        .iter()
        .map(|capture| copy_one(node, bucket, capture).boxed())
        .collect();
    futures::stream::iter(copies)
        .buffer_unordered(MAX_CONCURRENT)
        .collect::<()>()
        .await;
}

async fn copy_one(node: &Node, bucket: &Bucket, capture: &Capture) {
    let id = capture_id(capture);
    let manifest = match node.store.get(&id.namespace, &id.name).await {
        Ok(Some(manifest)) if manifest.capture == id => manifest,
        // Gone since it was listed.
        Ok(_) => return,
        Err(error) => {
            warn!(capture = id.name, error = %chain(&error), "a capture cannot be copied to the object store");
            return;
        }
    };
    let copied = match timeout(COPY_TIMEOUT, node.store.copy_to(bucket, &manifest)).await {
        Ok(Ok(sha256)) => Ok(sha256),
        Ok(Err(error)) => Err(failure_of(&error).0),
        Err(_) => Err(too_slow()),
    };
    node.metrics.upload(copied.as_ref().err().map(|failure| failure.reason));
    let told = match &copied {
        Ok(sha256) => {
            info!(
                namespace = id.namespace,
                capture = id.name,
                "copied to the object store"
            );
            change(node, capture, |draft| draft.stored(bucket.url(&id), sha256.clone())).await
        }
        Err(failure) => {
            warn!(capture = id.name, reason = %failure.reason, why = failure.message, "the object store did not take a capture");
            change(node, capture, |draft| draft.not_stored(failure)).await
        }
    };
    if !told && copied.is_ok() {
        // Deleted meanwhile: whoever deleted it may have found nothing to remove yet.
        node.storage.forget(&id).await;
    }
}

/// Changes the status of a capture that ended. False when it is gone or going.
async fn change(node: &Node, capture: &Capture, edit: impl Fn(&mut Draft)) -> bool {
    let target = Target::new(node.client.clone(), capture);
    let seen = match target.read().await {
        Ok(Some(seen)) if seen.metadata.deletion_timestamp.is_none() => seen,
        Ok(_) => return false,
        Err(error) => {
            warn!(error = %chain(&error), "the status of a capture is changed later");
            return true;
        }
    };
    let before = Draft::new(seen.status.as_ref(), seen.metadata.generation);
    let mut draft = before.clone();
    edit(&mut draft);
    if draft != before
        && let Err(error) = target.apply_over(&seen, draft.status()).await
    {
        warn!(error = %chain(&error), "the status of a capture is changed later");
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_on_the_node_and_not_in_the_store_is_due() {
        let artifact = json!([{"name": "a", "type": "Summary", "bytes": 1, "sha256": "0", "mediaType": "x"}]);
        let status = |value: serde_json::Value| -> CaptureStatus { serde_json::from_value(value).unwrap() };
        let here = status(json!({"artifacts": artifact, "url": "https://10.0.0.1:8443/x"}));
        let there = status(json!({
            "artifacts": artifact, "url": "https://10.0.0.1:8443/x", "storeUrl": "s3://b/x", "storeSha256": "0a".repeat(32)
        }));
        let gone = status(json!({"artifacts": artifact, "storeUrl": "s3://b/x", "storeSha256": "0a".repeat(32)}));
        // As an earlier version left it.
        let unverified =
            status(json!({"artifacts": artifact, "url": "https://10.0.0.1:8443/x", "storeUrl": "s3://b/x"}));
        assert!(is_due(&here, StorageMode::Replicated) && is_due(&here, StorageMode::Durable));
        assert!(is_due(&unverified, StorageMode::Replicated));
        assert!(!is_due(&here, StorageMode::Node) && !is_due(&there, StorageMode::Replicated));
        assert!(!is_due(&gone, StorageMode::Replicated) && !is_due(&CaptureStatus::default(), StorageMode::Replicated));
    }
}
