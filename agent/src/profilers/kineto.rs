//! PyTorch's Kineto on demand: a program that was started with `KINETO_USE_DAEMON` asks every 5 s what to record, and writes
//! a trace for each of its processes.
//!
//! Nothing enters the container. The library keeps to the window by itself, so that a window that no agent ends does end; it
//! cannot be ended earlier either.

mod capability;
mod collection;
mod recorders;
mod request;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::requirement::Requirement;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::kineto::{Endpoints, folder_name};
use flopwatch_launcher::run_dir::unix_ms;
use flopwatch_trace::model::Category;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, TMPDIR};
use super::{Observed, Profiler, RawFiles, Recipe, Site, State};
use crate::bound::{Bound, BoundBy};
use crate::failure::Failure;
use crate::node::containers::Probed;
use crate::sentence::names;
use crate::signs::milliseconds;
use crate::toolbox::Toolbox;
use crate::workplace::Workplace;
use collection::Running;
pub(crate) use request::temporary_folder;
use request::{LEAD, Request};

/// The traces of all processes, in the capture's folder.
use flopwatch_api::artifact::TRACES as RAW;

/// How long a capture waits for processes that record for one that was given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// PyTorch's Kineto.
#[derive(Debug, Default)]
pub struct Kineto {
    endpoints: Endpoints,
    /// What this agent collects, by capture.
    running: Mutex<BTreeMap<String, Running>>,
    /// Ends of windows that processes were told and nobody waits for any more, by container, in ms since the Unix epoch.
    forgotten: Mutex<BTreeMap<String, u64>>,
    /// Looks at containers' files.
    gate: Gate,
}

/// What the journal keeps of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Collection {
    /// What the processes are told.
    request: Request,
    /// The folder of the container that the traces' own folder is in.
    temporary: String,
    /// Whether the program uses CUDA.
    cuda: bool,
    /// Until when the processes may record for an agent that is no more, in ms since the Unix epoch; 0: they do not.
    #[serde(default)]
    busy_until_ms: u64,
    /// What the traces may have; none before the collection is prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
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

    fn records(&self) -> Vec<Category> {
        let cuda = Category::CUDA.into_iter().filter(|_| self.cuda);
        self.request.options.records().into_iter().chain(cuda).collect()
    }

    fn bound(&self, site: &Site) -> Bound {
        self.bound.unwrap_or(Bound {
            bytes: site.limits.capture_bytes,
            by: BoundBy::Agent,
        })
    }
}

impl Kineto {
    /// Until when the container's processes may record for a window that was given up; 0: they do not.
    fn forgotten(&self, container_id: &str) -> u64 {
        let mut forgotten = lock(&self.forgotten);
        let now = unix_ms();
        forgotten.retain(|_, end| *end > now);
        forgotten.get(container_id).copied().unwrap_or_default()
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        lock(&self.running)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one insertion or removal.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiler for Kineto {
    fn type_(&self) -> ProfilerType {
        ProfilerType::Kineto
    }

    fn capability(&self, facts: &Facts) -> Capability {
        capability::decide(facts)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, _pod: Option<&Pod>) -> Result<State, Failure> {
        let tmpdir = probed.facts.variables.get(TMPDIR).map(String::as_str);
        let collection = Collection {
            request: Request {
                options: spec.kineto.clone().unwrap_or_default(),
                start_ms: 0,
                length_ms: 0,
            },
            temporary: temporary_folder(tmpdir).to_owned(),
            cuda: probed.uses_cuda,
            busy_until_ms: 0,
            bound: None,
        };
        State::of(self.type_(), &collection)
    }

    fn follow(&self, earlier: &State, state: State) -> Result<State, Failure> {
        let earlier: Collection = earlier.read()?;
        let mut collection: Collection = state.read()?;
        // One that was never prepared has told nobody.
        collection.busy_until_ms = earlier.end_ms().max(earlier.busy_until_ms);
        State::of(self.type_(), &collection)
    }

    fn expects(&self) -> &'static [Category] {
        &[Category::CpuOp]
    }

    fn covers(&self, _spec: &ProfilerSpec, require: &[Requirement], state: &State) -> Result<(), Failure> {
        let records = state.read::<Collection>()?.records();
        let missing = require.iter().filter(|required| match required {
            // A program may use CUDA later than it was looked at.
            Requirement::Category(category) => !records.contains(category) && !Category::CUDA.contains(category),
            Requirement::Former(_) => true,
        });
        let missing: Vec<_> = missing.map(|required| required.as_str()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "a timeline of Kineto holds no events of {} as the session asks for it: take them out of spec.require, or set \
             spec.profiler.kineto.stacks for python_function",
            names(missing.into_iter())
        );
        Err(Failure::new(CaptureReason::ProfilerUnavailable, message))
    }

    fn prepare(&self, site: &Site, state: State) -> Result<State, Failure> {
        let mut collection: Collection = state.read()?;
        collection.bound = Some(collection::bound(&self.gate, site, &collection)?);
        let now = unix_ms();
        let free = collection
            .busy_until_ms
            .max(self.forgotten(&site.container_id))
            .max(now);
        let wait = Duration::from_millis(free.saturating_sub(now));
        if wait > PATIENCE {
            let message = format!(
                "the container's processes record for {} s more: the window of a session that was given up, which PyTorch cannot be told \
                 to end; create the session again then",
                milliseconds(wait).div_ceil(1000)
            );
            return Err(Failure::new(CaptureReason::ContainerBusy, message));
        }
        collection.request.start_ms = free.saturating_add(milliseconds(LEAD));
        collection.request.length_ms = milliseconds(site.length);
        State::of(self.type_(), &collection)
    }

    fn start(&self, site: &Site, state: &State) -> Result<(), Failure> {
        let collection: Collection = state.read()?;
        let running = Running::begin(&self.endpoints, &self.gate, site, &collection)?;
        let recorders = running.recorders();
        self.running().insert(site.capture.clone(), running);
        collection::await_start(&recorders, site, &collection)
    }

    fn starts_again(&self, site: &Site) -> bool {
        // A process that still writes the trace of another window, or that a busy machine held up, asks 5 s later.
        let running = self.running();
        running
            .get(&site.capture)
            .is_some_and(|running| running.still_recorded().is_none())
    }

    fn observe(&self, site: Option<&Site>, state: &State) -> Result<Observed, Failure> {
        let Some(site) = site else {
            let message = "the container ended while the agent of the node was away, and its traces with it";
            let failure = Failure::new(CaptureReason::ContainerRestarted, message);
            return Ok(Observed::Gone(Some(failure)));
        };
        collection::observe(&self.gate, site, &state.read()?)
    }

    fn stopping(&self) -> &'static str {
        "waiting for the traces"
    }

    fn stop(&self, site: &Site, state: &State, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        let collection: Collection = state.read()?;
        // Stays where it is until the traces are here: what ends in between is discarded with it.
        let recorders = self.running().get(&site.capture).map(Running::recorders);
        collection::fetch(&self.gate, recorders.as_deref(), site, &collection, goes_on)?;
        drop(self.running().remove(&site.capture));
        self.raw_files(&site.folder).ok_or_else(|| {
            let message = "the traces are not in the capture's folder";
            Failure::new(CaptureReason::CollectionFailed, message)
        })
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[RAW])
    }

    fn discard(&self, site: &Site) {
        let running = self.running().remove(&site.capture);
        if let Some(end_ms) = running.as_ref().and_then(Running::still_recorded) {
            lock(&self.forgotten).insert(site.container_id.clone(), end_ms);
        }
        collection::discard(&self.gate, site, running.as_ref().map(Running::folder));
    }

    fn steps(&self, state: &State, raw: &RawFiles, _place: &Workplace, _toolbox: &Toolbox) -> Result<Recipe, Failure> {
        let traces = raw.path(RAW);
        Ok(Recipe {
            exports: vec![traces.clone()],
            collected: vec![(RAW, traces)],
            captured: state.read::<Collection>()?.records(),
            ..Recipe::default()
        })
    }
}
