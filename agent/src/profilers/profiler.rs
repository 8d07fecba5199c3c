//! What a profiler answers and does for a capture, and what it leaves.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::capability::Capability;
use flopwatch_api::capture::{CategoryCount, LiveFigures, TracedCategory};
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::GraftError;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::products::Recipe;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::sentence::names;
use flopwatch_pipeline::transform::Samples;
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::containers::Probed;
use super::facts::Facts;
use super::findings::Findings;
use super::progress::Progress;
use super::site::Site;
use crate::nsys_versions::NsysVersions;

/// How long a profiler may take to stop, where it does not say otherwise: longer than any of them
/// waits for what its program writes.
pub const STOP_TIMEOUT: Duration = Duration::from_mins(15);
/// Bytes that are copied between two calls of `goes_on`.
const BYTES_BETWEEN_CHECKS: u64 = 16 << 20;
/// Message of the failure of a collection, or of a copy of its raw captures, that would take too
/// much of the disk.
pub(super) const NO_SPACE: &str =
    "the node's disk would have less free space left than the agent must leave (--min-free-bytes, --min-free-percent)";

/// One way to profile a container. Every call may block, but is bounded.
pub trait Profiler: fmt::Debug + Send + Sync {
    /// What the journal holds of a collection of this profiler.
    type State: Serialize + DeserializeOwned;

    /// The profiler's name in requests, statuses and journals.
    fn type_(&self) -> ProfilerType;

    /// Variables of a container's first process that it decides by.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Keeps what this profiler alone looks for in a container, whose processes have mapped these
    /// libraries. A look changes nothing there, and takes a few seconds at most.
    fn inspect(&self, _procfs: &Procfs, _processes: &[(ProcessId, Mapped)], _found: &mut Findings) {}

    /// Whether it can be used on a container, with the reason and the remedy where it cannot.
    fn capability(&self, facts: &Facts) -> Capability;

    /// The state with which it would collect what `spec` asks for in a container that was probed.
    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<Self::State, Failure>;

    /// The state with which it publishes what the node kept of a container that has ended; none
    /// where that is nothing of its own.
    fn attach_to_kept(&self, _kept: Remains) -> Result<Option<Self::State>, Failure> {
        Ok(None)
    }

    /// Whether its captures hold events. One without them is no answer to a session that requires
    /// some.
    fn records_events(&self) -> bool {
        true
    }

    /// The end of the time that it looks back on, in ns since the Unix epoch, where it publishes
    /// what was recorded before `now`: there is no window to wait for.
    fn looks_back(&self, _state: &Self::State, _now_utc_ns: u64) -> Result<Option<u64>, Failure> {
        Ok(None)
    }

    /// Categories of which any must hold events, where the session lists none and the program does
    /// not use CUDA.
    fn expects(&self) -> &'static [Category] {
        &[Category::NvtxRange]
    }

    /// The state of a collection that begins anew, where one that an earlier agent started may
    /// still be at work in the container.
    fn follow(&self, _earlier: &Self::State, state: Self::State) -> Result<Self::State, Failure> {
        Ok(state)
    }

    /// Fails where its capture could not hold what the session asks for.
    fn covers(&self, _spec: &ProfilerSpec, _require: &[Category], _state: &Self::State) -> Result<(), Failure> {
        Ok(())
    }

    /// Why `Auto` passes it over where it is open: it takes whoever asks for it by name alone. None
    /// where `Auto` may take it.
    fn passed_over(&self, _state: &Self::State) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// What the journal has to hold before the collection is started: the state, with what was
    /// found out for the start.
    fn prepare(&self, _site: &Site, state: Self::State) -> Result<Self::State, Failure> {
        Ok(state)
    }

    /// Starts the collection. What is started outside of this process must end by itself if the
    /// agent does not come back.
    fn start(&self, site: &Site, state: &Self::State) -> Result<(), Failure>;

    /// When the window opened, in ns since the Unix epoch, where that was before
    /// [`Profiler::start`] returned: what was recorded meanwhile is of the window. It is asked
    /// behind that.
    fn opened(&self, _site: &Site) -> Option<u64> {
        None
    }

    /// Whether a start that failed is worth another one, which is prepared anew: nothing was begun
    /// in the container, and what was in the way passes.
    fn starts_again(&self, _site: &Site) -> bool {
        false
    }

    /// Fails when the collection has ended before its time: what is left of the window shows
    /// nothing. Asked about once a second.
    fn check(&self, _site: &Site, _state: &Self::State) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether all is recorded that was asked for, so that the window need not stay open. Asked
    /// about once a second.
    fn is_complete(&self, _site: &Site, _state: &Self::State) -> Result<bool, Failure> {
        Ok(false)
    }

    /// What the open window has recorded so far; none where that is not known before its end. It is
    /// asked about as often as progress is told, and waits for nothing.
    fn live(&self, _site: &Site) -> Option<LiveFigures> {
        None
    }

    /// Whether the program has ended whose end ends the window.
    fn has_ended(&self, site: &Site) -> bool {
        !site.containers.is_alive(site.process)
    }

    /// Where a collection stands that an earlier agent started. No site: the container ended, or
    /// another of its name runs.
    fn observe(&self, site: Option<&Site>, state: &Self::State) -> Result<Observed, Failure>;

    /// Fails where the GPU samples that were taken beside the collection are all of it, and there
    /// are none.
    fn accept(&self, _samples: &Samples) -> Result<(), Failure> {
        Ok(())
    }

    /// Processor time that its own processes in the container have used so far; none where it has
    /// none that are known.
    fn processor_time(&self, _site: &Site) -> Option<Duration> {
        None
    }

    /// Whether a window can be ended for the memory that it takes.
    fn can_be_ended(&self) -> bool {
        true
    }

    /// Bytes of memory that a window may take before it is seen to take too much and has ended:
    /// they must be left for it to begin.
    fn memory_to_begin(&self, _state: &Self::State) -> Result<u64, Failure> {
        Ok(0)
    }

    /// Bytes of the program's memory that the end of a window takes at the most, for each byte that
    /// the window took.
    fn memory_to_end(&self) -> u64 {
        0
    }

    /// The window that a collection was prepared with, where it is shorter than was asked for: its
    /// profiler cannot be ended, and there is no room for more.
    fn shortened(&self, _state: &Self::State) -> Result<Option<Shortened>, Failure> {
        Ok(None)
    }

    /// What [`Profiler::stop`] does, for the capture's status.
    fn stopping(&self) -> &'static str;

    /// How long [`Profiler::stop`] may take. What waits beyond that is left behind, and the capture
    /// fails.
    fn stop_timeout(&self, _state: &Self::State) -> Result<Duration, Failure> {
        Ok(STOP_TIMEOUT)
    }

    /// Ends the collection and brings its raw files into the capture's folder, while `goes_on` says
    /// so.
    fn stop(&self, site: &Site, state: &Self::State, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure>;

    /// The raw files of a collection that was stopped; none unless all of them are in the capture's
    /// folder, whole.
    fn raw_files(&self, folder: &Path) -> Option<RawFiles>;

    /// Ends a collection that may run and throws away what it recorded. Safe to run twice; what
    /// does not work is logged.
    fn discard(&self, site: &Site);

    /// How the raw files become what the transform reads.
    fn steps(
        &self,
        state: &Self::State,
        raw: &RawFiles,
        sandbox: &SandboxDir,
        nsys_versions: &NsysVersions,
    ) -> Result<Recipe, Failure>;

    /// Files of the collection that only its own tools read, each with the name under which it is
    /// published as Raw where those made no report of them.
    fn unread(&self, _raw: &RawFiles) -> Vec<(String, PathBuf)> {
        Vec::new()
    }

    /// What came of each category that it traced, in its own words; empty where it does not trace
    /// by category.
    fn outcomes(&self, _state: &Self::State, _counts: &[CategoryCount]) -> Result<Vec<TracedCategory>, Failure> {
        Ok(Vec::new())
    }
}

/// The raw files of a collection that was just stopped; fails with `absent` where they are not
/// there.
pub(super) fn collected(profiler: &impl Profiler, site: &Site, absent: &str) -> Result<RawFiles, Failure> {
    let files = profiler.raw_files(&site.folder);
    files.ok_or_else(|| Failure::new(CaptureReason::CollectionFailed, absent))
}

/// Takes what a profiler wrote out of its container, with `copy` to the file `target`, and returns
/// its bytes. The copy is stopped once `goes_on` returns false.
pub(super) fn take_out(
    target: &Path,
    goes_on: &dyn Fn() -> bool,
    copy: impl FnOnce(&mut File, Progress<'_>) -> Result<u64, GraftError>,
    too_large: impl FnOnce(u64) -> Failure,
) -> Result<u64, Failure> {
    let mut file = File::create(target).map_err(Failure::because(CaptureReason::CollectionFailed))?;
    let mut checked_bytes = 0_u64;
    let mut continues = |bytes: u64| {
        // `goes_on` asks the file system, which for every block would cost more than the copy.
        if bytes.saturating_sub(checked_bytes) < BYTES_BETWEEN_CHECKS {
            return true;
        }
        checked_bytes = bytes;
        goes_on()
    };
    match copy(&mut file, &mut continues) {
        Ok(bytes) => {
            debug!(bytes, "took out what the profiler wrote");
            Ok(bytes)
        }
        Err(GraftError::Files(RootfsError::TooLarge { limit, .. })) => Err(too_large(limit)),
        Err(GraftError::Files(RootfsError::Stopped { .. })) => Err(Failure::new(CaptureReason::DiskSpace, NO_SPACE)),
        Err(error) => Err(Failure::because(CaptureReason::CollectionFailed)(error)),
    }
}

/// Fails where not all is held that a session requires: with `message` of the names of the rest.
pub(super) fn holds(
    require: &[Category],
    is_held: impl Fn(&Category) -> bool,
    message: impl FnOnce(&str) -> String,
) -> Result<(), Failure> {
    let missing = require.iter().filter(|category| !is_held(category));
    let missing: Vec<_> = missing.map(|category| category.name()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = message(&names(missing.into_iter()));
    Err(Failure::new(CaptureReason::ProfilerUnavailable, message))
}

/// What the node kept of a container that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    /// The copy of the flight recorder's file.
    pub ring: Option<PathBuf>,
    /// What was recorded of kernels all the time.
    pub kernels: Option<PathBuf>,
    /// When the container ended, in ns since the Unix epoch.
    pub ended_utc_ns: u64,
}

/// A window that is shorter than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// Length of the window.
    pub length: Duration,
    /// Why, with the figures.
    pub why: String,
}

/// Where a collection stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// The collection runs.
    Collecting,
    /// It has ended, and a stop brings what it recorded, or the reason why there is nothing.
    Done,
    /// What it recorded is lost: with a reason, or where there is none, so that it can be recorded
    /// anew.
    Gone(Option<Failure>),
}

impl Observed {
    /// It is lost, for the container ended while no agent looked, and `what` with it.
    pub(super) fn ended_with(what: &str) -> Self {
        let message = format!("the container ended while the agent of the node was away, and {what} with it");
        Self::Gone(Some(Failure::new(CaptureReason::ContainerRestarted, message)))
    }
}

/// What a collection left in its capture's folder: files that are there only when they are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFiles {
    folder: PathBuf,
}

impl RawFiles {
    /// The files of those names in a folder; none unless all are there.
    pub fn find(folder: &Path, names: &[&str]) -> Option<Self> {
        let all = names.iter().all(|name| folder.join(name).is_file());
        all.then(|| Self {
            folder: folder.to_owned(),
        })
    }

    /// The path of one of them.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
