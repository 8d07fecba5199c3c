//! The CUDA tracer: a library in the container's programs, which CUDA's driver loaded and which
//! records while a word in a file of the container says so (`agent/tracer`).
//!
//! Nothing enters the container: the agent writes the word, and drains the file while the window is
//! open. The window ends by itself at its deadline. Where the agent goes away meanwhile, the next
//! one takes what the file still holds and goes on. The ranges of the flight recorder of the same
//! programs stand in the same timeline.

mod capability;
mod driver;
mod order;
mod outcome;
mod probe;
mod programs;
pub(crate) mod recent;
mod source;
mod window;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_api::artifact::{CUDA_TRACE, RING};
use flopwatch_api::capability::Capability;
use flopwatch_api::capture::LiveFigures;
use flopwatch_api::preparation::FLOPWATCH_CUDA_DIR;
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::tracer::{Slots, TraceFile};
use flopwatch_model::Category;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::cuda_window::{self, CudaWindow, Earlier, Recorded};
use flopwatch_pipeline::disk::Space;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_trace::ReadLimits;
use flopwatch_tracer::proven;
use flopwatch_tracer_file::wanted::Mode;
use k8s_openapi::api::core::v1::Pod;
use tracing::{info, warn};

use super::facts::{CUDA_MPS_PIPE_DIRECTORY, Facts};
use super::findings::Findings;
use super::recorder::ring;
use super::{Observed, Profiler, RawFiles, Recipe, Site};
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;
pub use source::CudaSource;
use window::{Running, failed, stands};

/// What is drained before it is whole, in the capture's folder.
const PARTIAL: &str = "cuda.partial";
/// What the slots of the container's file held before the window.
const BEFORE: &str = "cuda.before";
/// How long the container's files are waited for.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of a window may take: three seconds of programs that do not answer, and a copy
/// of the flight recorder's file.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);
/// Bytes that a record takes at the most: a kernel and what it was launched with.
const RECORD_BYTES: u64 = 128;
/// Bytes of a program's memory that its window takes: the pool of buffers, and libcupti.
const PROGRAM_MEMORY: u64 = 32 << 20;

/// Where the programs of a container keep the tracer's file, in the container; none where they have
/// no tracer.
pub(crate) fn file(facts: &Facts) -> Option<PathBuf> {
    probe::file(&facts.variables)
}

/// The CUDA tracer.
#[derive(Debug, Default)]
pub struct Cuda {
    /// Whether it is open, for who asks for it by name, with drivers that no GPU has proven.
    allow_unproven: bool,
    /// Windows that this agent drains, by the UID of their capture.
    running: Mutex<BTreeMap<String, Running>>,
    /// Looks at containers' files.
    gate: Gate,
}

impl Cuda {
    /// The tracer, with drivers that no GPU has proven too where `allow_unproven` says so.
    pub fn new(allow_unproven: bool) -> Self {
        Self {
            allow_unproven,
            ..Self::default()
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        // An entry is put in and taken out whole.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file of the container's programs, which nobody else records by then.
    fn open(&self, site: &Site, path: Option<&Path>) -> Result<TraceFile, Failure> {
        let path = path.ok_or_else(|| {
            let message = format!(
                "the container's environment does not say where the CUDA tracer's file is ({FLOPWATCH_CUDA_DIR})"
            );
            Failure::new(CaptureReason::ProfilerUnavailable, message)
        })?;
        let (procfs, process, path) = (site.containers.procfs(), site.process, path.to_owned());
        let opened = self.gate.within(&site.container_id, FILES_TIMEOUT, move || {
            TraceFile::of_container(&procfs, process, &path)
        });
        let opened = opened.map_err(Failure::because(CaptureReason::AttachFailed))?;
        opened.map_err(|error| failed(&cuda_window::Error::File(error)))
    }

    /// Drains a window that was ordered at a time from now on, for the site's capture.
    fn keep(&self, site: &Site, window: CudaWindow, ordered_utc_ns: u64) -> Result<(), Failure> {
        let running = Running::begin(window, ordered_utc_ns).map_err(Failure::because(CaptureReason::AttachFailed))?;
        self.running().insert(site.capture.clone(), running);
        Ok(())
    }

    /// Goes on with a window that an earlier agent began, where this one does not drain it yet.
    fn resume(&self, site: &Site, source: &CudaSource) -> Result<(), Failure> {
        if self.running().contains_key(&site.capture) {
            return Ok(());
        }
        let before = fs::read(site.folder.join(BEFORE)).map_err(Failure::because(CaptureReason::AgentRestarted))?;
        let before = Slots::of_bytes(before).ok_or_else(|| {
            let message = "what an earlier agent noted of the window is damaged";
            Failure::new(CaptureReason::AgentRestarted, message)
        })?;
        let earlier = Earlier {
            generation: source.generation,
            before,
            since_utc_ns: source.prepared_utc_ns,
        };
        let file = self.open(site, source.file.as_deref())?;
        let window =
            CudaWindow::resume(file, &partial(site)?, &earlier, &limits(site)).map_err(|error| failed(&error))?;
        info!("went on with the window of an earlier agent");
        self.keep(site, self.watching(site, window), source.prepared_utc_ns)
    }

    /// A window of the site's programs, which ends where one joins with a driver that is not to be
    /// recorded with.
    fn watching(&self, site: &Site, window: CudaWindow) -> CudaWindow {
        let window = window.seen_by(programs::is_alive(site));
        if self.allow_unproven {
            return window;
        }
        window.admitting(Box::new(|driver| proven::check(driver).is_ok()))
    }

    fn judge(&self, recorded: &Recorded) -> Result<(), Failure> {
        outcome::judge(recorded, self.allow_unproven, proven::check)
    }

    /// Takes the flight recorder's file, where the programs have one.
    fn take_ranges(&self, site: &Site, source: &CudaSource) -> Result<(), Failure> {
        let Some(path) = source.ring.clone() else {
            return Ok(());
        };
        match ring::take(&self.gate, site, path, RING) {
            Ok(()) | Err(ring::RingError::NotThere) => Ok(()),
            Err(error) if !site.containers.is_alive(site.process) => {
                warn!(%error, "the container has ended, and the ranges of its flight recorder with it");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Ends a window that nobody here drains.
    fn end_left(&self, site: &Site) -> Result<(), Failure> {
        let Some(path) = probe::file_of(&site.containers.procfs(), site.process) else {
            return Ok(());
        };
        let mut file = self.open(site, Some(&path))?;
        let attach_failed = || Failure::because(CaptureReason::AttachFailed);
        let wanted = file.wanted().map_err(attach_failed())?;
        if wanted.is_some_and(|wanted| wanted.mode == Mode::Window) {
            file.end().map_err(attach_failed())?;
        }
        Ok(())
    }
}

/// Where a window is drained to: nothing lies there.
fn partial(site: &Site) -> Result<PathBuf, Failure> {
    let path = site.folder.join(PARTIAL);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::because(CaptureReason::StoreFailed)(error))
        }
        _ => Ok(path),
    }
}

/// What is kept of a window.
fn limits(site: &Site) -> ReadLimits {
    let limits = ReadLimits::default();
    ReadLimits {
        max_events: limits.max_events.min(site.limits.capture_bytes / RECORD_BYTES),
        ..limits
    }
}

impl Profiler for Cuda {
    type State = CudaSource;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Cuda
    }

    fn variables(&self) -> &'static [&'static str] {
        &[FLOPWATCH_CUDA_DIR, CUDA_MPS_PIPE_DIRECTORY]
    }

    fn inspect(&self, procfs: &Procfs, processes: &[(ProcessId, Mapped)], found: &mut Findings) {
        if let Some(look) = probe::look(&self.gate, procfs, processes) {
            found.keep(look);
        }
    }

    fn capability(&self, facts: &Facts) -> Capability {
        capability::decide(facts, self.allow_unproven, proven::check)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, _pod: Option<&Pod>) -> Result<CudaSource, Failure> {
        Ok(CudaSource::of(spec, &probed.facts))
    }

    fn passed_over(&self, source: &CudaSource) -> Result<Option<String>, Failure> {
        let told = |why| format!("open for sessions that name it, and for no others: {why}");
        Ok(source.unproven.as_ref().map(told))
    }

    fn covers(&self, spec: &ProfilerSpec, require: &[Category], source: &CudaSource) -> Result<(), Failure> {
        source.covers(spec, require)
    }

    fn prepare(&self, site: &Site, source: CudaSource) -> Result<CudaSource, Failure> {
        let file = self.open(site, source.file.as_deref())?;
        let slots = file.slots().map_err(Failure::because(CaptureReason::AttachFailed))?;
        fs::write(site.folder.join(BEFORE), slots.bytes()).map_err(Failure::because(CaptureReason::StoreFailed))?;
        Ok(CudaSource {
            generation: file.generation().wrapping_add(1).max(1),
            prepared_utc_ns: utc_ns(),
            ..source
        })
    }

    fn start(&self, site: &Site, source: &CudaSource) -> Result<(), Failure> {
        let file = self.open(site, source.file.as_deref())?;
        let ordered_utc_ns = utc_ns();
        let order = order::order(&source.options, site.length, ordered_utc_ns);
        let window = CudaWindow::begin(file, &partial(site)?, order, &limits(site)).map_err(|error| failed(&error))?;
        let mut window = self.watching(site, window);
        let begun = window.await_begin().map_err(|error| failed(&error));
        let judged = begun.and_then(|begun| outcome::judge_begin(&begun, self.allow_unproven, proven::check));
        if let Err(failure) = judged {
            if let Err(error) = window.cancel() {
                warn!(%error, "a window of the CUDA tracer ends at its deadline");
            }
            return Err(failure);
        }
        self.keep(site, window, ordered_utc_ns)
    }

    fn opened(&self, site: &Site) -> Option<u64> {
        // Programs record from a moment behind the order on, and are awaited since.
        self.running().get(&site.capture).map(|running| running.ordered_utc_ns)
    }

    fn check(&self, site: &Site, source: &CudaSource) -> Result<(), Failure> {
        self.resume(site, source)?;
        let space = Space::new(site.folder.clone(), site.limits.floor);
        space.above().map_err(Failure::because(CaptureReason::DiskSpace))?;
        let mut running = self.running();
        match running.get_mut(&site.capture).and_then(Running::look) {
            None => Ok(()),
            Some(Ok(recorded)) => self.judge(recorded),
            Some(Err(failure)) => Err(failure.clone()),
        }
    }

    fn is_complete(&self, site: &Site, _source: &CudaSource) -> Result<bool, Failure> {
        let mut running = self.running();
        let ended = running.get_mut(&site.capture).and_then(Running::look);
        Ok(ended.is_some_and(window::has_ended_early))
    }

    fn live(&self, site: &Site) -> Option<LiveFigures> {
        self.running().get(&site.capture)?.live()
    }

    fn observe(&self, site: Option<&Site>, source: &CudaSource) -> Result<Observed, Failure> {
        let Some(site) = site else {
            return Ok(Observed::ended_with("the file of its CUDA tracer"));
        };
        if self.running().contains_key(&site.capture) {
            return Ok(Observed::Collecting);
        }
        if !site.folder.join(BEFORE).is_file() {
            return Ok(Observed::Gone(None));
        }
        let wanted = self
            .open(site, source.file.as_deref())
            .and_then(|file| file.wanted().map_err(Failure::because(CaptureReason::AttachFailed)));
        Ok(match wanted {
            Ok(wanted) => stands(wanted, source.generation, utc_ns()),
            Err(failure) => Observed::Gone(Some(failure)),
        })
    }

    fn memory_to_begin(&self, source: &CudaSource) -> Result<u64, Failure> {
        Ok(source.memory())
    }

    fn stopping(&self) -> &'static str {
        "ending the window"
    }

    fn stop_timeout(&self, _source: &CudaSource) -> Result<Duration, Failure> {
        Ok(STOP_TIMEOUT)
    }

    fn stop(&self, site: &Site, source: &CudaSource, _goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        self.resume(site, source)?;
        let gone = || {
            let message = "the window of the CUDA tracer is not drained any more";
            Failure::new(CaptureReason::CollectionFailed, message)
        };
        let running = self.running().remove(&site.capture);
        let recorded = running.ok_or_else(gone)?.end()?;
        info!(?recorded, "ended the window of the CUDA tracer");
        self.judge(&recorded)?;
        // First: what was drained stands for the whole of it.
        self.take_ranges(site, source)?;
        let stored = fs::rename(site.folder.join(PARTIAL), site.folder.join(CUDA_TRACE));
        stored.map_err(Failure::because(CaptureReason::StoreFailed))?;
        self.raw_files(&site.folder).ok_or_else(gone)
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[CUDA_TRACE])
    }

    fn discard(&self, site: &Site) {
        let running = self.running().remove(&site.capture);
        let ended = match running {
            Some(running) => running.end().map(drop),
            None => self.end_left(site),
        };
        if let Err(failure) = ended {
            info!(
                why = failure.message,
                "a window of the CUDA tracer, if there is one, ends at its deadline"
            );
        }
    }

    fn steps(&self, _: &CudaSource, raw: &RawFiles, _: &SandboxDir, _: &NsysVersions) -> Result<Recipe, Failure> {
        let ranges = Some(raw.path(RING)).filter(|path| path.is_file());
        let captured = ranges.iter().map(|_| Category::NvtxRange).collect();
        let ranges = ranges.map(|path| (RING, path));
        let collected: Vec<_> = [(CUDA_TRACE, raw.path(CUDA_TRACE))].into_iter().chain(ranges).collect();
        Ok(Recipe {
            inputs: collected.iter().map(|(_, path)| path.clone()).collect(),
            collected,
            // What was recorded of CUDA the file says itself.
            captured,
            ..Recipe::default()
        })
    }
}
