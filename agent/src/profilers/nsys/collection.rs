//! One collection of Nsight Systems in a container's session: its bounds, its start, its state, its
//! stop, and the copies of its raw captures on the node.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::artifact::{MAX_REPORTS, stream_name};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::{Bounds, GraftError};
use flopwatch_attach::nsys::{Collection, SessionState};
use flopwatch_launcher::guard::Verdict;
use flopwatch_launcher::raw_capture;
use flopwatch_pipeline::failure::{Failure, chain};
use tracing::{debug, warn};

use super::collector::Collector;
use super::observed;
use crate::bound::Bound;
use crate::profilers::profiler::{NO_SPACE, take_out};
use crate::profilers::{Observed, Progress, Site};

/// Time after the window's end at which the session's supervisor stops a collection that no agent
/// has stopped.
const GUARD_GRACE: Duration = Duration::from_secs(30);
/// Attempts to read the state of a session that does not answer.
const MAX_STATE_ATTEMPTS: u32 = 3;
/// First part of the names that agents give to raw captures in containers.
const NAME_PREFIX: &str = "capture-";

/// The name that an agent gives to a capture's raw capture in its container, without extension.
pub(crate) fn file_name(uid: &str) -> String {
    format!("{NAME_PREFIX}{uid}")
}

/// UID of the capture that a raw capture belongs to, read from the raw capture's name without
/// extension; none where no agent gave that name.
pub(crate) fn owner(name: &str) -> Option<&str> {
    raw_capture::split_stem(name).0.strip_prefix(NAME_PREFIX)
}

/// The [`Collector`] of the session in a site's container.
pub(super) fn collector(site: &Site) -> Arc<dyn Collector> {
    site.containers.collector(&site.container_id, site.process)
}

/// Most bytes that a collection may write, the least of what the agent, the pod and the disk allow,
/// and the bytes that must stay free on the container's volume. Fails where the disk has fewer free
/// bytes already, or where the bound is too small to record with.
pub(super) fn bound(site: &Site) -> Result<(Bound, u64), Failure> {
    let volume = collector(site)
        .volume()
        .map_err(Failure::because(CaptureReason::AttachFailed))?;
    let limits = site.limits;
    let writable_bytes = limits
        .floor
        .above(volume)
        .map_err(Failure::because(CaptureReason::DiskSpace))?;
    let bound = Bound::of(limits.capture_bytes, site.pod_room, writable_bytes);
    bound.check()?;
    Ok((bound, limits.floor.of(volume.bytes)))
}

/// Starts a collection. The session's supervisor keeps its bounds, which hold when this agent ends
/// as well.
pub(super) fn start(site: &Site, collection: &Collection, bound: Bound, min_free_bytes: u64) -> Result<(), Failure> {
    let bounds = Bounds {
        limit: site.length + GUARD_GRACE,
        max_bytes: bound.bytes,
        min_free_bytes,
    };
    collector(site)
        .start(&file_name(&site.capture), collection, bounds)
        .map_err(Failure::because(CaptureReason::AttachFailed))
}

/// Fails where the session's supervisor ended the collection before its deadline.
pub(super) fn check(site: &Site, bound: Bound) -> Result<(), Failure> {
    match collector(site).verdict() {
        Some(verdict) if verdict != Verdict::Deadline => Err(verdict_failure(verdict, bound)),
        _ => Ok(()),
    }
}

/// The state of a collection that an earlier agent process started.
pub(super) fn observe(site: &Site) -> Result<Observed, Failure> {
    let (collector, name) = (collector(site), file_name(&site.capture));
    // A stop that the earlier agent began may still be writing the capture.
    if let Err(error) = collector.await_quiet() {
        warn!(%error, "whether a control command is at work cannot be told");
    }
    for attempt in 1..=MAX_STATE_ATTEMPTS {
        match read_state(collector.as_ref(), &name) {
            Ok(state) => return Ok(observed(Some(&state))),
            // The container ended before it answered.
            Err(_) if !collector.is_alive() => break,
            Err(error) if attempt == MAX_STATE_ATTEMPTS => {
                return Err(Failure::because(CaptureReason::AttachFailed)(error));
            }
            Err(error) => warn!(error = %chain(&error), "the session does not answer, asking again"),
        }
    }
    Ok(observed(None))
}

/// State of the session, and whether the container has a raw capture of that name.
fn read_state(collector: &dyn Collector, name: &str) -> Result<(SessionState, bool), GraftError> {
    Ok((collector.session()?, collector.captures(name)? > 0))
}

/// Whether the session is idle after `count` ranges, each of which has a raw capture of its own.
pub(super) fn has_ranges(site: &Site, count: usize) -> bool {
    let (collector, name) = (collector(site), file_name(&site.capture));
    // The session's state is read by a process that enters the container, so the raw captures are
    // counted first.
    collector.captures(&name).is_ok_and(|captures| captures >= count)
        && collector.session().is_ok_and(|state| state == SessionState::Idle)
}

/// Stops the collection, copies its raw captures into the capture's folder, and removes them from
/// the container. The copy is stopped once `goes_on` returns false. Where there is no raw capture,
/// `missed` gives the failure; none where the collection should have made one.
pub(super) fn stop(
    site: &Site,
    bound: Bound,
    missed: impl Fn() -> Option<Failure>,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let (collector, name) = (collector(site), file_name(&site.capture));
    let raw_captures = collector.stop(&name).map_err(|error| match collector.verdict() {
        // The stop failed because the supervisor had ended the collection: the failure gives the
        // supervisor's reason.
        Some(verdict) if verdict != Verdict::Deadline => verdict_failure(verdict, bound),
        _ => missed()
            .filter(|_| matches!(error, GraftError::NoCapture { .. }))
            .unwrap_or_else(|| Failure::new(CaptureReason::CollectionFailed, chain(&error))),
    })?;
    check(site, bound)?;
    if raw_captures.len() > MAX_REPORTS {
        let message = format!(
            "the collection left {} raw captures, more than the {MAX_REPORTS} that a capture may have",
            raw_captures.len()
        );
        return Err(Failure::new(CaptureReason::CollectionFailed, message));
    }
    let partial = site.folder.join("capture.partial");
    let max_bytes = site.limits.capture_bytes;
    let mut copied_bytes = 0;
    // The first raw capture is copied last: where its file is in the folder, all others are too.
    for (index, path) in raw_captures.iter().enumerate().rev() {
        let left_bytes = max_bytes.saturating_sub(copied_bytes);
        let copy = |file: &mut File, progress: Progress<'_>| collector.copy_out(path, file, left_bytes, progress);
        copied_bytes += take_out(&partial, goes_on, copy, |_| Bound::by_agent(max_bytes).outgrown())?;
        let target = site.folder.join(stream_name(index + 1));
        std::fs::rename(&partial, target).map_err(Failure::because(CaptureReason::CollectionFailed))?;
    }
    if let Err(error) = collector.remove(&name) {
        warn!(error = %chain(&error), "the raw capture stays in the container until a later look");
    }
    Ok(())
}

/// Ends a collection that may run, and removes its raw captures from the container. What fails is
/// logged and not returned: the session's supervisor ends a collection that goes on.
pub(crate) fn clean(collector: &dyn Collector, name: &str) {
    // A control command goes on when the helper that started it in the container dies, and may
    // still write the raw capture.
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

/// The failure of a collection that the session's supervisor ended with `verdict`.
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
            let failure = verdict_failure(verdict, Bound::by_agent(7));
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
