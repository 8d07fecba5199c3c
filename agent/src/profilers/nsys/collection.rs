//! One collection in a container's session: its bounds, its start, its end, and its raw capture.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::artifact::{MOST_REPORTS, stream_name};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::{Bounds, GraftError};
use flopwatch_attach::nsys::{Collection, SessionState};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_launcher::guard::Verdict;
use flopwatch_launcher::raw_capture;
use flopwatch_pipeline::failure::{Failure, chain};
use tracing::{debug, warn};

use super::collector::Collector;
use super::observed;
use crate::bound::{Bound, BoundBy};
use crate::profilers::{Observed, Site};

/// Beyond the window's end, the session's supervisor stops the collection by itself.
const GUARD_GRACE: Duration = Duration::from_secs(30);
/// How often a session is asked again that does not answer.
const ATTEMPTS: u32 = 3;
/// Bytes between two looks whether a copy goes on.
const LOOK_EVERY: u64 = 16 << 20;
/// Beginning of the names of raw captures that agents take.
const PREFIX: &str = "capture-";
/// What ends a collection, or a copy of it, that takes too much of the disk.
const NO_SPACE: &str =
    "the node's disk would have less free space left than the agent must leave (--min-free-bytes, --min-free-percent)";

/// Name of a capture's raw capture in its container, without its extension.
pub(crate) fn file_name(uid: &str) -> String {
    format!("{PREFIX}{uid}")
}

/// The capture that a raw capture belongs to, by its name without extension; none when no agent named it.
pub(crate) fn owner(name: &str) -> Option<&str> {
    raw_capture::split_stem(name).0.strip_prefix(PREFIX)
}

/// The way to the session of a site's container.
pub(super) fn collector(site: &Site) -> Arc<dyn Collector> {
    site.containers.collector(&site.container_id, site.process)
}

/// What a collection may write, no more than its agent, its pod and its disk allow; and the bytes of its volume that must stay free.
pub(super) fn bound(site: &Site) -> Result<(Bound, u64), Failure> {
    let volume = collector(site).volume().map_err(attach_failure)?;
    let limits = site.limits;
    let above = limits
        .floor
        .above(volume)
        .map_err(Failure::because(CaptureReason::DiskSpace))?;
    let bound = Bound::of(limits.capture_bytes, site.pod_room, above);
    bound.check()?;
    Ok((bound, limits.floor.of(volume.bytes)))
}

/// Starts a collection; its bounds hold whatever becomes of this agent.
pub(super) fn start(site: &Site, records: &Collection, bound: Bound, min_free_bytes: u64) -> Result<(), Failure> {
    let bounds = Bounds {
        limit: site.length + GUARD_GRACE,
        max_bytes: bound.bytes,
        min_free_bytes,
    };
    collector(site)
        .start(&file_name(&site.capture), records, bounds)
        .map_err(attach_failure)
}

/// Fails when the session's supervisor has ended the collection before its time.
pub(super) fn check(site: &Site, bound: Bound) -> Result<(), Failure> {
    match collector(site).verdict() {
        Some(verdict) if verdict != Verdict::Deadline => Err(verdict_failure(verdict, bound)),
        _ => Ok(()),
    }
}

/// Where a collection stands that an earlier agent started.
pub(super) fn observe(site: &Site) -> Result<Observed, Failure> {
    let (collector, name) = (collector(site), file_name(&site.capture));
    // A stop that the earlier agent began may still be writing the capture.
    if let Err(error) = collector.await_quiet() {
        warn!(%error, "whether a control command is at work cannot be told");
    }
    for attempt in 1..=ATTEMPTS {
        match look(collector.as_ref(), &name) {
            Ok(found) => return Ok(observed(Some(&found))),
            // It ended between the two looks.
            Err(_) if !collector.is_alive() => break,
            Err(error) if attempt == ATTEMPTS => return Err(attach_failure(error)),
            Err(error) => warn!(error = %chain(&error), "the session does not answer, asking again"),
        }
    }
    Ok(observed(None))
}

fn look(collector: &dyn Collector, name: &str) -> Result<(SessionState, bool), GraftError> {
    Ok((collector.session()?, collector.captures(name)? > 0))
}

/// Whether so many ranges are recorded, each in its raw capture, and the session is at rest.
pub(super) fn has_ranges(site: &Site, count: usize) -> bool {
    let (collector, name) = (collector(site), file_name(&site.capture));
    // The session is asked from inside of the container: only when there is something to ask for.
    collector.captures(&name).is_ok_and(|captures| captures >= count)
        && collector.session().is_ok_and(|state| state == SessionState::Idle)
}

/// Stops the collection and takes its raw captures out of the container, where they are removed once they are here. `missed` says what
/// it means that there is none, where that is possible.
pub(super) fn stop(
    site: &Site,
    bound: Bound,
    missed: impl Fn() -> Option<Failure>,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let (collector, name) = (collector(site), file_name(&site.capture));
    let paths = collector.stop(&name).map_err(|error| match collector.verdict() {
        // A stop that failed because the supervisor had ended the collection says why the supervisor did.
        Some(verdict) if verdict != Verdict::Deadline => verdict_failure(verdict, bound),
        _ => missed()
            .filter(|_| matches!(error, GraftError::NoCapture { .. }))
            .unwrap_or_else(|| Failure::new(CaptureReason::CollectionFailed, chain(&error))),
    })?;
    check(site, bound)?;
    if paths.len() > MOST_REPORTS {
        let message = format!(
            "the collection left {} raw captures, more than the {MOST_REPORTS} that a capture may have",
            paths.len()
        );
        return Err(Failure::new(CaptureReason::CollectionFailed, message));
    }
    let partial = site.folder.join("capture.partial");
    let limit = site.limits.capture_bytes;
    let mut taken = 0;
    // The first comes last: it says that all are here.
    for (at, path) in paths.iter().enumerate().rev() {
        taken += copy_out(collector.as_ref(), path, &partial, (limit, taken), goes_on)?;
        let to = site.folder.join(stream_name(at + 1));
        std::fs::rename(&partial, to).map_err(Failure::because(CaptureReason::CollectionFailed))?;
    }
    if let Err(error) = collector.remove(&name) {
        warn!(error = %chain(&error), "the raw capture stays in the container until a later look");
    }
    Ok(())
}

/// Ends a collection that may run and removes the capture's file. Says only in the log what did not work: the session's
/// supervisor ends what is left.
pub(crate) fn clean(collector: &dyn Collector, name: &str) {
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
            Ok(()) => warn!("the profiler's session hangs; its supervisor ends it"),
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

/// Copies a raw capture out while `goes_on` says so, within a bound in bytes of which so many are taken; returns its bytes.
fn copy_out(
    collector: &dyn Collector,
    path: &Path,
    to: &Path,
    (limit, taken): (u64, u64),
    goes_on: &dyn Fn() -> bool,
) -> Result<u64, Failure> {
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
    match collector.copy_out(path, &mut file, limit.saturating_sub(taken), &mut look) {
        Ok(bytes) => {
            debug!(bytes, "took a raw capture out");
            Ok(bytes)
        }
        Err(GraftError::Files(RootfsError::TooLarge { .. })) => {
            let (bytes, by) = (limit, BoundBy::Agent);
            Err(Bound { bytes, by }.outgrown())
        }
        Err(GraftError::Files(RootfsError::Stopped { .. })) => Err(Failure::new(CaptureReason::DiskSpace, NO_SPACE)),
        Err(error) => Err(Failure::new(CaptureReason::CollectionFailed, chain(&error))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn attach_failure(error: GraftError) -> Failure {
    Failure::new(CaptureReason::AttachFailed, chain(&error))
}

fn verdict_failure(verdict: Verdict, bound: Bound) -> Failure {
    match verdict {
        Verdict::TooLarge => bound.outgrown(),
        Verdict::NoSpace => Failure::new(CaptureReason::DiskSpace, NO_SPACE),
        Verdict::Deadline | Verdict::Malformed => {
            let message = "the session's supervisor ended the collection by itself";
            Failure::new(CaptureReason::CollectionFailed, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_that_ends_a_collection_has_its_reason_and_names_its_setting() {
        for (verdict, reason, setting) in [
            (Verdict::TooLarge, CaptureReason::CaptureTooLarge, "--max-capture-bytes"),
            (Verdict::NoSpace, CaptureReason::DiskSpace, "--min-free-bytes"),
            (Verdict::Malformed, CaptureReason::CollectionFailed, "supervisor"),
        ] {
            let (bytes, by) = (7, BoundBy::Agent);
            let failure = verdict_failure(verdict, Bound { bytes, by });
            assert_eq!(failure.reason, reason);
            assert!(failure.message.contains(setting), "{}", failure.message);
        }
    }

    #[test]
    fn only_what_an_agent_named_has_an_owner() {
        assert_eq!(owner(&file_name("0-1")), Some("0-1"));
        assert_eq!(owner(&format!("{}.2", file_name("0-1"))), Some("0-1"));
        for name in ["start", "x-capture-1", ""] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
