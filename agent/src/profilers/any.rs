//! Profilers as captures hold them: of any type, with the [`State`] that stands in the journal.

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

/// A profiler of any type, made by [`Journaled`].
pub type AnyProfiler = dyn Profiler<State = State>;

/// A [`Profiler`] whose states are those of the journal. A state that it cannot read fails the
/// call.
#[derive(Debug, Default)]
pub struct Journaled<P>(pub P);

#[deny(
    clippy::missing_trait_methods,
    reason = "a default of the trait would stand for what the profiler says itself"
)]
impl<P: Profiler> Profiler for Journaled<P> {
    type State = State;

    fn type_(&self) -> ProfilerType {
        self.0.type_()
    }

    fn variables(&self) -> &'static [&'static str] {
        self.0.variables()
    }

    fn inspect(&self, procfs: &Procfs, processes: &[(ProcessId, Mapped)], found: &mut Findings) {
        self.0.inspect(procfs, processes, found);
    }

    fn capability(&self, facts: &Facts) -> Capability {
        self.0.capability(facts)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<State, Failure> {
        State::of(self.0.type_(), &self.0.attach(spec, probed, pod)?)
    }

    fn attach_to_kept(&self, kept: Remains) -> Result<Option<State>, Failure> {
        let state = self.0.attach_to_kept(kept)?;
        state.map(|state| State::of(self.0.type_(), &state)).transpose()
    }

    fn records_events(&self) -> bool {
        self.0.records_events()
    }

    fn looks_back(&self, state: &State, now_utc_ns: u64) -> Result<Option<u64>, Failure> {
        self.0.looks_back(&state.read()?, now_utc_ns)
    }

    fn expects(&self) -> &'static [Category] {
        self.0.expects()
    }

    fn follow(&self, earlier: &State, state: State) -> Result<State, Failure> {
        State::of(self.0.type_(), &self.0.follow(&earlier.read()?, state.read()?)?)
    }

    fn covers(&self, spec: &ProfilerSpec, require: &[Category], state: &State) -> Result<(), Failure> {
        self.0.covers(spec, require, &state.read()?)
    }

    fn passed_over(&self, state: &State) -> Result<Option<String>, Failure> {
        self.0.passed_over(&state.read()?)
    }

    fn prepare(&self, site: &Site, state: State) -> Result<State, Failure> {
        State::of(self.0.type_(), &self.0.prepare(site, state.read()?)?)
    }

    fn start(&self, site: &Site, state: &State) -> Result<(), Failure> {
        self.0.start(site, &state.read()?)
    }

    fn opened(&self, site: &Site) -> Option<u64> {
        self.0.opened(site)
    }

    fn starts_again(&self, site: &Site) -> bool {
        self.0.starts_again(site)
    }

    fn check(&self, site: &Site, state: &State) -> Result<(), Failure> {
        self.0.check(site, &state.read()?)
    }

    fn is_complete(&self, site: &Site, state: &State) -> Result<bool, Failure> {
        self.0.is_complete(site, &state.read()?)
    }

    fn live(&self, site: &Site) -> Option<LiveFigures> {
        self.0.live(site)
    }

    fn has_ended(&self, site: &Site) -> bool {
        self.0.has_ended(site)
    }

    fn observe(&self, site: Option<&Site>, state: &State) -> Result<Observed, Failure> {
        self.0.observe(site, &state.read()?)
    }

    fn accept(&self, samples: &Samples) -> Result<(), Failure> {
        self.0.accept(samples)
    }

    fn processor_time(&self, site: &Site) -> Option<Duration> {
        self.0.processor_time(site)
    }

    fn can_be_ended(&self) -> bool {
        self.0.can_be_ended()
    }

    fn memory_to_begin(&self, state: &State) -> Result<u64, Failure> {
        self.0.memory_to_begin(&state.read()?)
    }

    fn memory_to_end(&self) -> u64 {
        self.0.memory_to_end()
    }

    fn shortened(&self, state: &State) -> Result<Option<Shortened>, Failure> {
        self.0.shortened(&state.read()?)
    }

    fn stopping(&self) -> &'static str {
        self.0.stopping()
    }

    fn stop_timeout(&self, state: &State) -> Result<Duration, Failure> {
        self.0.stop_timeout(&state.read()?)
    }

    fn stop(&self, site: &Site, state: &State, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        self.0.stop(site, &state.read()?, goes_on)
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        self.0.raw_files(folder)
    }

    fn discard(&self, site: &Site) {
        self.0.discard(site);
    }

    fn steps(
        &self,
        state: &State,
        raw: &RawFiles,
        sandbox: &SandboxDir,
        nsys_versions: &NsysVersions,
    ) -> Result<Recipe, Failure> {
        self.0.steps(&state.read()?, raw, sandbox, nsys_versions)
    }

    fn unread(&self, raw: &RawFiles) -> Vec<(String, PathBuf)> {
        self.0.unread(raw)
    }

    fn outcomes(&self, state: &State, counts: &[CategoryCount]) -> Result<Vec<TracedCategory>, Failure> {
        self.0.outcomes(&state.read()?, counts)
    }
}
