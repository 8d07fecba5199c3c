//! Kernels of containers that ask for it, recorded all the time: an order in the file of the CUDA
//! tracer that stands for three seconds and is renewed each second.
//!
//! Where programs write more records than the budget has (`kernels/pace.rs`), or their pod asks for
//! a share of the time, an order stands for that share of each second, and timelines have a series
//! of it.
//!
//! An agent that goes away lets the recording end by itself. A capture that records in a container
//! has it for itself: the recording ends before the capture's profiler begins, one that an earlier
//! agent has ordered too, and begins anew once the capture has left. What was recorded stays in the
//! file, which goes round, and is read from there: by sessions of the flight recorder, and for the
//! time before a window.
//!
//! A file is its container's, and who writes to it waits while another does, who may never end. So
//! each is written on a thread that may be left behind, and no lock of others is held meanwhile.

mod order;
mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_api::profiler::ProfilerType;
use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_attach::mount_kind::{self, MountError};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::tracer::{self, TraceFile};
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::transform::SampledSeries;
use flopwatch_tracer::proven;
use flopwatch_tracer_file::process::Count;
use flopwatch_tracer_file::wanted::Mode;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, info, warn};

use super::recordings::within;
use super::{Node, journal, pods};
use crate::profilers::cuda;
use pace::Pace;

/// Time between two orders: a third of that for which one stands.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// Most containers of a node whose kernels are recorded.
const MAX_CONTAINERS: usize = 256;
/// Time until a container is looked at again whose kernels are not recorded; twice as long each
/// time after.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time until one is looked at again, and the time until one is whose programs refuse.
const MAX_RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// How long a container's files are waited for.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a capture waits for programs to end what they record: a call of CUPTI takes two seconds
/// at most, and one that nobody wakes looks after a quarter of one.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the file of a container that has ended waits to be kept.
const REMAINS_DURATION: Duration = Duration::from_mins(1);
/// Pause between two looks of a capture that waits.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Why the kernels of a container are not recorded.
#[derive(Debug, thiserror::Error)]
pub enum NotRecorded {
    /// The container cannot be probed.
    #[error(transparent)]
    Probe(#[from] Failure),
    /// The CUDA tracer is closed for the container; this says what helps.
    #[error("{0}")]
    Closed(String),
    /// The container's files do not answer.
    #[error(transparent)]
    Late(#[from] Late),
    /// The tracer's file does not lie in memory.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Something was mounted over the tracer's file meanwhile.
    #[error("what was opened does not lie in memory")]
    NotInMemory,
    /// The tracer's file cannot be used.
    #[error(transparent)]
    File(#[from] tracer::Error),
    /// The programs say themselves that they do not record, or have a driver of which nothing is
    /// proven.
    #[error("{0}")]
    Refused(String),
    /// A capture records in the container.
    #[error("a capture records in the container")]
    Captured,
}

/// Whether a capture still has its container.
type Holds = Box<dyn Fn() -> bool + Send>;

/// The containers of a node whose kernels are recorded all the time. Clones share them.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// Whether drivers are recorded with that no GPU has proven.
    allow_unproven: bool,
    /// Held for moments: no file is read or written meanwhile.
    shared: Arc<Mutex<Shared>>,
}

/// By the runtime's ID of the container.
#[derive(Default)]
struct Shared {
    recordings: BTreeMap<String, Recording>,
    paces: BTreeMap<String, Pace>,
    /// What is left to read where a container ends.
    remains: BTreeMap<String, Remains>,
    /// Captures that have their container for themselves.
    captures: BTreeMap<String, Holds>,
}

/// The file of a container whose kernels are recorded, or were.
#[derive(Debug)]
struct Remains {
    file: File,
    /// Since when it is not known any more that the container runs.
    ended: Option<Instant>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("recordings", &self.recordings)
            .finish_non_exhaustive()
    }
}

/// How it stands with a container.
#[derive(Debug)]
enum Recording {
    /// It is not recorded, and is not looked at before a time.
    Closed {
        until: Instant,
        /// The pause behind the next look, if that finds the same.
        retry: Duration,
    },
    /// It is being looked at.
    Opening {
        /// The pause behind this look.
        retry: Duration,
        /// The share of the time that its pod asks for, in percent.
        percent: u32,
    },
    /// Its kernels are recorded, in this file, whose lock is held.
    Open(TraceFile),
    /// The order in its file is being renewed.
    Renewing,
}

/// What is to be done of the containers of a node, by the runtime's ID.
#[derive(Debug, Default)]
pub struct Due {
    /// Those that are to be looked at, for each of which [`Kernels::take_in`] is called then.
    pub to_look_at: Vec<String>,
    /// Those whose orders are to be [renewed](Kernels::renew), each for a share of the time in
    /// percent.
    pub to_renew: Vec<(String, u32)>,
}

impl Recording {
    /// One that is looked at again after a pause from `now` on.
    fn closed_for(pause: Duration, now: Instant) -> Self {
        Self::Closed {
            until: now + pause,
            retry: pause.saturating_mul(2).clamp(RETRY_INTERVAL, MAX_RETRY_INTERVAL),
        }
    }
}

impl Kernels {
    /// None yet; with drivers that no GPU has proven too where `allow_unproven` says so.
    pub fn new(allow_unproven: bool) -> Self {
        Self {
            allow_unproven,
            shared: Arc::default(),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Entries are put in and taken out whole.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `work` done with the pace of a container.
    fn with_pace<T>(&self, id: &str, work: impl FnOnce(&mut Pace) -> T) -> T {
        let mut shared = self.shared();
        work(shared.paces.entry(id.to_owned()).or_default())
    }

    /// What is to be done of the containers that `asked`, each for a share of the time in percent,
    /// but for those that a capture has. Others are forgotten.
    pub fn due(&self, asked: &BTreeMap<String, u32>) -> Due {
        let now = Instant::now();
        let mut shared = self.shared();
        let Shared {
            recordings,
            paces,
            remains,
            captures,
        } = &mut *shared;
        captures.retain(|_, holds| holds());
        recordings.retain(|id, _| asked.contains_key(id));
        paces.retain(|id, _| asked.contains_key(id));
        for (id, file) in &mut *remains {
            file.ended = (!asked.contains_key(id)).then(|| file.ended.unwrap_or(now));
        }
        remains.retain(|_, file| {
            file.ended
                .is_none_or(|ended| now.duration_since(ended) < REMAINS_DURATION)
        });
        let mut due = Due::default();
        for (id, percent) in asked.iter().take(MAX_CONTAINERS) {
            if captures.contains_key(id) {
                continue;
            }
            let new = || Recording::closed_for(Duration::ZERO, now);
            let recording = recordings.entry(id.clone()).or_insert_with(new);
            match recording {
                Recording::Open(_) => due.to_renew.push((id.clone(), *percent)),
                Recording::Closed { until, retry } if *until <= now => {
                    *recording = Recording::Opening {
                        retry: *retry,
                        percent: *percent,
                    };
                    due.to_look_at.push(id.clone());
                }
                Recording::Closed { .. } | Recording::Opening { .. } | Recording::Renewing => {}
            }
        }
        due
    }

    /// Renews the order of a container whose kernels are recorded, for a share of the time in
    /// percent, unless a capture has it.
    pub fn renew(&self, id: &str, percent: u32) {
        let Some(mut file) = self.begin_renewal(id) else { return };
        let is_cut = || self.with_pace(id, |pace| pace.is_cut(percent));
        let was_cut = is_cut();
        let recording = match self.order(id, &mut file, percent) {
            Ok(()) => {
                let is_cut = is_cut();
                if is_cut != was_cut {
                    info!(
                        container = id,
                        is_cut, "the number of kernels decides how much of the time is recorded"
                    );
                }
                Recording::Open(file)
            }
            Err(error) => {
                self.with_pace(id, |pace| pace.rest(utc_ns()));
                info!(container = id, why = chain(&error), "kernels are recorded no more");
                Recording::closed_for(MAX_RETRY_INTERVAL, Instant::now())
            }
        };
        // One that has ended meanwhile is none any more.
        if let Some(renewed) = self.shared().recordings.get_mut(id) {
            *renewed = recording;
        }
    }

    /// The file of a container whose kernels are recorded, which is put back behind its renewal.
    fn begin_renewal(&self, id: &str) -> Option<TraceFile> {
        let mut shared = self.shared();
        if shared.captures.contains_key(id) {
            return None;
        }
        let recording = shared.recordings.get_mut(id)?;
        match std::mem::replace(recording, Recording::Renewing) {
            Recording::Open(file) => Some(file),
            other => {
                *recording = other;
                None
            }
        }
    }

    /// Takes in what a look at a container found: with a file its kernels are recorded from now on.
    pub fn take_in(&self, id: &str, found: Result<TraceFile, NotRecorded>) {
        let looked_at = |shared: &Shared| match shared.recordings.get(id) {
            Some(Recording::Opening { retry, percent }) => Some((*retry, *percent)),
            Some(Recording::Closed { .. } | Recording::Open(_) | Recording::Renewing) | None => None,
        };
        // One that has ended meanwhile is none any more.
        let Some((retry, percent)) = looked_at(&self.shared()) else {
            return;
        };
        let opened = found.and_then(|mut file| {
            if self.is_captured(id) {
                return Err(NotRecorded::Captured);
            }
            let reader = file.reader()?;
            self.order(id, &mut file, percent)?;
            Ok((file, reader))
        });
        let mut shared = self.shared();
        if looked_at(&shared).is_none() {
            return;
        }
        let recording = match opened {
            Ok((file, reader)) => {
                info!(container = id, "kernels are recorded all the time");
                let ended = None;
                shared.remains.insert(id.to_owned(), Remains { file: reader, ended });
                Recording::Open(file)
            }
            Err(error) => {
                debug!(container = id, why = chain(&error), "kernels are not recorded");
                Recording::closed_for(retry, Instant::now())
            }
        };
        shared.recordings.insert(id.to_owned(), recording);
    }

    /// Leaves a container to a capture for as long as it `holds` it, and waits until the programs
    /// have ended what they record, three seconds at most. Where nothing is recorded by this agent,
    /// an order of an earlier one may stand in the file that `unheld` gives.
    pub async fn give_way(
        &self,
        id: &str,
        holds: impl Fn() -> bool + Send + 'static,
        unheld: impl Future<Output = Option<TraceFile>> + Send,
    ) {
        self.leave(id, holds);
        let begin = Instant::now();
        // Who looks at the container, or renews its order, has the lock of its file.
        while self.is_underway(id) && begin.elapsed() < OPEN_TIMEOUT {
            sleep(POLL_INTERVAL).await;
        }
        let file = match self.take_out(id) {
            Some(file) => Some(file),
            None => unheld.await,
        };
        let Some(mut file) = file else { return };
        let begin = Instant::now();
        let ordered = file.generation();
        let ended = tokio::task::spawn_blocking(move || end(&mut file).map(|is_ours| (is_ours, file)));
        let file = match timeout(END_TIMEOUT, ended).await {
            Ok(Ok(Ok((true, file)))) => file,
            Ok(Ok(Ok((false, _)))) => return,
            Ok(Ok(Err(error))) => {
                let why = chain(&error);
                debug!(container = id, why, "what is recorded ends at its deadline");
                return;
            }
            Ok(Err(_)) | Err(_) => {
                warn!(container = id, "the tracer's file of a container does not answer");
                return;
            }
        };
        let is_ending = |file: &TraceFile| {
            let slots = file.slots();
            slots.is_ok_and(|slots| order::are_recording(&slots.processes(), ordered))
        };
        while is_ending(&file) {
            if begin.elapsed() >= END_TIMEOUT {
                warn!(
                    container = id,
                    "a program has not ended what it records, and may still have CUPTI"
                );
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Leaves a container to a capture for as long as it `holds` it.
    pub fn leave(&self, id: &str, holds: impl Fn() -> bool + Send + 'static) {
        let mut shared = self.shared();
        shared.captures.retain(|_, holds| holds());
        shared.captures.insert(id.to_owned(), Box::new(holds));
    }

    /// Whether a container is being looked at, or its order renewed.
    fn is_underway(&self, id: &str) -> bool {
        let shared = self.shared();
        let recording = shared.recordings.get(id);
        matches!(recording, Some(Recording::Opening { .. } | Recording::Renewing))
    }

    fn is_captured(&self, id: &str) -> bool {
        self.shared().captures.get(id).is_some_and(|holds| holds())
    }

    /// The file of a container whose kernels are recorded, which are recorded no more.
    fn take_out(&self, id: &str) -> Option<TraceFile> {
        let mut shared = self.shared();
        let recording = shared.recordings.get_mut(id)?;
        let closed = Recording::closed_for(Duration::ZERO, Instant::now());
        match std::mem::replace(recording, closed) {
            Recording::Open(file) => {
                if let Some(pace) = shared.paces.get_mut(id) {
                    pace.rest(utc_ns());
                }
                Some(file)
            }
            other => {
                *recording = other;
                None
            }
        }
    }

    /// The containers of which there is something left to read, by the runtime's ID.
    pub(crate) fn known(&self) -> BTreeSet<String> {
        self.shared().remains.keys().cloned().collect()
    }

    /// What there is to read of a container that has ended.
    pub(crate) fn take_remains(&self, id: &str) -> Option<File> {
        let remains = self.shared().remains.remove(id);
        remains.map(|remains| remains.file)
    }

    /// The share of the time in which a container's kernels were recorded, as a series in a window
    /// in ns since the Unix epoch; none where it was all of it.
    pub(crate) fn within(&self, id: &str, window: &Range<u64>) -> Option<SampledSeries> {
        self.shared().paces.get(id)?.within(window)
    }

    /// Has the programs of a file go on, for a share of the time of `asked` percent at most, unless
    /// somebody else's window is open.
    fn order(&self, id: &str, file: &mut TraceFile, asked: u32) -> Result<(), NotRecorded> {
        let now_utc_ns = utc_ns();
        let wanted = file.wanted()?;
        if order::is_anothers(wanted, now_utc_ns) {
            self.with_pace(id, |pace| pace.rest(now_utc_ns));
            return Ok(());
        }
        let processes = file.slots()?.processes();
        if wanted.is_some_and(|wanted| wanted.mode == Mode::Continuous) {
            let is_open = |driver| self.allow_unproven || proven::check(driver).is_ok();
            if let Some(why) = order::refusal(&processes, file.generation(), is_open) {
                file.end()?;
                return Err(NotRecorded::Refused(why));
            }
        }
        let records = processes.iter().map(|process| process.count(Count::Records));
        let records = records.fold(0, u64::saturating_add);
        let percent = self.with_pace(id, |pace| pace.next(asked, records, now_utc_ns));
        Ok(file.order(order::continuous(now_utc_ns, percent))?)
    }
}

/// Ends what is recorded all the time in a file; false where the last order was another's window.
fn end(file: &mut TraceFile) -> Result<bool, tracer::Error> {
    match file.wanted()?.map(|wanted| wanted.mode) {
        Some(Mode::Window) => return Ok(false),
        Some(Mode::Continuous) => file.end()?,
        // The last order may have ended a moment ago.
        Some(Mode::Off) | None => {}
    }
    Ok(true)
}

/// Has kernels recorded until the node is told to stop.
pub(crate) async fn run(node: Arc<Node>) {
    // Of its own, so that what is left behind here takes no place of what looks at containers
    // elsewhere.
    let gate = Gate::default();
    let of = Arc::clone(&node);
    if let Err(error) = tokio::task::spawn_blocking(move || leave_to_earlier(&of)).await {
        warn!(%error, "the captures of an earlier agent are not known");
    }
    let mut pods_changed = node.pods_changed.subscribe();
    pods_changed.mark_changed();
    let mut ticks = interval(RENEWAL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut asked = BTreeMap::new();
    loop {
        let is_asked = !asked.is_empty();
        let due = async {
            if !is_asked {
                // Without a container that asks there is nothing to do until a pod comes.
                pods_changed.changed().await.ok();
            }
            ticks.tick().await;
        };
        if node.stop.run_until_cancelled(due).await.is_none() {
            return;
        }
        asked = pods::recording_kernels(&node.pods);
        let due = node.kernels.due(&asked);
        for (id, percent) in due.to_renew {
            let (kernels, of) = (node.kernels.clone(), id.clone());
            // One that does not come back keeps no other waiting.
            if let Err(late) = gate.begin(&id, move || kernels.renew(&of, percent), drop) {
                debug!(container = id, %late, "the order of a container is not renewed");
            }
        }
        for id in due.to_look_at {
            tokio::spawn(look_at(Arc::clone(&node), gate.clone(), id));
        }
    }
}

/// Leaves containers to captures that an earlier agent began in them and that may still be at work,
/// until this one has ended them or says itself how long it has the container.
fn leave_to_earlier(node: &Node) {
    for (file, journal) in journal::all(&node.spool) {
        let stage = &journal.stage;
        let is_over = journal.failed.is_some() || stage.has_recorded();
        let Some(attached) = stage.left_behind().filter(|_| !is_over) else {
            continue;
        };
        let profiler = node.profilers.get(attached.profiler.type_);
        if profiler.is_some_and(|profiler| profiler.records_events()) {
            node.kernels.leave(&attached.container_id, move || file.is_file());
        }
    }
}

/// Looks at a container that asks for it, and has its kernels recorded where they can be.
async fn look_at(node: Arc<Node>, gate: Gate, id: String) {
    let found = open(&node, &gate, &id).await;
    let kernels = node.kernels.clone();
    let taken = tokio::task::spawn_blocking(move || kernels.take_in(&id, found));
    if let Err(error) = taken.await {
        warn!(%error, "the look at a container ended early");
    }
}

/// The tracer's file of a container, where the tracer is open for it.
async fn open(node: &Node, gate: &Gate, id: &str) -> Result<TraceFile, NotRecorded> {
    let probed = node.containers.probe(id, false).await?;
    let without = || NotRecorded::Closed("the container's programs have no CUDA tracer".to_owned());
    let profiler = node.profilers.get(ProfilerType::Cuda).ok_or_else(without)?;
    let capability = profiler.capability(&probed.facts);
    if !capability.available {
        return Err(NotRecorded::Closed(capability.remedy));
    }
    let path = cuda::file(&probed.facts).ok_or_else(without)?;
    let (procfs, process) = (node.containers.procfs(), probed.process);
    within(gate, id, OPEN_TIMEOUT, move || in_memory(&procfs, process, &path)).await?
}

/// The tracer's file at a path of a container in which this agent records no kernels; none where
/// there is none, or another has its lock.
pub(super) async fn unheld(node: &Node, id: &str, process: ProcessId, path: Option<PathBuf>) -> Option<TraceFile> {
    let path = path?;
    let procfs = node.containers.procfs();
    let open = move || in_memory(&procfs, process, &path);
    let found = within(&node.entering.gate, id, OPEN_TIMEOUT, open).await.ok()?;
    found.ok()
}

/// The tracer's file of a container, where it lies in memory: nobody but the kernel answers for it.
fn in_memory(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<TraceFile, NotRecorded> {
    mount_kind::check_memory(procfs, process, path)?;
    let file = TraceFile::of_container(procfs, process, path)?;
    // Something may have been mounted on the way to it meanwhile.
    match mount_kind::is_in_memory(&file.reader()?) {
        Ok(true) => Ok(file),
        Ok(false) | Err(_) => Err(NotRecorded::NotInMemory),
    }
}
