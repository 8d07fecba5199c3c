//! Waits until published artifacts are replicated to the object store.

use std::time::Duration;

use flopwatch_api::session::StorageMode;
use flopwatch_artifacts::Manifest;
use flopwatch_pipeline::failure::Failure;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::warn;

use super::context::Context;
use super::outcome::Replication;
use crate::node::storage::{failure_of, too_slow};

/// Pause before the first new try; each is twice as long as the one before.
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Waits for replicas in the object store where the capture succeeds only with them. What was
/// published stays on the node whatever comes of it.
pub(super) async fn replicate(cx: &mut Context<'_>, manifest: &Manifest) -> Result<Replication, Failure> {
    let storage = &cx.node.storage;
    let bucket = match (storage.mode(&cx.capture.spec), storage.bucket()) {
        (StorageMode::Node, _) | (StorageMode::Replicated, None) => return Ok(Replication::None),
        (StorageMode::Replicated, Some(_)) => return Ok(Replication::Due),
        (StorageMode::Durable, None) => return Err(storage.refusal()),
        (StorageMode::Durable, Some(bucket)) => bucket.clone(),
    };
    let deadline = Instant::now() + storage.patience();
    let mut pause = MIN_RETRY_INTERVAL;
    cx.draft.storing();
    cx.advance((1, 2), "copying the artifacts to the object store");
    loop {
        let tried = tokio::select! {
            tried = timeout_at(deadline, cx.node.store.copy_to(&bucket, manifest)) => tried,
            () = cx.aborted() => return Err(cx.interrupted().err().unwrap_or_else(too_slow)),
        };
        let (failure, passing) = match tried {
            Ok(Ok(sha256)) => {
                cx.node.metrics.upload(None);
                let url = bucket.url(&manifest.capture);
                return Ok(Replication::Stored { url, sha256 });
            }
            Ok(Err(error)) => failure_of(&error),
            Err(_elapsed) => (too_slow(), false),
        };
        cx.node.metrics.upload(Some(failure.reason));
        if !passing || Instant::now() + pause >= deadline {
            return Err(failure);
        }
        warn!(
            why = failure.message,
            ?pause,
            "the object store did not take the artifacts, trying again"
        );
        cx.advance((1, 2), &format!("{}; trying again", failure.message));
        tokio::select! {
            () = sleep(pause) => {}
            () = cx.aborted() => return Err(cx.interrupted().err().unwrap_or(failure)),
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
