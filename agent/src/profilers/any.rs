//! Profilers as captures hold them: of any type, with the [`State`] that stands in the journal.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::capability::Capability;
use flopwatch_api::capture::{CategoryCount, LiveFigures, TracedCategory};
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::transform::Samples;
use k8s_openapi::api::core::v1::Pod;

use super::facts::Facts;
use super::findings::Findings;
use super::{Observed, Profiler, RawFiles, Recipe, Remains, Shortened, Site, State};
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;

/// A [`Profiler`] of any type. A state that its profiler cannot read fails the call.
pub trait AnyProfiler: fmt::Debug + Send + Sync {
    /// [`Profiler::type_`].
    fn type_(&self) -> ProfilerType;

    /// [`Profiler::variables`].
    fn variables(&self) -> &'static [&'static str];

    /// [`Profiler::inspect`].
    fn inspect(&self, procfs: &Procfs, processes: &[(ProcessId, Mapped)], found: &mut Findings);

    /// [`Profiler::capability`].
    fn capability(&self, facts: &Facts) -> Capability;

    /// [`Profiler::attach`].
    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<State, Failure>;

    /// [`Profiler::attach_to_kept`].
    fn attach_to_kept(&self, kept: Remains) -> Result<Option<State>, Failure>;

    /// [`Profiler::records_events`].
    fn records_events(&self) -> bool;

    /// [`Profiler::looks_back`].
    fn looks_back(&self, state: &State, now_utc_ns: u64) -> Result<Option<u64>, Failure>;

    /// [`Profiler::expects`].
    fn expects(&self) -> &'static [Category];

    /// [`Profiler::follow`].
    fn follow(&self, earlier: &State, state: State) -> Result<State, Failure>;

    /// [`Profiler::covers`].
    fn covers(&self, spec: &ProfilerSpec, require: &[Category], state: &State) -> Result<(), Failure>;

    /// [`Profiler::passed_over`].
    fn passed_over(&self, state: &State) -> Result<Option<String>, Failure>;

    /// [`Profiler::prepare`].
    fn prepare(&self, site: &Site, state: State) -> Result<State, Failure>;

    /// [`Profiler::start`].
    fn start(&self, site: &Site, state: &State) -> Result<(), Failure>;

    /// [`Profiler::opened`].
    fn opened(&self, site: &Site) -> Option<u64>;

    /// [`Profiler::starts_again`].
    fn starts_again(&self, site: &Site) -> bool;

    /// [`Profiler::check`].
    fn check(&self, site: &Site, state: &State) -> Result<(), Failure>;

    /// [`Profiler::is_complete`].
    fn is_complete(&self, site: &Site, state: &State) -> Result<bool, Failure>;

    /// [`Profiler::live`].
    fn live(&self, site: &Site) -> Option<LiveFigures>;

    /// [`Profiler::has_ended`].
    fn has_ended(&self, site: &Site) -> bool;

    /// [`Profiler::observe`].
    fn observe(&self, site: Option<&Site>, state: &State) -> Result<Observed, Failure>;

    /// [`Profiler::accept`].
    fn accept(&self, samples: &Samples) -> Result<(), Failure>;

    /// [`Profiler::processor_time`].
    fn processor_time(&self, site: &Site) -> Option<Duration>;

    /// [`Profiler::can_be_ended`].
    fn can_be_ended(&self) -> bool;

    /// [`Profiler::memory_to_begin`].
    fn memory_to_begin(&self, state: &State) -> Result<u64, Failure>;

    /// [`Profiler::memory_to_end`].
    fn memory_to_end(&self) -> u64;

    /// [`Profiler::shortened`].
    fn shortened(&self, state: &State) -> Result<Option<Shortened>, Failure>;

    /// [`Profiler::stopping`].
    fn stopping(&self) -> &'static str;

    /// [`Profiler::stop_timeout`].
    fn stop_timeout(&self, state: &State) -> Result<Duration, Failure>;

    /// [`Profiler::stop`].
    fn stop(&self, site: &Site, state: &State, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure>;

    /// [`Profiler::raw_files`].
    fn raw_files(&self, folder: &Path) -> Option<RawFiles>;

    /// [`Profiler::discard`].
    fn discard(&self, site: &Site);

    /// [`Profiler::steps`].
    fn steps(
        &self,
        state: &State,
        raw: &RawFiles,
        sandbox: &SandboxDir,
        nsys_versions: &NsysVersions,
    ) -> Result<Recipe, Failure>;

    /// [`Profiler::unread`].
    fn unread(&self, raw: &RawFiles) -> Vec<(String, PathBuf)>;

    /// [`Profiler::outcomes`].
    fn outcomes(&self, state: &State, counts: &[CategoryCount]) -> Result<Vec<TracedCategory>, Failure>;
}

impl<P: Profiler> AnyProfiler for P {
    fn type_(&self) -> ProfilerType {
        Profiler::type_(self)
    }

    fn variables(&self) -> &'static [&'static str] {
        Profiler::variables(self)
    }

    fn inspect(&self, procfs: &Procfs, processes: &[(ProcessId, Mapped)], found: &mut Findings) {
        Profiler::inspect(self, procfs, processes, found);
    }

    fn capability(&self, facts: &Facts) -> Capability {
        Profiler::capability(self, facts)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<State, Failure> {
        State::of(Profiler::type_(self), &Profiler::attach(self, spec, probed, pod)?)
    }

    fn attach_to_kept(&self, kept: Remains) -> Result<Option<State>, Failure> {
        let state = Profiler::attach_to_kept(self, kept);
        state.map(|state| State::of(Profiler::type_(self), &state)).transpose()
    }

    fn records_events(&self) -> bool {
        Profiler::records_events(self)
    }

    fn looks_back(&self, state: &State, now_utc_ns: u64) -> Result<Option<u64>, Failure> {
        Profiler::looks_back(self, &state.read()?, now_utc_ns)
    }

    fn expects(&self) -> &'static [Category] {
        Profiler::expects(self)
    }

    fn follow(&self, earlier: &State, state: State) -> Result<State, Failure> {
        State::of(
            Profiler::type_(self),
            &Profiler::follow(self, &earlier.read()?, state.read()?)?,
        )
    }

    fn covers(&self, spec: &ProfilerSpec, require: &[Category], state: &State) -> Result<(), Failure> {
        Profiler::covers(self, spec, require, &state.read()?)
    }

    fn passed_over(&self, state: &State) -> Result<Option<String>, Failure> {
        Ok(Profiler::passed_over(self, &state.read()?))
    }

    fn prepare(&self, site: &Site, state: State) -> Result<State, Failure> {
        State::of(Profiler::type_(self), &Profiler::prepare(self, site, state.read()?)?)
    }

    fn start(&self, site: &Site, state: &State) -> Result<(), Failure> {
        Profiler::start(self, site, &state.read()?)
    }

    fn opened(&self, site: &Site) -> Option<u64> {
        Profiler::opened(self, site)
    }

    fn starts_again(&self, site: &Site) -> bool {
        Profiler::starts_again(self, site)
    }

    fn check(&self, site: &Site, state: &State) -> Result<(), Failure> {
        Profiler::check(self, site, &state.read()?)
    }

    fn is_complete(&self, site: &Site, state: &State) -> Result<bool, Failure> {
        Ok(Profiler::is_complete(self, site, &state.read()?))
    }

    fn live(&self, site: &Site) -> Option<LiveFigures> {
        Profiler::live(self, site)
    }

    fn has_ended(&self, site: &Site) -> bool {
        Profiler::has_ended(self, site)
    }

    fn observe(&self, site: Option<&Site>, state: &State) -> Result<Observed, Failure> {
        Profiler::observe(self, site, &state.read()?)
    }

    fn accept(&self, samples: &Samples) -> Result<(), Failure> {
        Profiler::accept(self, samples)
    }

    fn processor_time(&self, site: &Site) -> Option<Duration> {
        Profiler::processor_time(self, site)
    }

    fn can_be_ended(&self) -> bool {
        Profiler::can_be_ended(self)
    }

    fn memory_to_begin(&self, state: &State) -> Result<u64, Failure> {
        Profiler::memory_to_begin(self, &state.read()?)
    }

    fn memory_to_end(&self) -> u64 {
        Profiler::memory_to_end(self)
    }

    fn shortened(&self, state: &State) -> Result<Option<Shortened>, Failure> {
        Profiler::shortened(self, &state.read()?)
    }

    fn stopping(&self) -> &'static str {
        Profiler::stopping(self)
    }

    fn stop_timeout(&self, state: &State) -> Result<Duration, Failure> {
        Profiler::stop_timeout(self, &state.read()?)
    }

    fn stop(&self, site: &Site, state: &State, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        Profiler::stop(self, site, &state.read()?, goes_on)
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        Profiler::raw_files(self, folder)
    }

    fn discard(&self, site: &Site) {
        Profiler::discard(self, site);
    }

    fn steps(
        &self,
        state: &State,
        raw: &RawFiles,
        sandbox: &SandboxDir,
        nsys_versions: &NsysVersions,
    ) -> Result<Recipe, Failure> {
        Profiler::steps(self, &state.read()?, raw, sandbox, nsys_versions)
    }

    fn unread(&self, raw: &RawFiles) -> Vec<(String, PathBuf)> {
        Profiler::unread(self, raw)
    }

    fn outcomes(&self, state: &State, counts: &[CategoryCount]) -> Result<Vec<TracedCategory>, Failure> {
        Profiler::outcomes(self, &state.read()?, counts)
    }
}
