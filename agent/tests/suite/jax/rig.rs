//! A profiler, and what it is given of a capture.

use std::path::Path;
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::containers::Probed;
use flopwatch_agent::profilers::facts::Facts;
use flopwatch_agent::profilers::jax::Jax;
use flopwatch_agent::profilers::jax::service::Service;
use flopwatch_agent::profilers::{Journaled, Profiler as _, RawFiles, Site, State};
use flopwatch_api::profiler::{JaxOptions, ProfilerSpec, ProfilerType};
use flopwatch_model::Capture;
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::{ReadLimits, xplane};
use tempfile::TempDir;

use super::super::processes::Processes;

/// A capture of one container.
pub(crate) struct Rig {
    profiler: Journaled<Jax>,
    pub(crate) site: Site,
    state: State,
    folder: TempDir,
}

impl Rig {
    /// A capture that asks one of these services.
    pub(crate) fn new(services: &[Service], options: JaxOptions, length: Duration) -> Self {
        Self::with_variables(services, options, length, &[])
    }

    /// Why these services do not hold what is asked for.
    pub(crate) fn refused(services: &[Service], options: JaxOptions) -> Failure {
        Self::asked(services, options, Duration::from_secs(1), &[])
            .1
            .unwrap_err()
    }

    /// The same of a program with these variables.
    pub(crate) fn with_variables(
        services: &[Service],
        options: JaxOptions,
        length: Duration,
        variables: &[(&str, String)],
    ) -> Self {
        let (rig, covered) = Self::asked(services, options, length, variables);
        covered.unwrap();
        rig
    }

    fn asked(
        services: &[Service],
        options: JaxOptions,
        length: Duration,
        variables: &[(&str, String)],
    ) -> (Self, Result<(), Failure>) {
        let folder = tempfile::tempdir().unwrap();
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        let mut facts = Facts {
            variables: variables.collect(),
            ..Facts::default()
        };
        facts.found.keep(services.to_vec());
        let probed = Probed::of(facts, services[0].process);
        let asked = ProfilerSpec {
            type_: ProfilerType::Jax,
            jax: Some(options),
            ..ProfilerSpec::default()
        };
        let profiler = Journaled(Jax::default());
        let state = profiler.attach(&asked, &probed, None).unwrap();
        let covered = profiler.covers(&asked, &[], &state);
        let site = Processes::default().site(probed.process, folder.path(), length);
        let rig = Self {
            profiler,
            site,
            state,
            folder,
        };
        (rig, covered)
    }

    pub(crate) fn start(&self) -> Result<(), Failure> {
        self.profiler.start(&self.site, &self.state)
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.profiler.check(&self.site, &self.state)
    }

    /// What ends the request before its window ends.
    pub(crate) fn failure(&self) -> Failure {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            if let Err(failure) = self.check() {
                return failure;
            }
            assert!(Instant::now() < until, "nothing ends it");
            wait(Duration::from_millis(20));
        }
    }

    pub(crate) fn stop(&self) -> Result<RawFiles, Failure> {
        self.profiler.stop(&self.site, &self.state, &|| true)
    }

    pub(crate) fn discard(&self) {
        self.profiler.discard(&self.site);
    }

    /// What a whole window recorded.
    pub(crate) fn record(&self) -> Capture {
        self.start().unwrap();
        wait(self.site.length);
        self.check().unwrap();
        self.taken()
    }

    /// Stops, and reads what was recorded.
    pub(crate) fn taken(&self) -> Capture {
        let raw = self.stop().unwrap();
        assert_eq!(self.files(), ["profile.xplane.pb"]);
        xplane::read(&raw.path("profile.xplane.pb"), &ReadLimits::default()).unwrap()
    }

    /// Names in the capture's folder.
    pub(crate) fn files(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

/// Names of what lies in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[expect(
    clippy::disallowed_methods,
    reason = "the profiler is driven from a thread of the test's own"
)]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// Whether this may enter network namespaces; says why not where it does not.
pub(crate) fn may_enter() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: entering network namespaces needs root");
    }
    root
}
