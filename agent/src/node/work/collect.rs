//! The window: the collection in the container and the NVML samples beside it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::NSYS_SESSION;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::{Bounds, GraftError, Target};
use flopwatch_attach::nsys::SessionState;
use flopwatch_attach::rootfs::{ContainerRoot, RootfsError};
use flopwatch_launcher::guard::Verdict;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::Work;
use super::probe::Probed;
use crate::failure::{Failure, chain};
use crate::node::{pods, spool};
use crate::plan::{Window, WindowStep, window};
use crate::transform::Samples;

/// Beyond the window's end, the session's keeper stops the collection by itself.
const GUARD_GRACE: Duration = Duration::from_secs(30);
/// Longest time between two looks at an open window.
const TICK: Duration = Duration::from_millis(250);

/// What the window left.
#[derive(Debug)]
pub(super) struct Collected {
    /// The raw capture, taken out of the container; none for metrics alone.
    pub(super) raw: Option<PathBuf>,
    /// The NVML samples.
    pub(super) samples: Samples,
}

impl Work<'_> {
    /// Records a window with the container's session and takes the capture out.
    pub(super) async fn collect_nsys(&mut self, probed: &Probed) -> Result<Collected, Failure> {
        spool::check_free(&self.node.spool, self.node.limits.free_bytes)?;
        spool::make(&self.spool, self.node.steps.limits().user)?;
        let length = self.length();
        let name = self.file_name();
        let bounds = Bounds {
            limit: length + GUARD_GRACE,
            max_bytes: self.node.limits.capture_bytes,
            min_free_bytes: self.node.limits.free_bytes,
        };
        let (grafted, start_name) = (probed.grafted.clone(), name.clone());
        blocking(CaptureReason::AttachFailed, move || {
            grafted
                .start_collection(NSYS_SESSION, &start_name, false, bounds)
                .map_err(|error| attach_failure(&error))
        })
        .await?;
        let samples = self.open_window(probed, length).await?;

        self.enter(Stage::Fetching, "taking the capture out of the container");
        let to = self.spool.join("capture.qdstrm");
        let limits = self.node.limits;
        let (grafted, folder) = (probed.grafted.clone(), self.node.spool.clone());
        let fetch_to = to.clone();
        blocking(CaptureReason::CollectionFailed, move || {
            let path = grafted
                .stop_collection(NSYS_SESSION, &name)
                .map_err(|error| stop_failure(&grafted, &error))?;
            if let Some(verdict) = grafted.guard_verdict()
                && verdict != Verdict::Deadline
            {
                return Err(verdict_failure(verdict));
            }
            fetch(
                &grafted,
                &path,
                &fetch_to,
                limits.capture_bytes,
                &folder,
                limits.free_bytes,
            )
        })
        .await?;
        Ok(Collected { raw: Some(to), samples })
    }

    /// Records a window of NVML samples alone.
    pub(super) async fn collect_metrics(&mut self, probed: &Probed) -> Result<Collected, Failure> {
        spool::check_free(&self.node.spool, self.node.limits.free_bytes)?;
        spool::make(&self.spool, self.node.steps.limits().user)?;
        let samples = self.open_window(probed, self.length()).await?;
        if samples.series.is_empty() {
            let message =
                "no process of the container was seen on a GPU within the window, so there is nothing to show";
            return Err(Failure::new(CaptureReason::RequiredEventsMissing, message));
        }
        self.enter(Stage::Fetching, "gathering the samples");
        Ok(Collected { raw: None, samples })
    }

    fn length(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.capture.spec.duration_seconds).unwrap_or(1))
    }

    /// Keeps the window open to its end, or aborts it.
    async fn open_window(&mut self, probed: &Probed, length: Duration) -> Result<Samples, Failure> {
        let window_start_utc_ns = utc_ns();
        let interval = u64::try_from(self.capture.spec.metrics.interval_milliseconds).unwrap_or(100);
        let sampling = self.node.sample(&probed.container_id, Duration::from_millis(interval));
        self.draft.window_opened(Timestamp::now());
        self.enter(Stage::Collecting, "recording");
        let opened = Instant::now();
        loop {
            let interrupt = *self.interrupts.borrow_and_update();
            let seen = Window {
                elapsed: opened.elapsed(),
                length,
                pinned: self.is_pinned(probed),
                interrupt,
            };
            match window(seen, TICK) {
                WindowStep::Close => break,
                WindowStep::Abort(failure) => return Err(failure),
                WindowStep::Stay(time) => {
                    let message = format!("recording, {} of {} s", seen.elapsed.as_secs(), length.as_secs());
                    self.advance((seen.elapsed.as_millis(), length.as_millis()), &message);
                    tokio::select! {
                        () = sleep(time) => {}
                        changed = self.interrupts.changed() => {
                            if changed.is_err() {
                                // Nobody is left who could interrupt; the window goes on.
                                sleep(time).await;
                            }
                        }
                    }
                }
            }
        }
        let window_ns = u64::try_from(opened.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut samples = sampling.finish();
        samples.window_start_utc_ns = window_start_utc_ns;
        samples.window_ns = window_ns;
        Ok(samples)
    }

    /// Whether the container still runs under the ID that it had at the start.
    fn is_pinned(&self, probed: &Probed) -> bool {
        let spec = &self.capture.spec;
        let namespace = self.capture.namespace().unwrap_or_default();
        let watched = pods::find(&self.node.pods, &namespace, &spec.pod_ref)
            .and_then(|pod| pods::running_container_id(&pod, &spec.container_name));
        watched.as_deref() == Some(probed.container_id.as_str()) && self.node.procfs.is_alive(probed.process)
    }
}

/// Ends a collection that may run and removes the capture's file. Says only in the log what did not work: the session's
/// keeper ends what is left.
pub(super) fn clean(grafted: &Target, name: &str) {
    match grafted.session_state(NSYS_SESSION) {
        Ok(SessionState::Collecting) => {
            if let Err(error) = grafted.discard_collection(NSYS_SESSION, name) {
                warn!(error = %chain(&error), "discarding the collection failed");
            }
        }
        Ok(_) => {}
        Err(error) => debug!(error = %chain(&error), "the session cannot be asked"),
    }
    let root = ContainerRoot::open(&grafted.procfs, grafted.process);
    match root.and_then(|root| root.remove(&grafted.capture(name))) {
        Ok(removed) => debug!(removed, "removed the raw capture in the container"),
        Err(error) => debug!(error = %chain(&error), "the raw capture in the container cannot be removed"),
    }
}

/// Copies the capture out while the disk has room.
fn fetch(grafted: &Target, path: &Path, to: &Path, limit: u64, spool: &Path, floor: u64) -> Result<(), Failure> {
    let mut file = File::create(to).map_err(Failure::because(CaptureReason::CollectionFailed))?;
    let mut looked_at = 0_u64;
    let has_room = |copied: u64| {
        // Asking the file system for every block would cost more than the copy.
        if copied.saturating_sub(looked_at) < LOOK_EVERY {
            return true;
        }
        looked_at = copied;
        spool::check_free(spool, floor).is_ok()
    };
    match grafted.take_capture(path, &mut file, limit, has_room) {
        Ok(bytes) => {
            debug!(bytes, "took the raw capture out");
            Ok(())
        }
        Err(GraftError::Files(RootfsError::TooLarge { .. })) => Err(verdict_failure(Verdict::TooLarge)),
        Err(GraftError::Files(RootfsError::Stopped { .. })) => Err(verdict_failure(Verdict::NoSpace)),
        Err(error) => Err(Failure::new(CaptureReason::CollectionFailed, chain(&error))),
    }
}

/// Bytes between two looks at the free space.
const LOOK_EVERY: u64 = 16 << 20;

fn attach_failure(error: &GraftError) -> Failure {
    Failure::new(CaptureReason::AttachFailed, chain(error))
}

/// A stop that failed because the keeper had ended the collection says why the keeper did.
fn stop_failure(grafted: &Target, error: &GraftError) -> Failure {
    match grafted.guard_verdict() {
        Some(verdict) if verdict != Verdict::Deadline => verdict_failure(verdict),
        _ => Failure::new(CaptureReason::CollectionFailed, chain(error)),
    }
}

fn verdict_failure(verdict: Verdict) -> Failure {
    let (reason, message) = match verdict {
        Verdict::TooLarge => (
            CaptureReason::CaptureTooLarge,
            "the raw capture outgrew the agent's limit (--max-capture-bytes): ask for a shorter window or fewer categories",
        ),
        Verdict::NoSpace => (
            CaptureReason::DiskSpace,
            "the node's disk would have less free space left than the agent must leave (--min-free-bytes)",
        ),
        Verdict::Deadline | Verdict::Malformed => (
            CaptureReason::CollectionFailed,
            "the session's keeper ended the collection by itself",
        ),
    };
    Failure::new(reason, message)
}

/// Runs what blocks on a thread of its own.
async fn blocking<T: Send + 'static>(
    reason: CaptureReason,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::because(reason))?
}

fn utc_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
