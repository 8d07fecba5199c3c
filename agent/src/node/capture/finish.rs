//! How a capture ends: what is cleaned up, and what its status says at last.

use std::sync::Arc;

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::ProcessId;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{CLEAN_UP, Failed, Published, REFUSED, Replication, Work, fleet};
use crate::adoption::Ended;
use crate::failure::Failure;
use crate::folder;
use crate::node::writer::Delivery;
use crate::node::{journal, spool};

impl Work<'_> {
    /// A step that failed while the node's disk is full failed because of that.
    fn blame(&self, mut failed: Failed) -> Failed {
        let wrote = [
            CaptureReason::CollectionFailed,
            CaptureReason::ImportFailed,
            CaptureReason::TransformFailed,
            CaptureReason::StoreFailed,
        ];
        if wrote.contains(&failed.failure.reason)
            && let Err(full) = spool::check_free(&self.node.spool, self.node.limits.floor)
        {
            let message = format!("{}; {}", full.message, failed.failure.message);
            failed.failure = Failure::new(full.reason, message);
        }
        failed
    }

    /// Cleans up and says how it ended.
    pub(super) async fn finish(mut self, ended: Result<Published, Failed>) {
        // Before anything is removed: the files that filled the disk may be the capture's own.
        let mut ended = ended.map_err(|failed| self.blame(failed));
        if let Err(failed) = &mut ended {
            if self.is_handed_over() {
                info!(stage = self.draft.stage().as_str(), "left to the agent that comes next");
                // It is not the last word on the capture.
                let _: Delivery = self.writer.finish().await;
                return;
            }
            self.journal.failed = Some(Ended::from(&failed.failure));
            // Of the pod as it is now; the rows of one that succeeded say what it was when they were made.
            self.identify();
            let noted = self.remember().await;
            if let Err(error) = &noted {
                warn!(%error, "a restart now would give the capture another reason");
            }
            // Another capture may be at work in one that was left.
            if self.claim.holds() {
                self.clean_container().await;
            }
            if matches!(
                failed.failure.reason,
                CaptureReason::ContainerRestarted | CaptureReason::TargetNotRunning
            ) {
                self.node.left_behind.notify_one();
            }
            // The next agent would take what it finds in the store for a success.
            if noted.is_ok() {
                self.keep_raw(failed).await;
            }
        }
        if self.journal.fleet.is_none() {
            self.identify();
        }
        let (spool, journal_file, node) = (self.spool.clone(), self.journal_file.clone(), Arc::clone(self.node));
        match self.end(ended).await {
            Delivery::Written | Delivery::Gone => {
                folder::remove(&spool, &node.steps).await;
                journal::remove(&journal_file);
            }
            Delivery::Unwritten => info!("the agent that comes next says how the capture ended"),
            Delivery::Refused => {
                // It is adopted once more, and so often at most as any.
                warn!(pause = ?REFUSED, "the API server refuses how the capture ended; it is told otherwise after a pause");
                node.stop.run_until_cancelled(sleep(REFUSED)).await;
            }
        }
    }

    /// Says how it ended, and waits until the API server knows.
    async fn end(mut self, ended: Result<Published, Failed>) -> Delivery {
        self.leave_stage();
        let now = Timestamp::now();
        let url = self.node.url_of(self.capture);
        let reason = match ended {
            Ok(Published {
                artifacts,
                summary,
                message,
                storage,
            }) => {
                info!(result = message, "succeeded");
                self.replicated(storage);
                self.draft.succeed(artifacts, summary, Some(url), &message, now);
                CaptureReason::Succeeded
            }
            Err(Failed {
                failure,
                summary,
                kept,
                storage,
            }) => {
                info!(reason = %failure.reason, why = failure.message, "failed");
                self.draft.fail(&failure, summary, now);
                if !kept.is_empty() {
                    match storage {
                        Some(storage) => self.replicated(storage),
                        None => self.draft.not_stored(&failure),
                    }
                    self.draft.keep(kept, Some(url));
                }
                failure.reason
            }
        };
        self.node.metrics.capture_ended(reason);
        self.write();
        let delivery = self.writer.finish().await;
        if matches!(delivery, Delivery::Written | Delivery::Gone) {
            fleet::settle(self.node, &self.journal, self.draft.status(), &self.spool).await;
        }
        self.node.storage.notify();
        delivery
    }

    fn replicated(&mut self, storage: Replication) {
        match storage {
            Replication::None => {}
            Replication::Due => self.draft.storing(),
            Replication::Stored { url, sha256 } => self.draft.stored(url, sha256),
        }
    }

    /// Ends the collection and throws away what it recorded, where there is a container to do it in. Safe to run twice.
    pub(super) async fn clean_container(&self) {
        let status = self.capture.status.as_ref();
        let attached = match &self.journal.attached {
            Some(attached) => Some((attached.profiler.type_, attached.container_id.clone())),
            // Its journal is lost: the status tells what it was attached to.
            None => status.and_then(|status| status.profiler.zip(status.container_id.clone())),
        };
        let Some((type_, id)) = attached else { return };
        let Some(profiler) = self.node.profilers.get(type_).cloned() else {
            return;
        };
        // The process is replaced below by the container's own.
        let mut site = self.site(&id, ProcessId { pid: 0, start_time: 0 });
        let cleaning = tokio::task::spawn_blocking(move || {
            if let Some(process) = site.containers.first_process(&site.container_id) {
                site.process = process;
                profiler.discard(&site);
            }
        });
        match timeout(CLEAN_UP, cleaning).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cleaning up in the container failed"),
            Err(_) => {
                warn!(limit = ?CLEAN_UP, "cleaning up in the container takes too long; the session's supervisor ends what is left");
            }
        }
    }
}
