//! One report: the program's start, its end, and taking the report out of the container.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::artifact::NCU_REPORT;
use flopwatch_api::pod;
use flopwatch_api::preparation::{NCU_LOG, NCU_OPTIONS_ANNOTATION};
use flopwatch_api::profiler::NcuOptions;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::{Failure, chain};
use k8s_openapi::api::core::v1::Pod;
use tracing::{debug, warn};

use super::launched::Launched;
use super::words;
use crate::bound::Bound;
use crate::profilers::profiler::take_out;
use crate::profilers::{Progress, Site};

/// How long the program may take to end, and the profiler to write its report after that.
const REPORT_TIMEOUT: Duration = Duration::from_mins(2);
/// Time between two looks whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of the profiler's own log that are read.
const LOG_BYTES: u64 = 64 << 10;

/// The way to the program of a site's container.
pub(super) fn launched(site: &Site) -> Arc<dyn Launched> {
    site.containers.launched(&site.container_id, site.process)
}

/// The options with which a pod was made. What cannot be read stands for the default, as it does
/// where the pod is made.
pub(super) fn options(pod: &Pod) -> NcuOptions {
    let annotation = pod::annotation(pod, NCU_OPTIONS_ANNOTATION);
    annotation
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Lets the profiler start the program, where there is room for a report.
pub(super) fn start(site: &Site) -> Result<(), Failure> {
    let launched = launched(site);
    bound(site, launched.as_ref())?.check()?;
    launched.begin().map_err(Failure::because(CaptureReason::AttachFailed))
}

/// Fails when the report outgrows what it may have.
pub(super) fn check(site: &Site) -> Result<(), Failure> {
    let launched = launched(site);
    // What cannot be looked at shows when it is to be taken.
    let bytes = launched.written_bytes(NCU_REPORT).ok().flatten().unwrap_or(0);
    if bytes > site.limits.capture_bytes {
        return Err(too_large(site.limits.capture_bytes));
    }
    Ok(())
}

/// Ends the program where it runs yet, and takes the report.
pub(super) fn stop(site: &Site, goes_on: &dyn Fn() -> bool) -> Result<(), Failure> {
    let launched = launched(site);
    await_end(launched.as_ref(), goes_on)?;
    let has_report = launched
        .written_bytes(NCU_REPORT)
        .map_err(Failure::because(CaptureReason::CollectionFailed))?
        .is_some();
    if !has_report {
        let failure = words::failure(log(launched.as_ref()).as_deref());
        let_go(launched.as_ref());
        return Err(failure);
    }
    let partial = site.folder.join("report.partial");
    let limit = site.limits.capture_bytes;
    let copy = |file: &mut File, progress: Progress<'_>| launched.copy_written(NCU_REPORT, file, limit, progress);
    take_out(&partial, goes_on, copy, too_large)?;
    std::fs::rename(&partial, site.folder.join(NCU_REPORT))
        .map_err(Failure::because(CaptureReason::CollectionFailed))?;
    let_go(launched.as_ref());
    Ok(())
}

/// Ends the program and throws the report away. Says only in the log what did not work: the
/// container ends by itself after a while.
pub(super) fn discard(site: &Site) {
    let launched = launched(site);
    // One of the two is heard, by whether the program was started.
    for (what, told) in [
        ("refuse", launched.refuse("the capture ended before it began")),
        ("end", launched.end_program()),
    ] {
        if let Err(error) = told {
            debug!(what, error = %chain(&error), "the launcher cannot be told that the capture has ended");
        }
    }
    let_go(launched.as_ref());
}

fn let_go(launched: &dyn Launched) {
    if let Err(error) = launched.let_go(&[NCU_REPORT, NCU_LOG]) {
        warn!(error = %chain(&error), "what Nsight Compute wrote stays in the container until it ends");
    }
}

#[expect(clippy::disallowed_methods, reason = "it runs on a thread for blocking work")]
fn await_end(launched: &dyn Launched, goes_on: &dyn Fn() -> bool) -> Result<(), Failure> {
    if launched.has_ended() {
        return Ok(());
    }
    launched
        .end_program()
        .map_err(Failure::because(CaptureReason::CollectionFailed))?;
    let deadline = Instant::now() + REPORT_TIMEOUT;
    while !launched.has_ended() {
        if Instant::now() >= deadline {
            let message = format!(
                "the program and Nsight Compute did not end within {} s after the window; a replay that hangs does so: choose fewer \
                 kernels",
                REPORT_TIMEOUT.as_secs()
            );
            return Err(Failure::new(CaptureReason::CollectionFailed, message));
        }
        if !goes_on() {
            return Err(Failure::new(
                CaptureReason::CollectionFailed,
                "stopped while the program ended",
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// The beginning of the profiler's own log; none where it wrote none, or more than is read.
fn log(launched: &dyn Launched) -> Option<String> {
    let mut bytes = Vec::new();
    launched
        .copy_written(NCU_LOG, &mut bytes, LOG_BYTES, &mut |_| true)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn bound(site: &Site, launched: &dyn Launched) -> Result<Bound, Failure> {
    let volume = launched
        .volume()
        .map_err(Failure::because(CaptureReason::AttachFailed))?;
    let above = site
        .limits
        .floor
        .above(volume)
        .map_err(Failure::because(CaptureReason::DiskSpace))?;
    Ok(Bound::of(site.limits.capture_bytes, site.pod_room, above))
}

fn too_large(bytes: u64) -> Failure {
    let message = format!(
        "the report outgrew the {bytes} bytes that the agent's limit (--max-capture-bytes) allows: raise it, or profile fewer launches \
         (spec.profiler.ncu.launchCount) or a smaller set"
    );
    Failure::new(CaptureReason::CaptureTooLarge, message)
}
