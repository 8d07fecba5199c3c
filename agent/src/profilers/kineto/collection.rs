//! One collection: its folder in the container, the processes that are told, and their traces.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::kineto::{Audience, EndpointError, Endpoints, Membership, TraceFolder};
use flopwatch_model::{Loss, LossReason, Losses, count};
use flopwatch_pipeline::failure::{Failure, chain};
use tracing::{debug, info, warn};

use super::Collection;
use super::pack::{Contents, pack};
use super::place::Place;
use super::recorders::Recorders;
use super::request::LATEST;
use crate::profilers::{Observed, Site};

/// Time between two looks.
const TICK: Duration = Duration::from_millis(200);
/// How long the processes may take to write their traces, from the window's end on.
const WRITING: Duration = Duration::from_mins(3);
/// How long a process may take to begin with that.
const BEGINNING: Duration = Duration::from_secs(10);
/// How long all that follows a window's end may take: the traces, and their copies.
const FETCH_TIMEOUT: Duration = Duration::from_secs(230);
/// Free bytes below which a disk is full: from then on no more comes of a trace that is not whole.
const FULL: u64 = 64 << 10;

/// A collection that this agent began.
#[derive(Debug)]
pub(super) struct Running {
    recorders: Arc<Recorders>,
    folder: PathBuf,
    /// End of the window in ms since the Unix epoch.
    end_ms: u64,
    membership: Membership,
}

impl Running {
    /// Makes the folder, and has the container's processes told from now on. From the window's
    /// start on nobody is told any more; who asks is heard for `after` all the same, because one
    /// that nobody hears asks again after longer and longer pauses.
    pub(super) fn begin(
        endpoints: &Endpoints,
        gate: &Gate,
        site: &Site,
        collection: &Collection,
        after: Duration,
    ) -> Result<Self, Failure> {
        let place = Place::of(gate, site, collection, CaptureReason::AttachFailed);
        let folder = place.folder();
        let configuration = collection.request.configuration(&folder.path().to_string_lossy());
        place.look(|folder| {
            // That of an agent that was killed before its window, or of the first window.
            folder.remove()?;
            folder.make()
        })?;
        let latest = Instant::now() + collection.until_start().saturating_sub(LATEST);
        let (containers, id) = (Arc::clone(&site.containers), site.container_id.clone());
        let only = collection.only.clone();
        let recorders = Arc::new(Recorders::new(containers, id, configuration, latest, only));
        let told = Arc::clone(&recorders);
        let audience: Arc<dyn Audience> = told;
        let limit = collection.until_start() + after;
        let joined = endpoints.join(&site.containers.procfs(), site.process, &audience, limit);
        match joined {
            Ok(membership) => Ok(Self {
                recorders,
                folder: folder.path().to_owned(),
                end_ms: collection.end_ms(),
                membership,
            }),
            Err(error) => {
                discard(&place);
                Err(refused(&error))
            }
        }
    }

    pub(super) fn recorders(&self) -> Arc<Recorders> {
        Arc::clone(&self.recorders)
    }

    /// Until when the processes that were told record, in ms since the Unix epoch; none where nobody was.
    pub(super) fn still_recorded(&self) -> Option<u64> {
        (!self.recorders.processes().is_empty()).then_some(self.end_ms)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let counts = self.membership.counts();
        debug!(?counts, "closed the endpoint for Kineto");
    }
}

fn refused(error: &EndpointError) -> Failure {
    if matches!(error, EndpointError::Taken) {
        let message = "a dynolog daemon has the pod's programs already: something in the pod's network namespace is bound to the \
                       name dynolog. Stop it for the session (with hostNetwork it is the node's), or ask it for the trace";
        return Failure::new(CaptureReason::OtherProfiler, message);
    }
    Failure::new(CaptureReason::AttachFailed, chain(error))
}

/// Waits for the window's start. Fails where no process has asked by then.
pub(super) fn await_start(recorders: &Recorders, site: &Site, collection: &Collection) -> Result<(), Failure> {
    loop {
        let left = collection.until_start();
        if left.is_zero() {
            break;
        }
        if !site.containers.is_alive(site.process) {
            let message = "the container ended before the window opened";
            return Err(Failure::new(CaptureReason::TargetNotRunning, message));
        }
        pause(left.min(TICK));
    }
    let (told, left_out) = (recorders.processes().len(), recorders.left_out());
    info!(told, left_out, "the processes that asked what to record were told");
    if told > 0 {
        return Ok(());
    }
    if left_out > 0 {
        let message = "the container's processes asked too late what to record, as they may on a busy machine: create the session again";
        return Err(Failure::new(CaptureReason::AttachFailed, message));
    }
    let message = "no process of the container asked what to record, which PyTorch does every 5 s (versions 2.3 to 2.6 do not, and \
                   neither does a build without Kineto): look for lines of DaemonConfigLoader in its log with KINETO_LOG_LEVEL=0";
    Err(Failure::new(CaptureReason::AttachFailed, message))
}

/// Where a collection stands that an earlier agent began: the library goes on without any.
pub(super) fn observe(gate: &Gate, site: &Site, collection: &Collection) -> Result<Observed, Failure> {
    let names = Place::of(gate, site, collection, CaptureReason::AttachFailed).look(TraceFolder::names)?;
    let names: Vec<_> = names.iter().filter_map(|name| name.to_str()).collect();
    let request = &collection.request;
    if !names
        .iter()
        .any(|name| request.is_trace(name) || request.is_partial(name))
    {
        // Nobody was told.
        return Ok(Observed::Gone(None));
    }
    Ok(if collection.until_end().is_zero() {
        Observed::Done
    } else {
        Observed::Collecting
    })
}

/// Waits for the traces and brings them into the capture's folder, as one file. The folder in the container is removed.
pub(super) fn fetch(
    gate: &Gate,
    recorders: Option<&Recorders>,
    site: &Site,
    collection: &Collection,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let end = Instant::now() + collection.until_end() + FETCH_TIMEOUT;
    let place = Place::of(gate, site, collection, CaptureReason::CollectionFailed);
    let waiting = Waiting {
        limit: WRITING,
        goes_on,
        look: &mut || {},
    };
    let traces = await_traces(&place, recorders, site, collection, waiting)?.whole;
    let contents = Contents {
        losses: missing(recorders, collection, traces.len()),
        traces,
        bound: collection.bound(site),
    };
    let left = end.saturating_duration_since(Instant::now());
    let made = pack(&place, site, contents, left, goes_on);
    discard(&place);
    made
}

/// What the traces do not hold: of processes, and of the time that was asked for.
fn missing(recorders: Option<&Recorders>, collection: &Collection, traces: usize) -> Vec<Loss> {
    let mut losses = Losses::default();
    // An agent that came later knows of no process that was told.
    if let Some(recorders) = recorders {
        let silent = recorders.processes().len().saturating_sub(traces);
        losses.add(LossReason::Dropped, "processes that wrote no trace", count(silent));
        losses.add(
            LossReason::Dropped,
            "processes that asked too late what to record",
            recorders.left_out(),
        );
    }
    if let Some(why) = &collection.shortened {
        losses.add(LossReason::Truncated, &format!("window: {why}"), 1);
    }
    losses.list()
}

/// How traces are waited for.
pub(super) struct Waiting<'a> {
    /// How long at most, from the window's end on.
    pub(super) limit: Duration,
    /// Whether they still are.
    pub(super) goes_on: &'a dyn Fn() -> bool,
    /// Called again and again meanwhile.
    pub(super) look: &'a mut dyn FnMut(),
}

/// Traces that were waited for.
#[derive(Debug)]
pub(super) struct Written {
    /// Names of those that are whole.
    pub(super) whole: Vec<String>,
    /// Whether more were being written when the time was over.
    pub(super) is_late: bool,
}

/// The traces that are whole, once no other is to come. Fails where there is none.
pub(super) fn await_traces(
    place: &Place<'_>,
    recorders: Option<&Recorders>,
    site: &Site,
    collection: &Collection,
    waiting: Waiting<'_>,
) -> Result<Written, Failure> {
    let Waiting { limit, goes_on, look } = waiting;
    let request = &collection.request;
    let end = Instant::now() + collection.until_end();
    let told = recorders.map(Recorders::processes);
    loop {
        if !goes_on() {
            return Err(Failure::new(
                CaptureReason::CollectionFailed,
                "interrupted while waiting for the traces",
            ));
        }
        look();
        let names = place.look(TraceFolder::names)?;
        let names: Vec<_> = names.iter().filter_map(|name| name.to_str()).collect();
        let whole: Vec<_> = names
            .iter()
            .filter(|name| request.is_trace(name))
            .map(|name| (*name).to_owned())
            .collect();
        // By then whoever records has begun to write: the library drops a window that it hears of too late, and says so to nobody.
        let begun = Instant::now() >= end + BEGINNING;
        let is_written = match &told {
            Some(told) => told.iter().all(|(process, inner_pid)| {
                let has_begun = names.contains(&request.partial_name(*inner_pid).as_str());
                let is_whole = names.contains(&request.trace_name(*inner_pid).as_str());
                is_whole || !site.containers.is_alive(*process) || begun && !has_begun
            }),
            // Who was told is known by what they began to write.
            None => !names.iter().any(|name| request.is_partial(name)) && begun,
        };
        let alive = site.containers.is_alive(site.process);
        let full = alive && begun && is_full(place)?;
        let is_over = is_written || full || !alive;
        if is_over || Instant::now() >= end + limit {
            let wanted = told.map_or(whole.len(), |told| told.len());
            if whole.len() < wanted {
                warn!(wanted, whole = whole.len(), "some processes wrote no trace");
            }
            return if whole.is_empty() {
                Err(no_trace(collection, alive, full))
            } else {
                let is_late = !is_over;
                Ok(Written { whole, is_late })
            };
        }
        pause(TICK);
    }
}

/// Whether the disk that the processes write to has no room.
fn is_full(place: &Place<'_>) -> Result<bool, Failure> {
    Ok(place.look(TraceFolder::volume)?.free < FULL)
}

fn no_trace(collection: &Collection, alive: bool, full: bool) -> Failure {
    if full {
        let message = format!(
            "the disk of {} in the container is full, so that no process could write its trace: free some space there, or set TMPDIR of \
             the program to a larger volume",
            collection.temporary
        );
        return Failure::new(CaptureReason::DiskSpace, message);
    }
    let (reason, message) = match (alive, collection.request.options.iterations) {
        (false, _) => (
            CaptureReason::CollectionFailed,
            "the container ended before its processes had written their traces: a process that ends in the window leaves none",
        ),
        (true, Some(_)) => (
            CaptureReason::CollectionFailed,
            "no process came through the iterations of spec.profiler.kineto.iterations: they are counted by the steps of PyTorch's \
             optimizers and of torch.profiler; give the window more time, or leave iterations out",
        ),
        (true, None) => (
            CaptureReason::EventsMissed,
            "no process wrote a trace: it ended in the window, heard of the window too late because its machine was busy, or its own \
             torch.profiler was at work; its log with KINETO_LOG_LEVEL=0 says which",
        ),
    };
    Failure::new(reason, message)
}

/// Removes what a collection has in the container. Says only in the log what did not work.
pub(super) fn discard(place: &Place<'_>) {
    match place.look(TraceFolder::remove) {
        Ok(removed) => debug!(removed, "removed the folder of the traces"),
        Err(failure) => warn!(
            error = failure.message,
            "the folder of the traces stays in the container until a sweep"
        ),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a profiler's calls are on threads for blocking work"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
