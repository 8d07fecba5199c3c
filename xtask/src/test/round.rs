//! A round of tests: its steps, what runs beside what, and what came of it.

use super::alike::alike;
use super::changed::{self, Reach};
use super::ledger;
use super::need::Needs;
use super::programs::{self, Program};
use super::skip::Machine;
use super::table;
use super::tally::{Failure, Outcome};
use super::{Level, NODES, SYSTEM_TARGETS, TestOptions, system_environment};
use crate::bench::short;
use crate::{lint, setup, web, wheel};
use anyhow::{Context as _, Result, bail};
use flopwatch_cluster::{self as cluster, ClusterCommand, ImageOptions, InstallOptions, UpOptions};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{acknowledge_interrupt, interrupted};
use flopwatch_toolchain::dependencies;
use flopwatch_toolchain::golang::HELM;
use flopwatch_toolchain::meter;
use flopwatch_toolchain::progress::{human, result, say, step};
use flopwatch_toolchain::project::{self, Artifacts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Libraries, and the programs that have tests in themselves: `--bins` would take those along that
/// no harness fits.
const UNIT_TARGETS: [&str; 3] = ["--lib", "--bin", "flopwatch-gpu-check"];
/// Where a library's tests that start processes or open sockets are: modules of this name. The unit
/// level leaves them out.
const CRATE_TESTS: &str = "crate_tests::";
/// The library that stands for NVML in the cluster.
const FAKE_NVML: &str = "flopwatch_fake_nvml";
/// The step of programs that hold answers to a bound.
const UNIT_AND_CRATE: &str = "unit and crate tests";
/// The step of programs that hold nothing to a time.
const PATIENT: &str = "tests that can wait";
/// The steps that run beside those.
const WHEEL: &str = "wheel";
const RIVALS: &str = "rivals of the benches";
const CHECKS: &str = "other checks";
/// Lines of a step's error that are said once more at the end.
const MAX_LINES: usize = 40;
/// What a round writes beside the caches, in bytes: cargo's target folder, images, and what tests
/// make. Measured, and a fifth more.
const ROUND_BYTES: u64 = 12 << 30;

/// A round that runs.
pub(crate) struct Round<'a> {
    cache: &'a Cache,
    machine: Machine,
    needs: Needs,
    metadata: String,
    began: Instant,
    outcome: Outcome,
    failed: Vec<String>,
    /// The system tests that were run a second time, once they ran.
    again: Option<BTreeSet<String>>,
}

impl<'a> Round<'a> {
    /// Begins a round.
    pub(crate) fn begin(cache: &'a Cache) -> Result<Self> {
        let metadata = project::metadata()?;
        meter::watch_machine(&project::root()?);
        Ok(Self {
            cache,
            machine: Machine::here()?,
            needs: Needs::parse(&metadata)?,
            metadata,
            began: Instant::now(),
            outcome: Outcome::default(),
            failed: Vec::new(),
            again: None,
        })
    }

    /// Everything: setup, lint, all tests, benches.
    pub(crate) fn whole(&mut self, options: &TestOptions) -> Result<()> {
        check_room()?;
        let cache = self.cache;
        let system = options.system();
        step("setup", || setup::before_cargo(cache, system.is_some()))?;
        step("dependencies of an earlier clone", || {
            let found = dependencies::restore(cache)?;
            say(if found {
                "the cache had them"
            } else {
                "the cache has none of these versions"
            });
            Ok(())
        })?;
        let mut alone = None;
        std::thread::scope(|scope| {
            // Go's compiler works while cargo waits for its own long chains of crates.
            let programs = (system.is_some() && !options.use_kubeconfig)
                .then(|| beside(scope, "cluster's programs", || cluster::build_programs(cache)));
            let helm = beside(scope, "helm", || HELM.build(cache).map(drop));
            let tools = beside(scope, "tools of the tests", || setup::for_tests(cache));
            // Before cargo, which puts it into the agent.
            self.step("viewer", |_| web::build(cache));
            let viewer = scope.spawn(|| step("viewer's tests", || Ok(web::test(cache))));
            let built = self.compile();
            // What unit and crate tests run.
            self.joined("tools of the tests", tools);
            self.joined("helm", helm);
            // Where the cache has none, they take both processors, and tests hold answers to a
            // bound.
            if let Some(programs) = programs {
                self.joined("cluster's programs", programs);
            }
            // As root, Chromium takes itself out of any niceness.
            self.outcome("viewer's tests", viewer);
            let Some(built) = built.map(Arc::new) else {
                return self.step(CHECKS, |_| lint::others(cache));
            };
            let programs = Arc::clone(&built);
            let release = move || up_with_release(cache, options, &programs);
            let cluster = system.map(|_| beside(scope, "cluster up", release));
            let mut others = None;
            match self.list(&built) {
                Ok(list) => {
                    let (apart, together) = list.into_iter().partition(|program| program.need.alone);
                    alone = Some((Arc::clone(&built), apart));
                    others = Some(scope.spawn(move || Ok(Others::run(cache, &built, together))));
                }
                Err(error) => drop(self.told(UNIT_AND_CRATE, Err(error))),
            }
            // The system's tests begin as soon as there is a cluster: both wait most of their time.
            let cluster = cluster.map(|cluster| self.joined("cluster up", cluster));
            if let Some(modules) = system {
                self.system(options, cluster, modules);
            }
            if let Some(others) = others {
                self.others(others);
            }
        });
        self.step("keeping the dependencies", |_| dependencies::keep(cache));
        // Where nothing else runs.
        if let Some((built, list)) = alone {
            self.run("tests that run alone", &built, list, &[]);
        }
        self.step("benches beside their rivals", |_| {
            short::run(cache, &short::ShortOptions::TESTS)
        });
        Ok(())
    }

    /// The tests of one level, without lint; what the system's tests need is set up first.
    pub(crate) fn level(&mut self, options: &TestOptions) {
        let cache = self.cache;
        if options.wants(Level::Unit)
            && let Some(built) = self.built(|| project::build_unit_tests(cache, &UNIT_TARGETS))
        {
            self.programs("unit tests", &built, None, &["--skip", CRATE_TESTS]);
        }
        if options.wants(Level::Crate) {
            self.step("viewer", |_| web::build(cache));
            let viewer = step("viewer's tests", || Ok(web::test(cache)));
            self.take("viewer's tests", viewer);
            if let Some(built) = self.compile() {
                self.crate_tests(&built, None);
                self.step(WHEEL, |_| wheel::of_tests(cache, &built));
            }
        }
        if let Some(modules) = options.system() {
            // Their pods run PyTorch, and clients of theirs come from here.
            self.step("setup", |_| setup::all(cache));
            self.system(options, None, modules);
        }
    }

    /// The tests that what differs from `base` can reach.
    pub(crate) fn changed(&mut self, options: &TestOptions, base: &str) -> Result<()> {
        let cache = self.cache;
        let reach = changed::since(base, &self.metadata)?;
        say(&reach);
        if reach.documents && options.only.is_none() {
            self.step("links between the documents", |_| lint::links());
        }
        let unit = options.only == Some(Level::Unit);
        if !unit && (reach.viewer || !reach.packages.is_empty()) {
            // Programs have it in them, and tests of theirs drive a browser.
            self.step("viewer", |_| web::build(cache));
        }
        if reach.viewer && !unit {
            let viewer = step("viewer's tests", || Ok(web::test(cache)));
            self.take("viewer's tests", viewer);
        }
        if !reach.packages.is_empty() {
            let built = if unit {
                self.built(|| project::build_unit_tests(cache, &UNIT_TARGETS))
            } else {
                self.compile()
            };
            if let Some(built) = built {
                match options.only {
                    None => self.programs("tests", &built, Some(&reach), &[]),
                    Some(Level::Unit) => self.programs("unit tests", &built, Some(&reach), &["--skip", CRATE_TESTS]),
                    Some(Level::Crate) => self.crate_tests(&built, Some(&reach)),
                    Some(Level::System | Level::Hostile) => {}
                }
            }
        }
        let Some(wanted) = options.system().filter(|_| !reach.system.is_empty()) else {
            return Ok(());
        };
        let modules: Vec<&str> = if wanted.is_empty() {
            reach.system.iter().map(String::as_str).collect()
        } else {
            wanted.to_vec()
        };
        if options.use_kubeconfig || options.only.is_some() || cluster::is_up(cache)? {
            self.system(options, None, &modules);
        } else {
            say("the system's tests are left out, as no cluster is up: `cargo xtask cluster up --nodes 2` starts one");
        }
        Ok(())
    }

    /// Prints what the round took and what failed; an error where anything did.
    pub(crate) fn end(mut self) -> Result<()> {
        let interrupted = interrupted();
        let steps = meter::steps();
        for line in table::steps(&steps) {
            say(line);
        }
        say("the slowest tests:");
        for line in table::slowest(&self.outcome.times) {
            say(line);
        }
        if !interrupted {
            let steps = steps.iter().map(|step| (step.name.clone(), step.wall.as_secs_f64()));
            let programs = self.outcome.programs.iter();
            let round = ledger::Round {
                ended: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
                again: self.again.take().unwrap_or_default(),
                steps: steps.collect(),
                programs: programs
                    .map(|(name, took)| (name.clone(), took.as_secs_f64()))
                    .collect(),
            };
            let ledger = ledger::record(self.cache, round)?;
            say(&ledger);
            ledger.slower().iter().for_each(say);
            let unreliable = ledger.unreliable();
            if !unreliable.is_empty() {
                let unreliable = unreliable.join(", ");
                say(format_args!(
                    "needed a second try too often, find out why: {unreliable}"
                ));
                self.failed.push("second tries".to_owned());
            }
        }
        say(format_args!("all steps took {}", human(self.began.elapsed())));
        // At the end, where whoever sees only the end of a long log finds them.
        alike(&self.outcome.failures).iter().for_each(say);
        if self.machine.refuses_any(&self.outcome.skips) {
            self.failed.push("skips".to_owned());
        }
        result(&self.outcome.tally);
        if interrupted {
            bail!("interrupted");
        }
        if self.failed.is_empty() && self.outcome.tally.failed == 0 {
            Ok(())
        } else {
            bail!("failed: {}", self.failed.join(", "))
        }
    }

    /// One step; its failure is written down and the next step runs, unless somebody interrupted.
    fn step(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<()>) {
        if interrupted() {
            return;
        }
        let ended = step(name, || work(self));
        self.told(name, ended);
    }

    /// Writes a step's failure down; whether there was none.
    fn told(&mut self, name: &str, ended: Result<()>) -> bool {
        let Err(error) = ended else {
            return true;
        };
        let error = format!("{error:#}");
        say(format_args!("{name}: {error}"));
        self.failed.push(name.to_owned());
        self.outcome.failures.push(Failure {
            test: name.to_owned(),
            output: error.lines().take(MAX_LINES).map(str::to_owned).collect(),
        });
        false
    }

    /// Waits for what ran beside the round; whether it succeeded.
    fn joined(&mut self, name: &str, thread: ScopedJoinHandle<'_, Result<()>>) -> bool {
        self.told(name, end_of(thread))
    }

    /// Compiles all tests as they are linted; what compiles is run, whatever lints say of it.
    fn compile(&mut self) -> Option<Artifacts> {
        let cache = self.cache;
        let mut artifacts = None;
        self.step("format and compile", |_| {
            let (built, verdict) = lint::compile(cache);
            artifacts = built;
            verdict
        });
        artifacts
    }

    /// Compiles what `build` builds.
    fn built(&mut self, build: impl FnOnce() -> Result<Artifacts>) -> Option<Artifacts> {
        let mut artifacts = None;
        self.step("compile", |_| {
            artifacts = Some(build()?);
            Ok(())
        });
        artifacts
    }

    /// Runs the programs of a build, or those of them that a change reaches, each test once: what
    /// fails by chance is a fault.
    fn programs(&mut self, name: &str, built: &Artifacts, reach: Option<&Reach>, arguments: &[&str]) {
        let of = |program: &Program| reach.is_none_or(|reach| reach.holds(&self.needs, &program.test.folder));
        match self.list(built) {
            Ok(list) => {
                let list = list.into_iter().filter(of).collect();
                self.run(name, built, list, arguments);
            }
            Err(error) => drop(self.told(name, Err(error))),
        }
    }

    /// Runs the tests of the crate level: programs of `tests/`, and the modules of libraries that
    /// start processes.
    fn crate_tests(&mut self, built: &Artifacts, reach: Option<&Reach>) {
        let of = |program: &Program| reach.is_none_or(|reach| reach.holds(&self.needs, &program.test.folder));
        match self.list(built) {
            Ok(list) => {
                let reached = list.into_iter().filter(of);
                let (libraries, programs) = reached.partition(|program| program.test.in_source);
                self.run("crate tests", built, programs, &[]);
                self.run("crate tests in libraries", built, libraries, &[CRATE_TESTS]);
            }
            Err(error) => drop(self.told("crate tests", Err(error))),
        }
    }

    fn list(&self, built: &Artifacts) -> Result<Vec<Program>> {
        Ok(programs::list(
            &built.tests,
            &self.needs,
            &ledger::read(self.cache)?.programs(),
        ))
    }

    fn run(&mut self, name: &str, built: &Artifacts, list: Vec<Program>, arguments: &[&str]) {
        if interrupted() {
            return;
        }
        let cache = self.cache;
        let ended = step(name, || run(cache, built, list, arguments));
        self.take(name, ended);
    }

    /// Waits for what ran beside the system's tests.
    fn others(&mut self, thread: ScopedJoinHandle<'_, Result<Others>>) {
        match end_of(thread) {
            Ok(others) => {
                self.take(UNIT_AND_CRATE, others.tests);
                self.take(PATIENT, others.patient);
                for (name, ended) in others.steps {
                    self.told(name, ended);
                }
            }
            Err(error) => drop(self.told(UNIT_AND_CRATE, Err(error))),
        }
    }

    /// Waits for tests that ran beside the round.
    fn outcome(&mut self, name: &str, thread: ScopedJoinHandle<'_, Result<Outcome>>) {
        self.take(name, end_of(thread));
    }

    /// Counts what became of tests.
    fn take(&mut self, name: &str, ended: Result<Outcome>) {
        match ended {
            Ok(outcome) => {
                if outcome.tally.failed > 0 {
                    self.failed.push(name.to_owned());
                }
                self.outcome.add(outcome);
            }
            Err(error) => drop(self.told(name, Err(error))),
        }
    }

    /// The cluster, where it was not tried before, its tests, and in any case its end. `is_up` says
    /// whether the cluster came up.
    fn system(&mut self, options: &TestOptions, is_up: Option<bool>, modules: &[&str]) {
        let cache = self.cache;
        let is_up = is_up.unwrap_or_else(|| {
            let ended = step("cluster up", || up(cache, options));
            self.told("cluster up", ended)
        });
        if is_up {
            self.step("system tests", |round| {
                let mut vars = system_environment(cache, options.use_kubeconfig)?;
                vars.extend(project::environment(cache)?);
                round.system_tests(&vars, modules)
            });
        } else if !interrupted() {
            self.outcome.tally.failed += 1;
        }
        if options.keep_cluster || options.use_kubeconfig {
            return;
        }
        let was_interrupted = interrupted();
        // The clean-up's own programs must not be ended by the same interrupt.
        acknowledge_interrupt();
        self.step("cluster down", |_| cluster::run(cache, false, &ClusterCommand::Down));
        if was_interrupted {
            self.failed.push("interrupted".to_owned());
        }
    }

    /// The tests in the cluster. One that failed alone is run a second time, which tells a fault
    /// from a machine that had no time; the ledger remembers it.
    fn system_tests(&mut self, vars: &BTreeMap<String, String>, modules: &[&str]) -> Result<()> {
        let built = project::build_tests(self.cache, &SYSTEM_TARGETS, |_| ())?;
        let list = self.list(&built)?;
        let mut outcome = programs::run(list.clone(), vars, modules);
        let mut again = BTreeSet::new();
        if let Some(test) = chance(&outcome).filter(|_| !interrupted()) {
            say(format_args!("a second time, alone: {test}"));
            outcome.mend(programs::run(list, vars, &["--exact", &test]));
            again.insert(test);
        }
        let failed = outcome.tally.failed;
        self.outcome.add(outcome);
        self.again = Some(again);
        if interrupted() {
            bail!("interrupted");
        }
        if failed > 0 {
            bail!("{failed} failed");
        }
        Ok(())
    }
}

/// What came of all that runs beside the cluster's start and the system's tests.
struct Others {
    tests: Result<Outcome>,
    patient: Result<Outcome>,
    steps: [(&'static str, Result<()>); 3],
}

impl Others {
    /// Runs the tests that hold answers to a bound, and then, by what the system's tests leave of
    /// the processors, what nothing waits for.
    fn run(cache: &Cache, built: &Artifacts, list: Vec<Program>) -> Self {
        let (patient, prompt) = list.into_iter().partition(|program| program.need.patient);
        let tests = step(UNIT_AND_CRATE, || run(cache, built, prompt, &[]));
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| step(PATIENT, || run(cache, built, patient, &[])));
            let wheel = beside(scope, WHEEL, || wheel::of_tests(cache, built));
            let rivals = beside(scope, RIVALS, || short::fetch(cache));
            let checks = step(CHECKS, || lint::others(cache));
            Self {
                tests,
                patient: end_of(patient),
                steps: [(WHEEL, end_of(wheel)), (RIVALS, end_of(rivals)), (CHECKS, checks)],
            }
        })
    }
}

/// Waits for a thread's end.
fn end_of<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| bail!("its thread came to no end"))
}

/// Runs programs of a build, each test once: what fails by chance is a fault.
fn run(cache: &Cache, built: &Artifacts, list: Vec<Program>, arguments: &[&str]) -> Result<Outcome> {
    let mut vars = project::environment(cache)?;
    // Without it every program with snapshots starts cargo to ask for it.
    vars.insert(
        "INSTA_WORKSPACE_ROOT".to_owned(),
        project::root()?.display().to_string(),
    );
    vars.extend(project::for_tests(built).unwrap_or_default());
    Ok(programs::run(list, &vars, arguments))
}

/// Runs a step in a thread of its own.
fn beside<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &'static str,
    work: impl FnOnce() -> Result<()> + Send + 'scope,
) -> ScopedJoinHandle<'scope, Result<()>> {
    scope.spawn(move || step(name, work))
}

/// Brings the cluster up, and installs the release: the first of the system's tests finds it there.
fn up_with_release(cache: &Cache, options: &TestOptions, built: &Artifacts) -> Result<()> {
    up(cache, options)?;
    let library = built.libraries.get(FAKE_NVML).context("cargo built no fake NVML")?;
    let install = ClusterCommand::Install(InstallOptions::of_tests(library.clone()));
    cluster::run(cache, options.use_kubeconfig, &install)
}

/// Brings the cluster up, or the images into the one that runs.
fn up(cache: &Cache, options: &TestOptions) -> Result<()> {
    let images = ImageOptions::of_tests();
    let command = if !options.use_kubeconfig && cluster::is_up(cache)? {
        ClusterCommand::Load(images)
    } else {
        ClusterCommand::Up(UpOptions {
            images,
            nodes: NODES,
            keep_failed: false,
        })
    };
    cluster::run(cache, options.use_kubeconfig, &command)
}

/// Says how much disk a round needs, and refuses where there is less. What an earlier round left in
/// cargo's folder is there already.
fn check_room() -> Result<()> {
    let target = project::target_directory()?;
    let free = meter::free_bytes(&target).context("cannot tell how much room the disk has")?;
    // What runs this has been compiled there too.
    let needed = if target.join("debug/flopwatch-agent").exists() {
        ROUND_BYTES / 2
    } else {
        ROUND_BYTES
    };
    let gib = |bytes: u64| format!("{}.{} GiB", bytes >> 30, ((bytes >> 20) % 1024) * 10 / 1024);
    let (needs, has) = (gib(needed), gib(free));
    if free < needed {
        bail!(
            "a round needs {needs} of disk beside the caches, and {} has {has} free: free some space",
            target.display()
        );
    }
    say(format_args!(
        "a round needs {needs} of disk beside the caches; {has} are free"
    ));
    Ok(())
}

/// The one test that failed, if that may be chance. What failed without a name (a program that fell
/// over) cannot be run again, and two at once are no chance.
fn chance(outcome: &Outcome) -> Option<String> {
    match outcome.failures.as_slice() {
        [only] if outcome.tally.failed == 1 => Some(only.test.clone()),
        _ => None,
    }
}
#[cfg(test)]
mod tests {
    use super::super::tally::Tally;
    use super::*;

    fn failed(tests: &[&str], count: u32) -> Outcome {
        let failure = |test: &&str| Failure {
            test: (*test).to_owned(),
            output: Vec::new(),
        };
        Outcome {
            tally: Tally {
                passed: 5,
                failed: count,
                ..Tally::default()
            },
            failures: tests.iter().map(failure).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn one_failure_with_a_name_may_be_chance_and_more_are_not() {
        assert_eq!(chance(&failed(&["a"], 1)).as_deref(), Some("a"));
        assert_eq!(chance(&failed(&["a", "b"], 2)), None);
        assert_eq!(chance(&failed(&[], 1)), None);
        assert_eq!(chance(&failed(&["a"], 2)), None, "a program fell over beside it");
        assert_eq!(chance(&failed(&[], 0)), None);
    }

    #[test]
    fn a_second_try_counts_as_it_ended_and_the_first_failure_is_still_told() {
        let mut outcome = failed(&["a"], 1);
        let passed = Outcome {
            tally: Tally {
                passed: 1,
                ..Tally::default()
            },
            ..Outcome::default()
        };
        outcome.mend(passed);
        assert_eq!(
            (outcome.tally.passed, outcome.tally.failed, outcome.tally.mended),
            (6, 0, 1)
        );
        assert_eq!(outcome.failures.len(), 1);
        let mut outcome = failed(&["a"], 1);
        outcome.mend(failed(&["a"], 1));
        assert_eq!(
            (outcome.tally.passed, outcome.tally.failed, outcome.tally.mended),
            (5, 1, 0)
        );
    }
}
