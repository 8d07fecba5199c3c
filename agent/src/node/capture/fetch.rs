//! The stage in which the collection is stopped, and what it recorded taken into the capture's
//! folder.

use std::time::Duration;

use flopwatch_api::artifact::SAMPLES;
use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_api::reason::CaptureReason;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::transform::Samples;
use tokio::time::timeout;

use super::context::Context;
use super::observers;
use crate::adoption::{Collection, Stage};
use crate::node::spool;
use crate::plan::Interrupt;

/// Keeps the samples of the window, stops the collection and brings its raw files.
pub(super) async fn step(cx: &mut Context<'_>, collection: Collection) -> Result<Stage, Failure> {
    match cx.unwritten.samples.take() {
        Some(samples) => keep_samples(cx, &samples)?,
        None if cx.spool.join(SAMPLES).is_file() => {}
        None => keep_samples(cx, &no_samples(cx, &collection))?,
    }
    let attached = &collection.attached;
    let profiler = cx.profiler(attached)?;
    cx.lease.begin_draining();
    cx.enter(StatusStage::Fetching, profiler.stopping());
    let interrupts = cx.interrupts.clone();
    let (limits, folder) = (cx.node.limits, cx.node.spool.clone());
    let goes_on = move || {
        interrupts.borrow().and_then(Interrupt::failure).is_none() && spool::check_free(&folder, limits.floor).is_ok()
    };
    let limit = profiler.stop_timeout(&attached.profiler)?;
    let stopped = cx.ask(
        attached,
        CaptureReason::CollectionFailed,
        move |profiler, site, state| profiler.stop(site, state, &goes_on),
    );
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
        .map_err(|failure| cx.interrupted().err().unwrap_or(failure))?;
    observers::on_detached(cx, attached).await?;
    Ok(Stage::Produce(collection))
}

/// Writes samples to the capture's folder, all of them or none.
fn keep_samples(cx: &Context<'_>, samples: &Samples) -> Result<(), Failure> {
    let failed = || Failure::because(CaptureReason::StoreFailed);
    let text = serde_json::to_vec(samples).map_err(Failure::because(CaptureReason::StoreFailed))?;
    let partial = cx.spool.join("samples.partial");
    std::fs::write(&partial, text).map_err(failed())?;
    std::fs::rename(&partial, cx.spool.join(SAMPLES)).map_err(failed())
}

/// What stands in place of the samples that were in the memory of an earlier agent.
fn no_samples(cx: &Context<'_>, collection: &Collection) -> Samples {
    let start = collection.opened_utc_ns;
    let absent = Duration::from_nanos(utc_ns().saturating_sub(start));
    Samples {
        window_start_utc_ns: start,
        window_ns: u64::try_from(absent.as_nanos()).unwrap_or(u64::MAX),
        missed: cx.missed_samples(absent.min(cx.length())),
        ..Samples::default()
    }
}
