//! The window: the collection in the container and the NVML samples beside it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::CAPTURE_ROOM_ANNOTATION;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use flopwatch_attach::graft::{Bounds, GraftError};
use flopwatch_attach::nsys::SessionState;
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_launcher::guard::Verdict;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::Work;
use crate::adoption::Attached;
use crate::bound::{Bound, BoundBy};
use crate::failure::{Failure, chain};
use crate::node::containers::Collector;
use crate::node::starts::Held;
use crate::node::{pods, spool};
use crate::plan::{Interrupt, Window, WindowStep, window};
use crate::transform::Samples;

/// Beyond the window's end, the session's keeper stops the collection by itself.
const GUARD_GRACE: Duration = Duration::from_secs(30);
/// Longest time between two looks at an open window.
const TICK: Duration = Duration::from_millis(250);

/// Time between two looks at what the session's keeper said and at what the program has mapped.
const LOOK_INSIDE: Duration = Duration::from_secs(1);

/// The raw capture in the capture's folder, there only when it is whole.
pub(super) const RAW: &str = "capture.qdstrm";
/// The window's samples in the capture's folder, there only when they are whole.
pub(super) const SAMPLES: &str = "samples.json";

impl Work<'_> {
    /// Records a window and takes what it left into the capture's folder.
    pub(super) async fn collect(&mut self, attached: &Attached, held: Option<Held>) -> Result<(), Failure> {
        spool::check_free(&self.node.spool, self.node.limits.floor)?;
        spool::make(&self.spool)?;
        if attached.profiler == ProfilerType::Nsys {
            self.start(attached).await?;
        }
        self.journal.opened_utc_ns = Some(utc_ns());
        self.remember().await?;
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
    async fn start(&mut self, attached: &Attached) -> Result<(), Failure> {
        let (collector, name) = (self.collector(attached), self.file_name());
        let volume = blocking(CaptureReason::AttachFailed, {
            let collector = Arc::clone(&collector);
            move || collector.volume().map_err(|error| attach_failure(&error))
        })
        .await?;
        let limits = self.node.limits;
        let above = limits
            .floor
            .above(volume)
            .map_err(Failure::because(CaptureReason::DiskSpace))?;
        let bound = Bound::of(limits.capture_bytes, self.pod_room(), above);
        bound.check()?;
        self.journal.bound = Some(bound);
        self.remember().await?;
        let bounds = Bounds {
            limit: self.length() + GUARD_GRACE,
            max_bytes: bound.bytes,
            min_free_bytes: limits.floor.of(volume.bytes),
        };
        blocking(CaptureReason::AttachFailed, move || {
            collector.start(&name, bounds).map_err(|error| attach_failure(&error))
        })
        .await
    }

    /// Bytes that captures may take of the pod's ephemeral storage; none where nothing limits them. What admission did not write
    /// leaves no room.
    fn pod_room(&self) -> Option<u64> {
        let namespace = self.capture.namespace().unwrap_or_default();
        let pod = pods::find(&self.node.pods, &namespace, &self.capture.spec.pod_ref)?;
        let room = pods::annotation(&pod, CAPTURE_ROOM_ANNOTATION)?;
        Some(room.parse().unwrap_or(0))
    }

    /// The bound of a collection; of one whose journal has none, the agent's own.
    fn bound(&self) -> Bound {
        self.journal.bound.unwrap_or(Bound {
            bytes: self.node.limits.capture_bytes,
            by: BoundBy::Agent,
        })
    }

    /// Fails when the session's keeper has ended the collection before its time: what is left of the window shows nothing.
    async fn look_for_verdict(&self, attached: &Attached) -> Result<(), Failure> {
        if attached.profiler != ProfilerType::Nsys {
            return Ok(());
        }
        let (collector, bound) = (self.collector(attached), self.bound());
        blocking(CaptureReason::CollectionFailed, move || match collector.verdict() {
            Some(verdict) if verdict != Verdict::Deadline => Err(verdict_failure(verdict, bound)),
            _ => Ok(()),
        })
        .await
    }

    /// Stops the collection and takes the raw capture out of the container, where it is removed once it is here.
    pub(super) async fn fetch(&mut self, attached: &Attached) -> Result<(), Failure> {
        self.enter(Stage::Fetching, "taking the capture out of the container");
        let (collector, name) = (self.collector(attached), self.file_name());
        let (to, interrupts) = (self.spool.clone(), self.interrupts.clone());
        let (limits, folder, bound) = (self.node.limits, self.node.spool.clone(), self.bound());
        let goes_on = move || {
            interrupts.borrow().and_then(Interrupt::failure).is_none()
                && spool::check_free(&folder, limits.floor).is_ok()
        };
        let fetched = blocking(CaptureReason::CollectionFailed, move || {
            let path = collector
                .stop(&name)
                .map_err(|error| stop_failure(collector.as_ref(), &error, bound))?;
            if let Some(verdict) = collector.verdict()
                && verdict != Verdict::Deadline
            {
                return Err(verdict_failure(verdict, bound));
            }
            let partial = to.join("capture.partial");
            copy_out(collector.as_ref(), &path, &partial, limits.capture_bytes, goes_on)?;
            std::fs::rename(&partial, to.join(RAW)).map_err(Failure::because(CaptureReason::CollectionFailed))?;
            if let Err(error) = collector.remove(&name) {
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

    /// The way to the profiler in the container that it is attached to.
    pub(super) fn collector(&self, attached: &Attached) -> Arc<dyn Collector> {
        self.node.containers.collector(&attached.container_id, attached.process)
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
        if self.node.containers.has_gpus() {
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
        let sampling = self
            .node
            .containers
            .sample(&attached.container_id, self.sample_interval());
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
            if looked.elapsed() >= LOOK_INSIDE {
                looked = Instant::now();
                self.look_for_verdict(attached).await?;
                if self.capture.spec.start == StartMode::ContainerStart {
                    self.look_for_cuda(attached).await?;
                }
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
        same && self.node.containers.is_alive(attached.process)
    }

    /// Whether the program has ended whose end ends the window.
    fn has_ended(&self, attached: &Attached) -> bool {
        if !self.capture.spec.ends_with_program {
            return false;
        }
        match attached.profiler {
            // The container stays for its capture.
            ProfilerType::Nsys => self.collector(attached).has_ended(),
            _ => !self.node.containers.is_alive(attached.process),
        }
    }

    /// Writes down that the program uses CUDA once it does: at its start, which was probed, nothing was mapped.
    async fn look_for_cuda(&mut self, attached: &Attached) -> Result<(), Failure> {
        let known = self.journal.attached.as_ref().is_none_or(|attached| attached.uses_cuda);
        if !known && self.node.containers.uses_cuda(&attached.container_id).await {
            if let Some(attached) = &mut self.journal.attached {
                attached.uses_cuda = true;
            }
            self.remember().await?;
        }
        Ok(())
    }
}

/// Ends a collection that may run and removes the capture's file. Says only in the log what did not work: the session's
/// keeper ends what is left.
pub(in crate::node) fn clean(collector: &dyn Collector, name: &str) {
    // A control command goes on when the helper that brought it into the container dies, and may write the capture yet.
    if let Err(error) = collector.await_quiet() {
        warn!(error = %chain(&error), "whether a control command is at work cannot be told");
    }
    match collector.session() {
        Ok(SessionState::Collecting) => {
            if let Err(error) = collector.discard(name) {
                warn!(error = %chain(&error), "discarding the collection failed");
            }
        }
        Ok(SessionState::Ending) => match collector.end_session() {
            Ok(()) => warn!("the profiler's session hangs; its keeper ends it"),
            Err(error) => warn!(error = %chain(&error), "the profiler's session hangs and was not ended"),
        },
        Ok(_) => {}
        Err(error) => debug!(error = %chain(&error), "the session cannot be asked"),
    }
    match collector.remove(name) {
        Ok(removed) => debug!(removed, "removed the raw capture in the container"),
        Err(error) => debug!(error = %chain(&error), "the raw capture in the container cannot be removed"),
    }
}

/// Copies the capture out while `goes_on` says so.
fn copy_out(
    collector: &dyn Collector,
    path: &Path,
    to: &Path,
    limit: u64,
    goes_on: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut file = File::create(to).map_err(Failure::because(CaptureReason::CollectionFailed))?;
    let mut looked_at = 0_u64;
    let mut look = |copied: u64| {
        // Asking the file system for every block would cost more than the copy.
        if copied.saturating_sub(looked_at) < LOOK_EVERY {
            return true;
        }
        looked_at = copied;
        goes_on()
    };
    match collector.copy_out(path, &mut file, limit, &mut look) {
        Ok(bytes) => {
            debug!(bytes, "took the raw capture out");
            Ok(())
        }
        Err(GraftError::Files(RootfsError::TooLarge { limit, .. })) => {
            let (bytes, by) = (limit, BoundBy::Agent);
            Err(Bound { bytes, by }.outgrown())
        }
        Err(GraftError::Files(RootfsError::Stopped { .. })) => Err(Failure::new(CaptureReason::DiskSpace, NO_SPACE)),
        Err(error) => Err(Failure::new(CaptureReason::CollectionFailed, chain(&error))),
    }
}

/// Bytes between two looks at the free space and the interrupts.
const LOOK_EVERY: u64 = 16 << 20;

fn attach_failure(error: &GraftError) -> Failure {
    Failure::new(CaptureReason::AttachFailed, chain(error))
}

/// A stop that failed because the keeper had ended the collection says why the keeper did.
fn stop_failure(collector: &dyn Collector, error: &GraftError, bound: Bound) -> Failure {
    match collector.verdict() {
        Some(verdict) if verdict != Verdict::Deadline => verdict_failure(verdict, bound),
        _ => Failure::new(CaptureReason::CollectionFailed, chain(error)),
    }
}

/// What ends a collection, or a copy of it, that takes too much of the disk.
const NO_SPACE: &str =
    "the node's disk would have less free space left than the agent must leave (--min-free-bytes, --min-free-percent)";

fn verdict_failure(verdict: Verdict, bound: Bound) -> Failure {
    match verdict {
        Verdict::TooLarge => bound.outgrown(),
        Verdict::NoSpace => Failure::new(CaptureReason::DiskSpace, NO_SPACE),
        Verdict::Deadline | Verdict::Malformed => {
            let message = "the session's keeper ended the collection by itself";
            Failure::new(CaptureReason::CollectionFailed, message)
        }
    }
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
            let (bytes, by) = (7, BoundBy::Agent);
            let failure = verdict_failure(verdict, Bound { bytes, by });
            assert_eq!(failure.reason, reason);
            assert!(failure.message.contains(setting), "{}", failure.message);
        }
    }
}
