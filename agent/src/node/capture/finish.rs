//! How a capture ends: what is cleaned up, and what its status says at last.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::ProcessId;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::folder;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::context::Context;
use super::outcome::{Failed, Published, Replication};
use super::{fleet_row, raw};
use crate::adoption::FailureRecord;
use crate::node::writer::Delivery;
use crate::node::{journal, spool};
use crate::status::Draft;

/// Longest clean-up of one container.
const CLEANUP_TIMEOUT: Duration = Duration::from_mins(1);
/// Pause before a capture is taken up again whose end the API server refused.
const REJECTED_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// A step that failed while the node's disk is full failed because of that.
fn blame(cx: &Context<'_>, mut failed: Failed) -> Failed {
    let wrote = [
        CaptureReason::CollectionFailed,
        CaptureReason::ImportFailed,
        CaptureReason::TransformFailed,
        CaptureReason::StoreFailed,
    ];
    if wrote.contains(&failed.failure.reason)
        && let Err(full) = spool::check_free(&cx.node.spool, cx.node.limits.floor)
    {
        let message = format!("{}; {}", full.message, failed.failure.message);
        failed.failure = Failure::new(full.reason, message);
    }
    failed
}

/// Cleans up and says how it ended.
pub(super) async fn finish(mut cx: Context<'_>, ended: Result<Published, Failed>) {
    // Before anything is removed: the files that filled the disk may be the capture's own.
    let mut ended = ended.map_err(|failed| blame(&cx, failed));
    if let Err(failed) = &mut ended {
        if cx.is_handed_over() {
            info!(stage = cx.draft.stage().as_str(), "left to the agent that comes next");
            // It is not the last word on the capture.
            let _: Delivery = cx.writer.finish().await;
            return;
        }
        cx.journal.failed = Some(FailureRecord::from(&failed.failure));
        // Of the pod as it is now; the rows of one that succeeded say what it was when they were
        // made.
        fleet_row::identify(&mut cx);
        let noted = cx.note().await;
        if let Err(error) = &noted {
            warn!(%error, "a restart now would give the capture another reason");
        }
        // Another capture may be at work in one that was left.
        if cx.lease.holds() {
            clean_container(&cx).await;
        }
        if matches!(
            failed.failure.reason,
            CaptureReason::ContainerRestarted | CaptureReason::TargetNotRunning
        ) {
            cx.node.left_behind.notify_one();
        }
        // The next agent would take what it finds in the store for a success.
        if noted.is_ok() {
            raw::keep(&mut cx, failed).await;
        }
    }
    if cx.journal.fleet.is_none() {
        fleet_row::identify(&mut cx);
    }
    let (spool, journal_file, node) = (cx.spool.clone(), cx.journal_file.clone(), Arc::clone(cx.node));
    match end(cx, ended).await {
        Delivery::Written | Delivery::Gone => {
            folder::remove(&spool, &node.steps).await;
            journal::remove(&journal_file);
        }
        Delivery::Unwritten => info!("the agent that comes next says how the capture ended"),
        Delivery::Refused => {
            // It is adopted once more, and so often at most as any.
            warn!(pause = ?REJECTED_RETRY_INTERVAL, "the API server refuses how the capture ended; it is told otherwise after a pause");
            node.stop.run_until_cancelled(sleep(REJECTED_RETRY_INTERVAL)).await;
        }
    }
}

/// Says how it ended, and waits until the API server knows.
async fn end(mut cx: Context<'_>, ended: Result<Published, Failed>) -> Delivery {
    cx.leave_status_stage();
    let now = Timestamp::now();
    let url = cx.node.url_of(cx.capture);
    let reason = match ended {
        Ok(Published {
            artifacts,
            summary,
            message,
            storage,
        }) => {
            info!(result = message, "succeeded");
            replicated(&mut cx.draft, storage);
            cx.draft.succeed(artifacts, summary, Some(url), &message, now);
            CaptureReason::Succeeded
        }
        Err(Failed {
            failure,
            summary,
            kept,
            storage,
        }) => {
            info!(reason = %failure.reason, why = failure.message, "failed");
            cx.draft.fail(&failure, summary, now);
            if !kept.is_empty() {
                match storage {
                    Some(storage) => replicated(&mut cx.draft, storage),
                    None => cx.draft.not_stored(&failure),
                }
                cx.draft.keep(kept, Some(url));
            }
            failure.reason
        }
    };
    cx.node.metrics.capture_ended(reason);
    cx.write();
    let delivery = cx.writer.finish().await;
    if matches!(delivery, Delivery::Written | Delivery::Gone) {
        fleet_row::settle(cx.node, &cx.journal, cx.draft.status(), &cx.spool).await;
    }
    cx.node.storage.notify();
    delivery
}

fn replicated(draft: &mut Draft, storage: Replication) {
    match storage {
        Replication::None => {}
        Replication::Due => draft.storing(),
        Replication::Stored { url, sha256 } => draft.stored(url, sha256),
    }
}

/// Ends the collection and throws away what it recorded, where there is a container to do it in.
/// Safe to run twice.
pub(super) async fn clean_container(cx: &Context<'_>) {
    let status = cx.capture.status.as_ref();
    let attached = match cx.journal.stage.attached() {
        Some(attached) => Some((attached.profiler.type_, attached.container_id.clone())),
        // Its journal is lost: the status tells what it was attached to.
        None => status.and_then(|status| status.profiler.zip(status.container_id.clone())),
    };
    let Some((type_, id)) = attached else { return };
    let Some(profiler) = cx.node.profilers.get(type_).cloned() else {
        return;
    };
    // The process is replaced below by the container's own.
    let mut site = cx.site(&id, ProcessId { pid: 0, start_time: 0 });
    let cleaning = tokio::task::spawn_blocking(move || {
        if let Some(process) = site.containers.first_process(&site.container_id) {
            site.process = process;
            profiler.discard(&site);
        }
    });
    match timeout(CLEANUP_TIMEOUT, cleaning).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "cleaning up in the container failed"),
        Err(_) => {
            warn!(limit = ?CLEANUP_TIMEOUT, "cleaning up in the container takes too long; the session's supervisor ends what is left");
        }
    }
}
