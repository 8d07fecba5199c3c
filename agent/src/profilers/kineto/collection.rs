//! One collection of PyTorch's Kineto: the folder for its traces in the container, the processes
//! that are told what to record, and the traces that they write.

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
use super::recorders::Recorders;
use super::request::MIN_LEAD_TIME;
use super::trace_directory::TraceDirectory;
use crate::profilers::{Observed, Site};

/// Time between two looks at the container, or at the traces in it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long the processes may take to write their traces, from the window's end on.
const WRITE_TIMEOUT: Duration = Duration::from_mins(3);
/// How long a process may take to begin its trace, from the window's end on.
const WRITE_START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the traces and their copies may take together, from the window's end on.
const FETCH_TIMEOUT: Duration = Duration::from_secs(230);
/// Free bytes below which a disk counts as full: what is not written of a trace by then never is.
const MIN_FREE_BYTES: u64 = 64 << 10;

/// A collection that this agent process began. Dropping it closes its endpoint.
#[derive(Debug)]
pub(super) struct Running {
    recorders: Arc<Recorders>,
    /// Folder of the traces in the container.
    folder: PathBuf,
    /// End of the window in ms since the Unix epoch.
    end_ms: u64,
    membership: Membership,
}

impl Running {
    /// Makes the folder of the traces, and has the container's processes told what to record when
    /// they ask for it in time before the window. The endpoint takes requests until
    /// `open_after_start` has passed since the window's start: a process whose request nobody takes
    /// asks again after longer and longer pauses.
    pub(super) fn begin(
        endpoints: &Endpoints,
        gate: &Gate,
        site: &Site,
        collection: &Collection,
        open_after_start: Duration,
    ) -> Result<Self, Failure> {
        let directory = TraceDirectory::of(gate, site, collection, CaptureReason::AttachFailed);
        let folder = directory.folder();
        let configuration = collection.request.configuration(&folder.path().to_string_lossy());
        directory.inspect(|folder| {
            // The first window, or an agent that was killed before its window, has left a folder.
            folder.remove()?;
            folder.make()
        })?;
        let answer_deadline = Instant::now() + collection.until_start().saturating_sub(MIN_LEAD_TIME);
        let (containers, id) = (Arc::clone(&site.containers), site.container_id.clone());
        let selected = collection.only.clone();
        let recorders = Recorders::new(containers, id, configuration, answer_deadline, selected);
        let recorders = Arc::new(recorders);
        let members = Arc::clone(&recorders);
        let audience: Arc<dyn Audience> = members;
        let limit = collection.until_start() + open_after_start;
        let joined = endpoints.join(&site.containers.procfs(), site.process, &audience, limit);
        match joined {
            Ok(membership) => Ok(Self {
                recorders,
                folder: folder.path().to_owned(),
                end_ms: collection.end_ms(),
                membership,
            }),
            Err(error) => {
                discard(&directory);
                Err(endpoint_failure(&error))
            }
        }
    }

    /// The processes of the container that were told what to record.
    pub(super) fn recorders(&self) -> Arc<Recorders> {
        Arc::clone(&self.recorders)
    }

    /// The window's end in ms since the Unix epoch, until which the processes that were told
    /// record; none where no process was told.
    pub(super) fn still_recorded(&self) -> Option<u64> {
        (!self.recorders.processes().is_empty()).then_some(self.end_ms)
    }

    /// The folder of the traces in the container.
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

/// The failure of a collection whose endpoint could not be opened.
fn endpoint_failure(error: &EndpointError) -> Failure {
    if matches!(error, EndpointError::Taken) {
        let message = "a dynolog daemon has the pod's programs already: something in the pod's network namespace is bound to the \
                       name dynolog. Stop it for the session (with hostNetwork it is the node's), or ask it for the trace";
        return Failure::new(CaptureReason::OtherProfiler, message);
    }
    Failure::new(CaptureReason::AttachFailed, chain(error))
}

/// Waits for the window's start. Fails where no process was told what to record by then, and where
/// the container has ended.
pub(super) fn await_start(recorders: &Recorders, site: &Site, collection: &Collection) -> Result<(), Failure> {
    loop {
        let time_left = collection.until_start();
        if time_left.is_zero() {
            break;
        }
        if !site.containers.is_alive(site.process) {
            let message = "the container ended before the window opened";
            return Err(Failure::new(CaptureReason::TargetNotRunning, message));
        }
        pause(time_left.min(POLL_INTERVAL));
    }
    let (told_processes, left_out_processes) = (recorders.processes().len(), recorders.left_out());
    info!(
        told = told_processes,
        left_out = left_out_processes,
        "the processes that asked what to record were told"
    );
    if told_processes > 0 {
        return Ok(());
    }
    if left_out_processes > 0 {
        let message = "the container's processes asked too late what to record, as they may on a busy machine: create the session again";
        return Err(Failure::new(CaptureReason::AttachFailed, message));
    }
    let message = "no process of the container asked what to record, which PyTorch does every 5 s (versions 2.3 to 2.6 do not, and \
                   neither does a build without Kineto): look for lines of DaemonConfigLoader in its log with KINETO_LOG_LEVEL=0";
    Err(Failure::new(CaptureReason::AttachFailed, message))
}

/// The state of a collection that an earlier agent process began, told by its traces: the library
/// in the program records without an agent.
pub(super) fn observe(gate: &Gate, site: &Site, collection: &Collection) -> Result<Observed, Failure> {
    let names = TraceDirectory::of(gate, site, collection, CaptureReason::AttachFailed).inspect(TraceFolder::names)?;
    let names: Vec<_> = names.iter().filter_map(|name| name.to_str()).collect();
    let request = &collection.request;
    if !names
        .iter()
        .any(|name| request.is_trace(name) || request.is_partial(name))
    {
        // No process was told what to record.
        return Ok(Observed::Gone(None));
    }
    Ok(if collection.until_end().is_zero() {
        Observed::Done
    } else {
        Observed::Collecting
    })
}

/// Waits for the traces, packs them into one file in the capture's folder, and removes their folder
/// from the container.
pub(super) fn fetch(
    gate: &Gate,
    recorders: Option<&Recorders>,
    site: &Site,
    collection: &Collection,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let deadline = Instant::now() + collection.until_end() + FETCH_TIMEOUT;
    let directory = TraceDirectory::of(gate, site, collection, CaptureReason::CollectionFailed);
    let waiting = Waiting {
        limit: WRITE_TIMEOUT,
        goes_on,
        inspect: &mut || {},
    };
    let traces = await_traces(&directory, recorders, site, collection, waiting)?.whole;
    let contents = Contents {
        losses: count_losses(recorders, collection, traces.len()),
        traces,
        bound: collection.bound(site),
    };
    let time_left = deadline.saturating_duration_since(Instant::now());
    let packed = pack(&directory, site, contents, time_left, goes_on);
    discard(&directory);
    packed
}

/// The losses of `traces` whole traces: processes without a trace, and the part of the window that
/// was not recorded.
fn count_losses(recorders: Option<&Recorders>, collection: &Collection, traces: usize) -> Vec<Loss> {
    let mut losses = Losses::default();
    // An agent that adopted the collection knows of no process that was told.
    if let Some(recorders) = recorders {
        let without_trace = recorders.processes().len().saturating_sub(traces);
        losses.add(
            LossReason::Dropped,
            "processes that wrote no trace",
            count(without_trace),
        );
        losses.add(
            LossReason::Dropped,
            "processes that asked too late what to record",
            recorders.left_out(),
        );
    }
    if let Some(reason) = &collection.shortened {
        losses.add(LossReason::Truncated, &format!("window: {reason}"), 1);
    }
    losses.list()
}

/// How long traces are waited for, and what is done meanwhile.
pub(super) struct Waiting<'a> {
    /// Longest wait, from the window's end on.
    pub(super) limit: Duration,
    /// Whether the wait goes on. It is ended once this returns false.
    pub(super) goes_on: &'a dyn Fn() -> bool,
    /// Called before each look at the traces.
    pub(super) inspect: &'a mut dyn FnMut(),
}

/// Traces that were waited for.
#[derive(Debug)]
pub(super) struct AwaitedTraces {
    /// Names of the traces that are whole.
    pub(super) whole: Vec<String>,
    /// Whether other traces were still being written at the end of the wait.
    pub(super) is_late: bool,
}

/// Waits until no further trace is to come, and returns those that are whole. Fails where none is
/// whole, and where `waiting` was ended.
pub(super) fn await_traces(
    directory: &TraceDirectory<'_>,
    recorders: Option<&Recorders>,
    site: &Site,
    collection: &Collection,
    waiting: Waiting<'_>,
) -> Result<AwaitedTraces, Failure> {
    let Waiting {
        limit,
        goes_on,
        inspect,
    } = waiting;
    let request = &collection.request;
    let window_end = Instant::now() + collection.until_end();
    let told_processes = recorders.map(Recorders::processes);
    loop {
        if !goes_on() {
            return Err(Failure::new(
                CaptureReason::CollectionFailed,
                "interrupted while waiting for the traces",
            ));
        }
        inspect();
        let names = directory.inspect(TraceFolder::names)?;
        let names: Vec<_> = names.iter().filter_map(|name| name.to_str()).collect();
        let whole: Vec<_> = names
            .iter()
            .filter(|name| request.is_trace(name))
            .map(|name| (*name).to_owned())
            .collect();
        // A process that has not begun its trace by then has recorded nothing: the library drops a
        // window that it hears of too late, and reports that to nobody.
        let start_timeout_passed = Instant::now() >= window_end + WRITE_START_TIMEOUT;
        let is_written = match &told_processes {
            Some(processes) => processes.iter().all(|(process, inner_pid)| {
                let has_begun = names.contains(&request.partial_name(*inner_pid).as_str());
                let is_whole = names.contains(&request.trace_name(*inner_pid).as_str());
                is_whole || !site.containers.is_alive(*process) || start_timeout_passed && !has_begun
            }),
            // An agent that adopted the collection knows the processes by the traces that they have
            // begun.
            None => !names.iter().any(|name| request.is_partial(name)) && start_timeout_passed,
        };
        let is_alive = site.containers.is_alive(site.process);
        let is_disk_full = is_alive && start_timeout_passed && is_full(directory)?;
        let is_over = is_written || is_disk_full || !is_alive;
        if is_over || Instant::now() >= window_end + limit {
            let wanted = told_processes.map_or(whole.len(), |processes| processes.len());
            if whole.len() < wanted {
                warn!(wanted, whole = whole.len(), "some processes wrote no trace");
            }
            return if whole.is_empty() {
                Err(no_trace_failure(collection, is_alive, is_disk_full))
            } else {
                let is_late = !is_over;
                Ok(AwaitedTraces { whole, is_late })
            };
        }
        pause(POLL_INTERVAL);
    }
}

/// Whether the disk that the processes write their traces to is full.
fn is_full(directory: &TraceDirectory<'_>) -> Result<bool, Failure> {
    Ok(directory.inspect(TraceFolder::volume)?.free < MIN_FREE_BYTES)
}

/// The failure of a collection that has no whole trace.
fn no_trace_failure(collection: &Collection, is_alive: bool, is_disk_full: bool) -> Failure {
    if is_disk_full {
        let message = format!(
            "the disk of {} in the container is full, so that no process could write its trace: free some space there, or set TMPDIR of \
             the program to a larger volume",
            collection.temporary
        );
        return Failure::new(CaptureReason::DiskSpace, message);
    }
    let (reason, message) = match (is_alive, collection.request.options.iterations) {
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

/// Removes the folder of a collection's traces from the container. What fails is logged and not
/// returned.
pub(super) fn discard(directory: &TraceDirectory<'_>) {
    match directory.inspect(TraceFolder::remove) {
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
