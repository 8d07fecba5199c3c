//! The window: the collection in the container and the NVML samples beside it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::capture::Stage;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use super::Work;
use super::overhead::ProfilerTime;
use crate::adoption::Attached;
use crate::failure::Failure;
use crate::folder;
use crate::node::starts::Held;
use crate::node::{pods, spool};
use crate::overhead::{LOOK, Opened};
use crate::plan::{Interrupt, Window, WindowStep, window};
use crate::signs::Signs;
use crate::transform::{SAMPLES, Samples};

/// Time between two looks whether the collection still runs and at what the program has mapped.
const LOOK_INSIDE: Duration = Duration::from_secs(1);

impl Work<'_> {
    /// Records a window and takes what it left into the capture's folder.
    pub(super) async fn collect(&mut self, attached: &Attached, held: Option<Held>) -> Result<(), Failure> {
        spool::check_free(&self.node.spool, self.node.limits.floor)?;
        folder::make(&self.spool)?;
        self.count_before(attached).await?;
        self.profiler_time = ProfilerTime {
            before: self.profiler_time(attached).await?,
            after: None,
        };
        let attach_ns = utc_ns();
        self.start(attached).await?;
        let opened_ns = utc_ns();
        self.journal.opened_utc_ns = Some(opened_ns);
        self.remember().await?;
        if let Some(end) = self.profiler(attached)?.looks_back(&attached.profiler, utc_ns())? {
            return self.look_back(attached, end).await;
        }
        self.keep_prelude(attached).await;
        let opened = Opened {
            attach_ns,
            open_ns: opened_ns,
        };
        self.pace_opened(attached, opened);
        if let Some(held) = held {
            self.release_held(held, attached).await?;
        }
        let attached = self.journal.attached.clone().unwrap_or_else(|| attached.clone());
        self.close(&attached, self.length()).await
    }

    /// Goes on with an open window for the time that is `left` of what was asked for, and takes
    /// what it recorded.
    pub(super) async fn close(&mut self, attached: &Attached, left: Duration) -> Result<(), Failure> {
        let profiler = self.profiler(attached)?;
        let begin = self.processor_time(attached).await;
        let shortened = profiler.shortened(&attached.profiler)?;
        let length = shortened.map_or(self.length(), |shortened| shortened.length);
        let done = self.length().saturating_sub(left);
        let mut samples = self.open_window(attached, length, done).await?;
        self.pace.closed(utc_ns());
        let uses_cuda = attached.uses_cuda || self.node.containers.uses_cuda(&attached.container_id).await;
        let processor = (begin, self.processor_time(attached).await);
        self.journal.signs = Some(Signs::of(&samples, uses_cuda, processor));
        self.dates_window(&samples);
        self.remember().await?;
        profiler.accept(&samples)?;
        let heartbeat = self.node.heartbeats.within(&attached.container_id, samples.window());
        samples.series.extend(heartbeat);
        self.keep_samples(&samples)?;
        self.fetch(attached).await
    }

    /// Starts the collection, and once more where the profiler says that this may help.
    async fn start(&mut self, attached: &Attached) -> Result<(), Failure> {
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        let Err(failure) = self.start_once(attached).await else {
            return Ok(());
        };
        self.interrupted()?;
        if !site.containers.is_alive(site.process) || !profiler.starts_again(&site) {
            return Err(failure);
        }
        info!(why = failure.message, "the collection is started once more");
        blocking(CaptureReason::AttachFailed, move || {
            profiler.discard(&site);
            Ok(())
        })
        .await?;
        self.start_once(attached).await
    }

    /// Starts the collection, once the journal has what the agent that comes after this one must know of it.
    async fn start_once(&mut self, attached: &Attached) -> Result<(), Failure> {
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        let state = attached.profiler.clone();
        let prepared = blocking(CaptureReason::AttachFailed, {
            let (profiler, site) = (Arc::clone(&profiler), site.clone());
            move || profiler.prepare(&site, state)
        })
        .await?;
        if let Some(attached) = &mut self.journal.attached {
            attached.profiler.clone_from(&prepared);
        }
        self.remember().await?;
        // Some profilers take their time to prepare.
        self.interrupted()?;
        blocking(CaptureReason::AttachFailed, move || profiler.start(&site, &prepared)).await
    }

    /// Fails when the collection has ended before its time: what is left of the window shows nothing.
    async fn check(&self, attached: &Attached) -> Result<(), Failure> {
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        let state = attached.profiler.clone();
        blocking(CaptureReason::CollectionFailed, move || profiler.check(&site, &state)).await
    }

    /// Whether all is recorded that was asked for.
    async fn is_complete(&self, attached: &Attached) -> Result<bool, Failure> {
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        let state = attached.profiler.clone();
        blocking(CaptureReason::CollectionFailed, move || {
            Ok(profiler.is_complete(&site, &state))
        })
        .await
    }

    /// Stops the collection and brings its raw files into the capture's folder.
    pub(super) async fn fetch(&mut self, attached: &Attached) -> Result<(), Failure> {
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        self.claim.leaving();
        self.enter(Stage::Fetching, profiler.stopping());
        let (state, interrupts) = (attached.profiler.clone(), self.interrupts.clone());
        let (limits, folder) = (self.node.limits, self.node.spool.clone());
        let goes_on = move || {
            interrupts.borrow().and_then(Interrupt::failure).is_none()
                && spool::check_free(&folder, limits.floor).is_ok()
        };
        let limit = profiler.stop_timeout(&state)?;
        let stopped = blocking(CaptureReason::CollectionFailed, move || {
            profiler.stop(&site, &state, &goes_on)
        });
        let fetched = timeout(limit, stopped).await.unwrap_or_else(|_elapsed| {
            let message = format!(
                "the collection did not end, or its files did not come, within {} s; what waits for them is left behind",
                limit.as_secs()
            );
            Err(Failure::new(CaptureReason::CollectionFailed, message))
        });
        // A copy that stopped because the capture was ended is no reason of its own.
        fetched
            .map(drop)
            .map_err(|failure| self.interrupted().err().unwrap_or(failure))?;
        self.pace.detached(utc_ns());
        self.profiler_time.after = self.profiler_time(attached).await?;
        self.journal.recorded = true;
        self.remember().await
    }

    /// Writes samples to the capture's folder, all of them or none.
    pub(super) fn keep_samples(&self, samples: &Samples) -> Result<(), Failure> {
        let failed = || Failure::because(CaptureReason::StoreFailed);
        let text = serde_json::to_vec(samples).map_err(Failure::because(CaptureReason::StoreFailed))?;
        let partial = self.spool.join("samples.partial");
        std::fs::write(&partial, text).map_err(failed())?;
        std::fs::rename(&partial, self.spool.join(SAMPLES)).map_err(failed())
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

    /// Keeps the window open for its `length` but for what is `done` of it, or aborts it.
    async fn open_window(&mut self, attached: &Attached, length: Duration, done: Duration) -> Result<Samples, Failure> {
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
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        let opened = Instant::now();
        let mut looked = opened;
        loop {
            let interrupt = *self.interrupts.borrow_and_update();
            if looked.elapsed() >= LOOK_INSIDE {
                looked = Instant::now();
                self.check(attached).await?;
                if self.is_complete(attached).await? {
                    break;
                }
                if self.capture.spec.start == StartMode::ContainerStart {
                    self.look_for_cuda(attached).await?;
                }
            }
            if self.exceeds_budget(attached) {
                break;
            }
            let seen = Window {
                elapsed: done + opened.elapsed(),
                length,
                pinned: self.is_pinned(attached),
                once: self.capture.spec.ends_with_program,
                ended: self.capture.spec.ends_with_program && profiler.has_ended(&site),
                interrupt,
            };
            match window(seen, LOOK) {
                WindowStep::Close => break,
                WindowStep::Abort(failure) => return Err(failure),
                WindowStep::Stay(time) => {
                    let message = format!("recording, {} of {} s", seen.elapsed.as_secs(), length.as_secs_f64());
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

    /// Processor time that the container's processes have used so far.
    async fn processor_time(&self, attached: &Attached) -> Option<Duration> {
        let (containers, id) = (Arc::clone(&self.node.containers), attached.container_id.clone());
        let time = tokio::task::spawn_blocking(move || containers.processor_time(&id)).await;
        time.ok().flatten()
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

/// Runs what blocks on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    reason: CaptureReason,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::because(reason))?
}

pub(crate) fn utc_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
