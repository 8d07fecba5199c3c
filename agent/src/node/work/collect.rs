//! The window: the collection in the container and the NVML samples beside it.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::NSYS_SESSION;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use flopwatch_attach::graft::{Bounds, GraftError, Target};
use flopwatch_attach::nsys::SessionState;
use flopwatch_attach::rootfs::{ContainerRoot, RootfsError};
use flopwatch_launcher::guard::Verdict;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::Work;
use super::probe::{self, way_in};
use crate::adoption::Attached;
use crate::failure::{Failure, chain};
use crate::node::starts::Held;
use crate::node::{pods, spool};
use crate::plan::{Interrupt, Window, WindowStep, window};
use crate::transform::Samples;

/// Beyond the window's end, the session's keeper stops the collection by itself.
const GUARD_GRACE: Duration = Duration::from_secs(30);
/// Longest time between two looks at an open window.
const TICK: Duration = Duration::from_millis(250);

/// Time between two looks at what the program has mapped.
const MAPPED: Duration = Duration::from_secs(1);

/// The raw capture in the capture's folder, there only when it is whole.
pub(super) const RAW: &str = "capture.qdstrm";
/// The window's samples in the capture's folder, there only when they are whole.
pub(super) const SAMPLES: &str = "samples.json";

impl Work<'_> {
    /// Records a window and takes what it left into the capture's folder.
    pub(super) async fn collect(&mut self, attached: &Attached, held: Option<Held>) -> Result<(), Failure> {
        spool::check_free(&self.node.spool, self.node.limits.free_bytes)?;
        spool::make(&self.spool, self.node.steps.limits().user)?;
        if attached.profiler == ProfilerType::Nsys {
            self.start(attached).await?;
        }
        self.journal.opened_utc_ns = Some(utc_ns());
        self.remember()?;
        if let Some(held) = held {
            self.let_go(held, attached).await?;
        }
        self.close(attached, self.length()).await
    }

    /// Goes on with an open window for the time that is `left`, and takes what it recorded.
    pub(super) async fn close(&mut self, attached: &Attached, left: Duration) -> Result<(), Failure> {
        let samples = self.open_window(attached, left).await?;
        if attached.profiler == ProfilerType::Nsys {
            self.keep_samples(&samples)?;
            return self.fetch(attached).await;
        }
        if samples.series.is_empty() {
            let message =
                "no process of the container was seen on a GPU within the window, so there is nothing to show";
            return Err(Failure::new(CaptureReason::RequiredEventsMissing, message));
        }
        self.enter(Stage::Fetching, "gathering the samples");
        self.keep_samples(&samples)
    }

    /// Starts the collection in the container's session; its bounds hold whatever becomes of this agent.
    async fn start(&self, attached: &Attached) -> Result<(), Failure> {
        let bounds = Bounds {
            limit: self.length() + GUARD_GRACE,
            max_bytes: self.node.limits.capture_bytes,
            min_free_bytes: self.node.limits.free_bytes,
        };
        let (grafted, name) = (self.way_in(attached), self.file_name());
        blocking(CaptureReason::AttachFailed, move || {
            grafted
                .start_collection(NSYS_SESSION, &name, false, bounds)
                .map_err(|error| attach_failure(&error))
        })
        .await
    }

    /// Stops the collection and takes the raw capture out of the container, where it is removed once it is here.
    pub(super) async fn fetch(&mut self, attached: &Attached) -> Result<(), Failure> {
        self.enter(Stage::Fetching, "taking the capture out of the container");
        let (grafted, name) = (self.way_in(attached), self.file_name());
        let (to, interrupts) = (self.spool.clone(), self.interrupts.clone());
        let (limits, folder) = (self.node.limits, self.node.spool.clone());
        let goes_on = move || {
            interrupts.borrow().and_then(Interrupt::failure).is_none()
                && spool::check_free(&folder, limits.free_bytes).is_ok()
        };
        let fetched = blocking(CaptureReason::CollectionFailed, move || {
            let path = grafted
                .stop_collection(NSYS_SESSION, &name)
                .map_err(|error| stop_failure(&grafted, &error))?;
            if let Some(verdict) = grafted.guard_verdict()
                && verdict != Verdict::Deadline
            {
                return Err(verdict_failure(verdict));
            }
            let partial = to.join("capture.partial");
            copy_out(&grafted, &path, &partial, limits.capture_bytes, goes_on)?;
            std::fs::rename(&partial, to.join(RAW)).map_err(Failure::because(CaptureReason::CollectionFailed))?;
            if let Err(error) = grafted.remove_capture(&path) {
                warn!(error = %chain(&error), "the raw capture stays in the container until a later look");
            }
            Ok(())
        })
        .await;
        // A copy that stopped because the capture was ended is no reason of its own.
        fetched.map_err(|failure| self.interrupted().err().unwrap_or(failure))
    }

    /// Writes samples to the capture's folder, all of them or none.
    pub(super) fn keep_samples(&self, samples: &Samples) -> Result<(), Failure> {
        let failed = || Failure::because(CaptureReason::StoreFailed);
        let text = serde_json::to_vec(samples).map_err(Failure::because(CaptureReason::StoreFailed))?;
        let partial = self.spool.join("samples.partial");
        std::fs::write(&partial, text).map_err(failed())?;
        std::fs::rename(&partial, self.spool.join(SAMPLES)).map_err(failed())
    }

    /// The way into the container that it is attached to.
    pub(super) fn way_in(&self, attached: &Attached) -> Target {
        way_in(self.node, &attached.container_id, attached.process)
    }

    pub(super) fn length(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.capture.spec.duration_seconds).unwrap_or(1))
    }

    fn sample_interval(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.capture.spec.metrics.interval_milliseconds).unwrap_or(100))
    }

    /// Samples that nobody took because no agent was there.
    pub(super) fn missed_samples(&self, absent: Duration) -> u64 {
        let interval = self.sample_interval().as_millis().max(1);
        if self.node.has_nvml() {
            u64::try_from(absent.as_millis() / interval).unwrap_or(u64::MAX)
        } else {
            0
        }
    }

    /// Keeps the window open for the time that is `left`, or aborts it.
    async fn open_window(&mut self, attached: &Attached, left: Duration) -> Result<Samples, Failure> {
        let window_start_utc_ns = self.journal.opened_utc_ns.unwrap_or_else(utc_ns);
        // Nothing but for a window that another agent opened.
        let before = Duration::from_nanos(utc_ns().saturating_sub(window_start_utc_ns));
        let sampling = self.node.sample(&attached.container_id, self.sample_interval());
        let start = i128::from(window_start_utc_ns);
        self.draft
            .window_opened(Timestamp::from_nanosecond(start).unwrap_or_else(|_out_of_range| Timestamp::now()));
        self.enter(Stage::Collecting, "recording");
        let length = self.length();
        let done = length.saturating_sub(left);
        let opened = Instant::now();
        let mut looked = opened;
        loop {
            let interrupt = *self.interrupts.borrow_and_update();
            if self.capture.spec.start == StartMode::ContainerStart && looked.elapsed() >= MAPPED {
                looked = Instant::now();
                self.look_for_cuda(attached).await?;
            }
            let seen = Window {
                elapsed: done + opened.elapsed(),
                length,
                pinned: self.is_pinned(attached),
                once: self.capture.spec.ends_with_program,
                ended: self.has_ended(attached),
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
        let window_ns = u64::try_from((before + opened.elapsed()).as_nanos()).unwrap_or(u64::MAX);
        let mut samples = sampling.finish();
        samples.window_start_utc_ns = window_start_utc_ns;
        samples.window_ns = window_ns;
        samples.missed = samples.missed.saturating_add(self.missed_samples(before));
        Ok(samples)
    }

    /// Whether the container still runs under the ID that it had at the start.
    pub(super) fn is_pinned(&self, attached: &Attached) -> bool {
        let spec = &self.capture.spec;
        let namespace = self.capture.namespace().unwrap_or_default();
        let watched = pods::find(&self.node.pods, &namespace, &spec.pod_ref)
            .and_then(|pod| pods::running_container_id(&pod, &spec.container_name));
        let same = match watched.as_deref() {
            Some(id) => id == attached.container_id,
            // It starts once, and the kubelet says so only some time after.
            None => spec.ends_with_program,
        };
        same && self.node.procfs.is_alive(attached.process)
    }

    /// Whether the program has ended whose end ends the window.
    fn has_ended(&self, attached: &Attached) -> bool {
        if !self.capture.spec.ends_with_program {
            return false;
        }
        match attached.profiler {
            // The container stays for its capture.
            ProfilerType::Nsys => self.way_in(attached).has_ended().unwrap_or(false),
            _ => !self.node.procfs.is_alive(attached.process),
        }
    }

    /// Writes down that the program uses CUDA once it does: at its start, which was probed, nothing was mapped.
    async fn look_for_cuda(&mut self, attached: &Attached) -> Result<(), Failure> {
        let known = self.journal.attached.as_ref().is_none_or(|attached| attached.uses_cuda);
        if !known && probe::uses_cuda(self.node, &attached.container_id).await {
            if let Some(attached) = &mut self.journal.attached {
                attached.uses_cuda = true;
            }
            self.remember()?;
        }
        Ok(())
    }
}

/// Ends a collection that may run and removes the capture's file. Says only in the log what did not work: the session's
/// keeper ends what is left.
pub(in crate::node) fn clean(grafted: &Target, name: &str) {
    // A control command goes on when the helper that brought it into the container dies, and may write the capture yet.
    if let Err(error) = grafted.await_quiet() {
        warn!(error = %chain(&error), "whether a control command is at work cannot be told");
    }
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

/// Copies the capture out while `goes_on` says so.
fn copy_out(grafted: &Target, path: &Path, to: &Path, limit: u64, goes_on: impl Fn() -> bool) -> Result<(), Failure> {
    let mut file = File::create(to).map_err(Failure::because(CaptureReason::CollectionFailed))?;
    let mut looked_at = 0_u64;
    let look = |copied: u64| {
        // Asking the file system for every block would cost more than the copy.
        if copied.saturating_sub(looked_at) < LOOK_EVERY {
            return true;
        }
        looked_at = copied;
        goes_on()
    };
    match grafted.copy_capture(path, &mut file, limit, look) {
        Ok(bytes) => {
            debug!(bytes, "took the raw capture out");
            Ok(())
        }
        Err(GraftError::Files(RootfsError::TooLarge { .. })) => Err(verdict_failure(Verdict::TooLarge)),
        Err(GraftError::Files(RootfsError::Stopped { .. })) => Err(verdict_failure(Verdict::NoSpace)),
        Err(error) => Err(Failure::new(CaptureReason::CollectionFailed, chain(&error))),
    }
}

/// Bytes between two looks at the free space and the interrupts.
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
pub(super) async fn blocking<T: Send + 'static>(
    reason: CaptureReason,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::because(reason))?
}

pub(super) fn utc_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_that_ends_a_collection_has_its_reason_and_names_its_setting() {
        for (verdict, reason, setting) in [
            (Verdict::TooLarge, CaptureReason::CaptureTooLarge, "--max-capture-bytes"),
            (Verdict::NoSpace, CaptureReason::DiskSpace, "--min-free-bytes"),
            (Verdict::Malformed, CaptureReason::CollectionFailed, "keeper"),
        ] {
            let failure = verdict_failure(verdict);
            assert_eq!(failure.reason, reason);
            assert!(failure.message.contains(setting), "{}", failure.message);
        }
    }
}
