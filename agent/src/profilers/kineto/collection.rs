//! One collection: its folder in the container, the processes that are told, and their traces.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::kineto::{Audience, EndpointError, Endpoints, Membership, TraceFolder};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_trace::kineto::LOSSES;
use flopwatch_trace::model::{Loss, LossReason, Losses, count};
use tracing::{debug, info, warn};

use super::recorders::Recorders;
use super::request::LATEST;
use super::{Collection, RAW};
use crate::bound::Bound;
use crate::disk::Short;
use crate::failure::{Failure, chain};
use crate::profilers::{Observed, Site};

/// How long a container's files are waited for.
const LOOK: Duration = Duration::from_secs(10);
/// Time between two looks.
const TICK: Duration = Duration::from_millis(200);
/// How long the processes may take to write their traces, from the window's end on.
const WRITING: Duration = Duration::from_mins(3);
/// How long a process may take to begin with that.
const BEGINNING: Duration = Duration::from_secs(10);
/// Free bytes below which a disk is full: from then on no more comes of a trace that is not whole.
const FULL: u64 = 64 << 10;
/// Most traces of a container.
const MOST: usize = 256;

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
    /// Makes the folder, and has the container's processes told from now on.
    pub(super) fn begin(
        endpoints: &Endpoints,
        gate: &Gate,
        site: &Site,
        collection: &Collection,
    ) -> Result<Self, Failure> {
        let folder = collection.folder(&site.capture);
        let configuration = collection.request.configuration(&folder.to_string_lossy());
        in_container(gate, site, &folder, |folder| {
            // That of an agent that was killed before its window.
            folder.remove()?;
            folder.make()
        })?;
        let latest = Instant::now() + collection.until_start().saturating_sub(LATEST);
        let (containers, id) = (Arc::clone(&site.containers), site.container_id.clone());
        let recorders = Arc::new(Recorders::new(containers, id, configuration, latest));
        let told = Arc::clone(&recorders);
        let audience: Arc<dyn Audience> = told;
        // Nobody is told any more once the window is open.
        let limit = collection.until_start();
        let joined = endpoints.join(&site.containers.procfs(), site.process, &audience, limit);
        match joined {
            Ok(membership) => Ok(Self {
                recorders,
                folder,
                end_ms: collection.end_ms(),
                membership,
            }),
            Err(error) => {
                discard(gate, site, Some(&folder));
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

/// What the traces may have.
pub(super) fn bound(gate: &Gate, site: &Site, collection: &Collection) -> Result<Bound, Failure> {
    let folder = collection.folder(&site.capture);
    let volume = in_container(gate, site, &folder, TraceFolder::volume)?;
    let above = site.limits.floor.above(volume).map_err(|short| {
        let Short { free, floor } = short;
        let message = format!(
            "the disk of {} in the container has {free} bytes free and the agent must leave {floor} (--min-free-bytes, \
             --min-free-percent): free some space there, or set TMPDIR of the program to a larger volume",
            collection.temporary
        );
        Failure::new(CaptureReason::DiskSpace, message)
    })?;
    let bound = Bound::of(site.limits.capture_bytes, site.pod_room, above);
    bound.check()?;
    Ok(bound)
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
    let folder = collection.folder(&site.capture);
    let names = in_container(gate, site, &folder, TraceFolder::names)?;
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
    let folder = collection.folder(&site.capture);
    let traces = await_traces(gate, recorders, site, collection, goes_on)?;
    let bound = collection.bound(site);
    // An agent that came later knows of no process that was told.
    let losses = recorders.map_or_else(Vec::new, |recorders| missing(recorders, traces.len()));
    let made = pack(site, &folder, &traces, &losses, bound, goes_on);
    discard(gate, site, Some(&folder));
    made
}

/// The processes of which there is no trace.
fn missing(recorders: &Recorders, traces: usize) -> Vec<Loss> {
    let mut losses = Losses::default();
    let silent = recorders.processes().len().saturating_sub(traces);
    losses.add(LossReason::Dropped, "processes that wrote no trace", count(silent));
    losses.add(
        LossReason::Dropped,
        "processes that asked too late what to record",
        recorders.left_out(),
    );
    losses.list()
}

/// Names of the traces that are whole, once no other is to come.
fn await_traces(
    gate: &Gate,
    recorders: Option<&Recorders>,
    site: &Site,
    collection: &Collection,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<String>, Failure> {
    let (folder, request) = (collection.folder(&site.capture), &collection.request);
    let end = Instant::now() + collection.until_end();
    let told = recorders.map(Recorders::processes);
    loop {
        if !goes_on() {
            return Err(Failure::new(
                CaptureReason::CollectionFailed,
                "interrupted while waiting for the traces",
            ));
        }
        let names = in_container(gate, site, &folder, TraceFolder::names)?;
        let names: Vec<_> = names.iter().filter_map(|name| name.to_str()).collect();
        let whole: Vec<_> = names
            .iter()
            .filter(|name| request.is_trace(name))
            .map(|name| (*name).to_owned())
            .collect();
        // By then whoever records has begun to write: the library drops a window that it hears of too late, and says so to nobody.
        let begun = Instant::now() >= end + BEGINNING;
        let is_over = match &told {
            Some(told) => told.iter().all(|(process, inner_pid)| {
                let has_begun = names.contains(&request.partial_name(*inner_pid).as_str());
                let is_whole = names.contains(&request.trace_name(*inner_pid).as_str());
                is_whole || !site.containers.is_alive(*process) || begun && !has_begun
            }),
            // Who was told is known by what they began to write.
            None => !names.iter().any(|name| request.is_partial(name)) && begun,
        };
        let alive = site.containers.is_alive(site.process);
        let full = alive && begun && is_full(gate, site, &folder)?;
        if is_over || full || !alive || Instant::now() >= end + WRITING {
            let wanted = told.map_or(whole.len(), |told| told.len());
            if whole.len() < wanted {
                warn!(wanted, whole = whole.len(), "some processes wrote no trace");
            }
            return if whole.is_empty() {
                Err(no_trace(collection, alive, full))
            } else {
                Ok(whole)
            };
        }
        pause(TICK);
    }
}

/// Whether the disk that the processes write to has no room.
fn is_full(gate: &Gate, site: &Site, folder: &Path) -> Result<bool, Failure> {
    Ok(in_container(gate, site, folder, TraceFolder::volume)?.free < FULL)
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

/// Copies the traces out, one after the other, into one archive, with a list of what is missing where something is.
fn pack(
    site: &Site,
    folder: &Path,
    traces: &[String],
    losses: &[Loss],
    bound: Bound,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let failed = || Failure::because(CaptureReason::CollectionFailed);
    let (partial, one) = (site.folder.join("capture.partial"), site.folder.join("trace.partial"));
    let mut archive = tar::Builder::new(File::create(&partial).map_err(failed())?);
    let mut left = bound.bytes;
    for name in traces.iter().take(MOST) {
        let mut copy = File::create(&one).map_err(failed())?;
        let folder = trace_folder(site, folder);
        match folder.copy_out(name, &mut copy, left, |_| goes_on()) {
            Ok(bytes) => left = left.saturating_sub(bytes),
            Err(RootfsError::TooLarge { .. }) => return Err(outgrown(bound)),
            Err(RootfsError::Stopped { .. }) => {
                let message = "interrupted, or short of free disk space, while the traces were taken out";
                return Err(Failure::new(CaptureReason::DiskSpace, message));
            }
            Err(error) => return Err(Failure::new(CaptureReason::CollectionFailed, chain(&error))),
        }
        drop(copy);
        archive.append_path_with_name(&one, name).map_err(failed())?;
    }
    std::fs::remove_file(&one).map_err(failed())?;
    if !losses.is_empty() {
        let list = serde_json::to_vec(losses)
            .map_err(std::io::Error::from)
            .map_err(failed())?;
        let mut header = tar::Header::new_gnu();
        header.set_size(count(list.len()));
        header.set_mode(0o644);
        archive.append_data(&mut header, LOSSES, &list[..]).map_err(failed())?;
    }
    archive
        .into_inner()
        .and_then(|file| file.sync_data())
        .map_err(failed())?;
    std::fs::rename(&partial, site.folder.join(RAW)).map_err(failed())
}

fn outgrown(bound: Bound) -> Failure {
    let failure = bound.outgrown();
    let message = format!("{}; stacks and shapes make traces larger", failure.message);
    Failure::new(failure.reason, message)
}

/// Removes what a collection has in the container. Says only in the log what did not work.
pub(super) fn discard(gate: &Gate, site: &Site, folder: Option<&Path>) {
    let Some(folder) = folder else { return };
    match in_container(gate, site, folder, TraceFolder::remove) {
        Ok(removed) => debug!(removed, "removed the folder of the traces"),
        Err(failure) => warn!(
            error = failure.message,
            "the folder of the traces stays in the container until a sweep"
        ),
    }
}

fn trace_folder(site: &Site, folder: &Path) -> TraceFolder {
    TraceFolder::new(site.containers.procfs(), site.process, folder.to_owned())
}

/// Does that with the files of the container, on a thread that may be left behind.
fn in_container<T: Send + 'static>(
    gate: &Gate,
    site: &Site,
    folder: &Path,
    work: impl FnOnce(&TraceFolder) -> Result<T, RootfsError> + Send + 'static,
) -> Result<T, Failure> {
    let folder = trace_folder(site, folder);
    let done = gate.within(&site.container_id, LOOK, move || work(&folder));
    let done = done.map_err(Failure::because(CaptureReason::AttachFailed))?;
    done.map_err(|error| {
        if site.containers.is_alive(site.process) {
            return Failure::new(CaptureReason::AttachFailed, chain(&error));
        }
        let message = "the container has ended, and what it had written of its traces with it";
        Failure::new(CaptureReason::TargetNotRunning, message)
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a profiler's calls are on threads for blocking work"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
