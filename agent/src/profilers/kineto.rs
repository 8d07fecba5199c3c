//! PyTorch's Kineto on demand: a program that was started with `KINETO_USE_DAEMON` asks every 5 s
//! what to record, and writes a trace for each of its processes.
//!
//! Nothing enters the container. The library keeps to the window by itself, so that a window that
//! no agent ends does end; it cannot be ended earlier either. What it records lies in the program's
//! memory, so that each window is preceded by one of a fraction of a second, by which its length is
//! decided (`budget.rs`).

mod budget;
mod capability;
mod collection;
mod pack;
mod probe;
mod recorders;
mod request;
mod room;
mod tally;
mod trace_directory;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::kineto::{Endpoints, folder_name};
use flopwatch_attach::process::ProcessId;
use flopwatch_launcher::run_dir::unix_ms;
use flopwatch_model::Category;
use flopwatch_pipeline::activity::milliseconds;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use tracing::info;

use super::facts::{Facts, TMPDIR};
use super::profiler::{collected, holds};
use super::{Observed, Profiler, RawFiles, Recipe, Shortened, Site};
use crate::bound::Bound;
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;
use budget::WindowRequest;
use capability::{KINETO_IPC_SOCKET_DIR, KINETO_USE_DAEMON};
use collection::Running;
use probe::{FirstWindow, Processors};
use recorders::Recorders;
pub(crate) use request::temporary_folder;
use request::{LEAD_TIME, Request};
use room::Room;
use trace_directory::TraceDirectory;

/// The traces of all processes, in the capture's folder.
use flopwatch_api::artifact::TRACES as RAW;

/// How long a capture waits for processes that record for one that was given up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a collection's stop may take, from the window's end on.
const STOP_TIMEOUT: Duration = Duration::from_mins(4);

/// PyTorch's Kineto.
#[derive(Debug, Default)]
pub struct Kineto {
    endpoints: Endpoints,
    /// What this agent collects, by capture.
    running: Mutex<BTreeMap<String, Running>>,
    /// Ends of windows that processes were told and nobody waits for any more, by container, in ms
    /// since the Unix epoch.
    forgotten: Mutex<BTreeMap<String, u64>>,
    /// Looks at containers' files.
    gate: Gate,
}

/// What the journal keeps of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// What the processes are told.
    request: Request,
    /// The folder of the container that the traces' own folder is in.
    temporary: String,
    /// Whether the program uses CUDA.
    cuda: bool,
    /// Until when the processes may record for an agent that is no more, in ms since the Unix
    /// epoch; 0: they do not.
    #[serde(default)]
    busy_until_ms: u64,
    /// What the traces may have; none before the collection is prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
    /// The processes that are told; none where each is that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<BTreeSet<ProcessId>>,
    /// Why the window is shorter than was asked for; none where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shortened: Option<String>,
}

impl Collection {
    /// Where the traces of a capture are, in the container.
    fn folder(&self, capture: &str) -> PathBuf {
        Path::new(&self.temporary).join(folder_name(capture))
    }

    /// Time until the window's start; none once it has begun.
    fn until_start(&self) -> Duration {
        let start = UNIX_EPOCH + Duration::from_millis(self.request.start_ms);
        start.duration_since(SystemTime::now()).unwrap_or_default()
    }

    /// End of the window in ms since the Unix epoch.
    fn end_ms(&self) -> u64 {
        self.request.start_ms.saturating_add(self.request.length_ms)
    }

    /// Time until the window's end.
    fn until_end(&self) -> Duration {
        let end = UNIX_EPOCH + Duration::from_millis(self.end_ms());
        end.duration_since(SystemTime::now()).unwrap_or_default()
    }

    /// The first window before this one, of that length.
    fn first(&self, start_ms: u64, length: Duration) -> Self {
        let mut first = self.clone();
        // One by iterations ends when the program wants.
        first.request.options.iterations = None;
        first.request.start_ms = start_ms;
        first.request.length_ms = milliseconds(length);
        first
    }

    fn asked(&self, length: Duration) -> WindowRequest {
        let options = &self.request.options;
        WindowRequest {
            length,
            detailed: options.stacks || options.shapes || options.memory || options.flops || options.modules,
            by_iterations: options.iterations.is_some(),
        }
    }

    fn records(&self) -> Vec<Category> {
        // Kineto records the nodes of graphs, and nothing of unified memory.
        let never = [Category::CudaGraph, Category::CudaMigration];
        let cuda = Category::CUDA.into_iter();
        let cuda = cuda.filter(|category| self.cuda && !never.contains(category));
        self.request.options.records().into_iter().chain(cuda).collect()
    }

    fn bound(&self, site: &Site) -> Bound {
        let agents = Bound::by_agent(site.limits.capture_bytes);
        self.bound.unwrap_or(agents)
    }
}

impl Kineto {
    /// Until when the container's processes may record for a window that was given up; 0: they do
    /// not.
    fn forgotten(&self, container_id: &str) -> u64 {
        let mut forgotten = lock(&self.forgotten);
        let now = unix_ms();
        forgotten.retain(|_, end| *end > now);
        forgotten.get(container_id).copied().unwrap_or_default()
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        lock(&self.running)
    }

    /// When the container's processes can be told of a window, in ms since the Unix epoch.
    fn free_ms(&self, site: &Site, collection: &Collection) -> Result<u64, Failure> {
        let now = unix_ms();
        let free = collection
            .busy_until_ms
            .max(self.forgotten(&site.container_id))
            .max(now);
        let wait = Duration::from_millis(free.saturating_sub(now));
        if wait <= BUSY_TIMEOUT {
            return Ok(free);
        }
        let message = format!(
            "the container's processes record for {} s more: the window of a session that was given up, which PyTorch cannot be told \
             to end; create the session again then",
            milliseconds(wait).div_ceil(1000)
        );
        Err(Failure::new(CaptureReason::ContainerBusy, message))
    }

    /// Has a collection's processes told from now on, in the place of those of the window before.
    /// The pod's programs are heard all the time between both.
    fn begin(&self, site: &Site, collection: &Collection, after: Duration) -> Result<Arc<Recorders>, Failure> {
        let running = Running::begin(&self.endpoints, &self.gate, site, collection, after)?;
        let recorders = running.recorders();
        let before = self.running().insert(site.capture.clone(), running);
        drop(before);
        collection::await_start(&recorders, site, collection)?;
        Ok(recorders)
    }

    /// Records the first window, once the processes are free.
    fn probe(&self, site: &Site, collection: &Collection, room: &Room) -> Result<FirstWindow, Failure> {
        let free_ms = self.free_ms(site, collection)?;
        let processes = probe::processes(&self.gate, site, collection)?;
        let length = budget::probe_length(room.means(site).memory, processes)?;
        let first = collection.first(free_ms.saturating_add(milliseconds(LEAD_TIME)), length);
        let processors = Processors::of(site);
        let recorders = self.begin(site, &first, probe::ASKER_TTL)?;
        probe::read(&self.gate, &recorders, site, &first, room, processors)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one insertion or removal.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiler for Kineto {
    type State = Collection;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Kineto
    }

    fn variables(&self) -> &'static [&'static str] {
        &[KINETO_USE_DAEMON, KINETO_IPC_SOCKET_DIR, TMPDIR]
    }

    fn capability(&self, facts: &Facts) -> Capability {
        capability::decide(facts)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, _pod: Option<&Pod>) -> Result<Collection, Failure> {
        let tmpdir = probed.facts.variables.get(TMPDIR).map(String::as_str);
        Ok(Collection {
            request: Request {
                options: spec.kineto.clone().unwrap_or_default(),
                start_ms: 0,
                length_ms: 0,
            },
            temporary: temporary_folder(tmpdir).to_owned(),
            cuda: probed.uses_cuda,
            busy_until_ms: 0,
            bound: None,
            only: None,
            shortened: None,
        })
    }

    fn follow(&self, earlier: &Collection, collection: Collection) -> Result<Collection, Failure> {
        Ok(Collection {
            // One that was never prepared has told nobody.
            busy_until_ms: earlier.end_ms().max(earlier.busy_until_ms),
            ..collection
        })
    }

    fn expects(&self) -> &'static [Category] {
        &[Category::CpuOp]
    }

    fn covers(&self, _spec: &ProfilerSpec, require: &[Category], collection: &Collection) -> Result<(), Failure> {
        let records = collection.records();
        // A program may use CUDA later than it was looked at.
        let is_held = |category: &Category| records.contains(category) || Category::CUDA.contains(category);
        holds(require, is_held, |missing| {
            format!(
                "a timeline of Kineto holds no events of {missing} as the session asks for it: take them out of spec.require, or \
                 set spec.profiler.kineto.stacks for python_function"
            )
        })
    }

    fn prepare(&self, site: &Site, mut collection: Collection) -> Result<Collection, Failure> {
        let room = Room::inspect(&self.gate, site, &collection)?;
        let seen = self.probe(site, &collection, &room)?;
        // What the first window took is not there any more.
        let window = budget::window(collection.asked(site.length), &seen.probe, &room.means(site))?;
        info!(probe = ?seen.probe, ?window, "decided how long the window is");
        collection.bound = Some(room.traces);
        collection.only = Some(seen.asked);
        collection.shortened = window.shortened;
        collection.request.start_ms = unix_ms().saturating_add(milliseconds(LEAD_TIME));
        collection.request.length_ms = milliseconds(window.length);
        Ok(collection)
    }

    fn start(&self, site: &Site, collection: &Collection) -> Result<(), Failure> {
        self.begin(site, collection, Duration::ZERO).map(drop)
    }

    fn shortened(&self, collection: &Collection) -> Result<Option<Shortened>, Failure> {
        let length = Duration::from_millis(collection.request.length_ms);
        let shortened = collection.shortened.clone();
        Ok(shortened.map(|why| Shortened { length, why }))
    }

    fn starts_again(&self, site: &Site) -> bool {
        // A process that still writes the trace of another window, or that a busy machine held up,
        // asks 5 s later.
        let running = self.running();
        running
            .get(&site.capture)
            .is_some_and(|running| running.still_recorded().is_none())
    }

    fn observe(&self, site: Option<&Site>, collection: &Collection) -> Result<Observed, Failure> {
        let Some(site) = site else {
            return Ok(Observed::ended_with("its traces"));
        };
        collection::observe(&self.gate, site, collection)
    }

    /// Its library cannot be told to stop: how long its windows are is decided before.
    fn can_be_ended(&self) -> bool {
        false
    }

    fn stopping(&self) -> &'static str {
        "waiting for the traces"
    }

    fn stop_timeout(&self, collection: &Collection) -> Result<Duration, Failure> {
        Ok(collection.until_end().saturating_add(STOP_TIMEOUT))
    }

    fn stop(&self, site: &Site, collection: &Collection, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        // Stays where it is until the traces are here: what ends in between is discarded with it.
        let recorders = self.running().get(&site.capture).map(Running::recorders);
        collection::fetch(&self.gate, recorders.as_deref(), site, collection, goes_on)?;
        drop(self.running().remove(&site.capture));
        collected(self, site, "the traces are not in the capture's folder")
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[RAW])
    }

    fn discard(&self, site: &Site) {
        let running = self.running().remove(&site.capture);
        let Some(running) = running else { return };
        if let Some(end_ms) = running.still_recorded() {
            lock(&self.forgotten).insert(site.container_id.clone(), end_ms);
        }
        let path = running.folder().to_owned();
        collection::discard(&TraceDirectory::at(&self.gate, site, path, CaptureReason::AttachFailed));
    }

    fn steps(
        &self,
        collection: &Collection,
        raw: &RawFiles,
        _: &SandboxDir,
        _: &NsysVersions,
    ) -> Result<Recipe, Failure> {
        let traces = raw.path(RAW);
        Ok(Recipe {
            inputs: vec![traces.clone()],
            collected: vec![(RAW, traces)],
            captured: collection.records(),
            ..Recipe::default()
        })
    }
}
