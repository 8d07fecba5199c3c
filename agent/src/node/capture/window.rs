//! The stage in which the collection runs, with NVML's samples beside it.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::activity::ActivityEvidence;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::transform::Samples;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};

use super::context::Context;
use super::prelude::{self, PendingPrelude};
use super::{observers, produce, start, window_cost};
use crate::adoption::{Attached, Collection, Stage};
use crate::overhead::{MAX_POLL_INTERVAL, Opened};
use crate::plan::{Window, WindowStep, window};

/// Time between two looks whether the collection still runs and at what the program has mapped.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Longest time that a window waits for the sandbox of its end, which takes milliseconds to make.
const READY_TIMEOUT: Duration = Duration::from_secs(1);

/// Keeps the window open until it is over: one that this agent opened, or what is left of one that
/// an earlier agent did.
pub(super) async fn step(cx: &mut Context<'_>, collection: Collection) -> Result<Stage, Failure> {
    let attach_ns = cx.unwritten.attach_ns.take();
    if let Some(attach_ns) = attach_ns {
        let attached = &collection.attached;
        let end = cx.profiler(attached)?.looks_back(&attached.profiler, utc_ns())?;
        if let Some(end) = end {
            return Ok(look_back(cx, collection, end).await);
        }
        let opened = Opened {
            attach_ns,
            open_ns: collection.opened_utc_ns,
        };
        observers::on_opened(cx, attached, opened).await;
        if let Some(held) = cx.unwritten.held.take() {
            start::release(cx, held, attached).await?;
        }
    }
    record(cx, collection, attach_ns.is_some()).await
}

/// Takes what was recorded before a time, for the session's length: there is no window to wait for.
async fn look_back(cx: &mut Context<'_>, mut collection: Collection, end_utc_ns: u64) -> Stage {
    let attached = &collection.attached;
    let samples = prelude::before(cx, attached, end_utc_ns, cx.length()).await;
    enter(cx, samples.window_start_utc_ns, "taking what was recorded");
    collection.activity = Some(ActivityEvidence::of(&samples, attached.uses_cuda, (None, None)));
    observers::on_closed(cx, &samples);
    cx.unwritten.samples = Some(samples);
    Stage::Fetch(collection)
}

/// Waits for the window's end, and looks at what was seen beside the collection. `is_opened_here`:
/// this agent opened the window.
async fn record(cx: &mut Context<'_>, mut collection: Collection, is_opened_here: bool) -> Result<Stage, Failure> {
    let attached = &collection.attached;
    let profiler = cx.profiler(attached)?;
    let begin = processor_time(cx, attached).await;
    let shortened = profiler.shortened(&attached.profiler)?;
    let length = shortened.map_or(cx.length(), |shortened| shortened.length);
    let had_cuda = attached.uses_cuda;
    let mut samples = keep_open(cx, &mut collection, length, is_opened_here).await?;
    observers::on_closed(cx, &samples);
    let attached = &collection.attached;
    let uses_cuda = had_cuda || cx.node.containers.uses_cuda(&attached.container_id).await;
    let processor = (begin, processor_time(cx, attached).await);
    collection.activity = Some(ActivityEvidence::of(&samples, uses_cuda, processor));
    profiler.accept(&samples)?;
    let container_id = &collection.attached.container_id;
    let heartbeat = cx.node.heartbeats.within(container_id, samples.window());
    samples.series.extend(heartbeat);
    cx.unwritten.samples = Some(samples);
    Ok(Stage::Fetch(collection))
}

/// Keeps the window open for its `length` but for what of it was over already, or aborts it.
async fn keep_open(
    cx: &mut Context<'_>,
    collection: &mut Collection,
    length: Duration,
    is_opened_here: bool,
) -> Result<Samples, Failure> {
    let window_start_utc_ns = collection.opened_utc_ns;
    // Since its profiler says that it opened, or another agent opened it.
    let before = Duration::from_nanos(utc_ns().saturating_sub(window_start_utc_ns));
    let done = cx.unwritten.done.max(before);
    let sampling = cx
        .node
        .containers
        .sample(&collection.attached.container_id, cx.sample_interval());
    enter(cx, window_start_utc_ns, "recording");
    let (profiler, site) = (cx.profiler(&collection.attached)?, cx.site_of(&collection.attached));
    let opened = Instant::now();
    if is_opened_here {
        // Not before samples are taken and the status says that the window is open; and a program
        // that is held waits for nothing but its collection.
        cx.unwritten.prelude = Some(PendingPrelude::begin(cx));
        drop(timeout(READY_TIMEOUT, produce::make_ready(cx)).await);
    }
    let mut looked = opened;
    loop {
        let interrupt = *cx.interrupts.borrow_and_update();
        if looked.elapsed() >= PROBE_INTERVAL {
            looked = Instant::now();
            check(cx, &collection.attached).await?;
            if is_complete(cx, &collection.attached).await? {
                break;
            }
            if cx.capture.spec.start == StartMode::ContainerStart {
                look_for_cuda(cx, collection).await?;
            }
        }
        if window_cost::exceeds_budget(cx, collection) {
            break;
        }
        let seen = Window {
            elapsed: done + opened.elapsed(),
            length,
            pinned: cx.is_pinned(&collection.attached),
            once: cx.capture.spec.ends_with_program,
            ended: cx.capture.spec.ends_with_program && profiler.has_ended(&site),
            interrupt,
        };
        match window(seen, MAX_POLL_INTERVAL) {
            WindowStep::Close => break,
            WindowStep::Abort(failure) => return Err(failure),
            WindowStep::Stay(time) => {
                let message = format!("recording, {} of {} s", seen.elapsed.as_secs(), length.as_secs_f64());
                let share = (seen.elapsed.as_millis(), length.as_millis());
                cx.advance_window(share, &message, profiler.live(&site));
                tokio::select! {
                    () = sleep(time) => {}
                    changed = cx.interrupts.changed() => {
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
    samples.missed = samples.missed.saturating_add(cx.missed_samples(before));
    Ok(samples)
}

/// Says in the status that the capture records, since its window opened.
fn enter(cx: &mut Context<'_>, opened_utc_ns: u64, message: &str) {
    let opened = Timestamp::from_nanosecond(i128::from(opened_utc_ns));
    cx.draft
        .window_opened(opened.unwrap_or_else(|_out_of_range| Timestamp::now()));
    cx.enter(StatusStage::Collecting, message);
}

/// Fails when the collection has ended before its time: what is left of the window shows nothing.
async fn check(cx: &Context<'_>, attached: &Attached) -> Result<(), Failure> {
    cx.ask(attached, CaptureReason::CollectionFailed, |profiler, site, state| {
        profiler.check(site, state)
    })
    .await
}

/// Whether all is recorded that was asked for.
async fn is_complete(cx: &Context<'_>, attached: &Attached) -> Result<bool, Failure> {
    cx.ask(attached, CaptureReason::CollectionFailed, |profiler, site, state| {
        profiler.is_complete(site, state)
    })
    .await
}

/// Processor time that the container's processes have used so far.
async fn processor_time(cx: &Context<'_>, attached: &Attached) -> Option<Duration> {
    let (containers, id) = (Arc::clone(&cx.node.containers), attached.container_id.clone());
    let time = tokio::task::spawn_blocking(move || containers.processor_time(&id)).await;
    time.ok().flatten()
}

/// Writes down that the program uses CUDA once it does: at its start, which was probed, nothing was
/// mapped.
async fn look_for_cuda(cx: &mut Context<'_>, collection: &mut Collection) -> Result<(), Failure> {
    let attached = &mut collection.attached;
    if !attached.uses_cuda && cx.node.containers.uses_cuda(&attached.container_id).await {
        attached.uses_cuda = true;
        cx.journal.stage = Stage::Window(collection.clone());
        cx.note().await?;
    }
    Ok(())
}
