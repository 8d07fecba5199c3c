//! The README's test command: everything that CI runs.

mod tally;

use crate::cache::Cache;
use crate::cluster::{self, ClusterCommand, ImageOptions, UpOptions};
use crate::command::{acknowledge_interrupt, interrupted};
use crate::progress::{human, result, say, step};
use crate::{lint, nsys, project, setup, web};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use std::time::Instant;
pub(crate) use tally::{Failure, Tally};

const SYSTEM_TESTS: &str = "flopwatch-system-tests";
/// The tests that need a cluster, in their order. They are selected in the whole workspace: selecting their package alone
/// would compile every dependency once more, with fewer features.
const SYSTEM_TARGETS: [&str; 16] = [
    "--test",
    "faults",
    "--test",
    "soak",
    "--test",
    "store",
    "--test",
    "switch",
    "--test",
    "system",
    "--test",
    "targets",
    "--test",
    "uninstall",
    "--test",
    "upgrade",
];
/// Libraries, and the programs that have tests in themselves: `--bins` would take those along that no harness fits.
const UNIT_TARGETS: [&str; 5] = ["--lib", "--bin", "xtask", "--bin", "flopwatch-gpu-check"];
/// The second one is what tests lose.
pub(crate) const NODES: u8 = 2;
/// Failures of tests that may be chance; more are not run again.
const CHANCES: usize = 3;
/// How the test harness is told how many tests to run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
const FAKE_NVML: &str = "flopwatch-fake-nvml";

/// Which tests, and what becomes of the cluster.
#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Leave out the tests that need a cluster.
    #[arg(long)]
    skip_cluster: bool,
    /// Only the tests of one level, without setup and lint.
    #[arg(long, value_enum, conflicts_with = "skip_cluster")]
    only: Option<Level>,
    /// Use the cluster that KUBECONFIG names instead of a local one.
    #[arg(long, env = "FLOPWATCH_USE_KUBECONFIG", value_parser = clap::builder::FalseyValueParser::new(), num_args = 0)]
    use_kubeconfig: bool,
    /// Leave the local cluster running, for the next round.
    #[arg(long)]
    keep_cluster: bool,
}

/// A level of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// In memory, seconds.
    Unit,
    /// A crate with real files and tools.
    Crate,
    /// Whole system in a real cluster.
    System,
}

impl TestOptions {
    fn wants(&self, level: Level) -> bool {
        match self.only {
            Some(only) => only == level,
            None => level != Level::System || !self.skip_cluster,
        }
    }
}

/// Runs them, adds them up, and fails when anything failed.
pub(crate) fn run(cache: &Cache, options: &TestOptions) -> Result<()> {
    let begin = Instant::now();
    let mut round = Round {
        cache,
        tally: Tally::default(),
        failures: Vec::new(),
        failed: Vec::new(),
    };
    if options.only.is_none() {
        let needs = if options.skip_cluster {
            setup::tests
        } else {
            setup::full
        };
        step("setup", || needs(cache))?;
    }
    std::thread::scope(|scope| {
        // Go's compiler works while cargo waits for its own long chains of crates.
        let local = options.wants(Level::System) && !options.use_kubeconfig;
        let programs = local.then(|| scope.spawn(|| cluster::build_programs(cache)));
        let (unit, crates) = (options.wants(Level::Unit), options.wants(Level::Crate));
        if crates {
            // Before cargo, which puts it into the agent.
            round.step("viewer", |_| web::build(cache));
        }
        // So do the viewer's tests, which wait for a browser.
        let viewer = crates.then(|| scope.spawn(|| step("viewer's tests", || Ok(web::test(cache)))));
        if options.only.is_none() {
            round.step("lint", |_| lint::run(cache));
        }
        match (unit, crates) {
            (true, true) => round.cargo("unit and crate tests", &[]),
            (true, false) => round.cargo("unit tests", &UNIT_TARGETS),
            (false, true) => round.cargo("crate tests", &["--test", "*"]),
            (false, false) => {}
        }
        match viewer.map(std::thread::ScopedJoinHandle::join) {
            Some(Ok(Ok((tally, failures)))) => {
                if tally.failed > 0 {
                    round.failed.push("viewer's tests".to_owned());
                }
                round.tally.add(&tally);
                round.failures.extend(failures);
            }
            // Its thread came to no end.
            Some(_) => round.failed.push("viewer's tests".to_owned()),
            None => {}
        }
        if let Some(Ok(Err(error))) = programs.map(std::thread::ScopedJoinHandle::join) {
            // Starting the cluster reports it again, with what it prevents.
            say(format_args!("building the cluster's programs: {error:#}"));
        }
    });
    if options.wants(Level::System) {
        round.system(options);
    }
    let interrupted = interrupted();
    say(format_args!("all steps took {}", human(begin.elapsed())));
    // At the end, where whoever sees only the end of a long log finds them.
    for Failure { test, said } in &round.failures {
        say(format_args!("{test} failed:\n    {}", said.join("\n    ")));
    }
    result(&round.tally);
    if interrupted {
        bail!("interrupted");
    }
    if round.failed.is_empty() && round.tally.failed == 0 {
        Ok(())
    } else {
        bail!("failed: {}", round.failed.join(", "))
    }
}

/// What the system tests need to know: the way to the cluster, the fake NVML, the profiler.
pub(crate) fn system_environment(cache: &Cache, use_kubeconfig: bool) -> Result<BTreeMap<String, String>> {
    let mut more = cluster::reach(cache, use_kubeconfig)?.environment();
    more.insert("FLOPWATCH_SYSTEM_TESTS".to_owned(), "1".to_owned());
    let library = project::build_library(FAKE_NVML)?;
    more.insert("FLOPWATCH_FAKE_NVML_LIBRARY".to_owned(), library.display().to_string());
    let plugin = project::build_beside_tests(cache, "kubectl-flopwatch", "krew")?;
    more.insert("FLOPWATCH_PLUGIN".to_owned(), plugin.display().to_string());
    more.extend(nsys::ensure(cache)?.environment());
    Ok(more)
}

struct Round<'a> {
    cache: &'a Cache,
    tally: Tally,
    failures: Vec<Failure>,
    failed: Vec<String>,
}

impl Round<'_> {
    /// One step; its failure is written down and the next step runs, unless somebody interrupted.
    fn step(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<()>) {
        if interrupted() {
            return;
        }
        if let Err(error) = step(name, || work(self)) {
            say(format_args!("{name}: {error:#}"));
            self.failed.push(name.to_owned());
        }
    }

    fn cargo(&mut self, name: &str, targets: &[&str]) {
        let packages = ["--workspace", "--exclude", SYSTEM_TESTS];
        self.step(name, |round| {
            round.with_chances(packages.iter().chain(targets).copied(), &BTreeMap::new())
        });
    }

    fn cargo_test<'a>(
        &mut self,
        selection: impl IntoIterator<Item = &'a str>,
        filters: &[&str],
        more: &BTreeMap<String, String>,
    ) -> Result<()> {
        let run = project::cargo()?
            .envs(project::environment(self.cache)?)
            // An error of ours names its own way; frames of the runtime bury it.
            .env("RUST_BACKTRACE", "0")
            .envs(more)
            .args(["test", "--no-fail-fast"])
            .args(selection)
            // Skips are told on the standard output of tests that pass.
            .args(["--", "--show-output"])
            .args(filters);
        let mut reader = tally::Reader::default();
        let outcome = run.watched(|line| {
            if let Some(line) = reader.read(line) {
                say(line);
            }
        });
        let (mut tally, failures) = reader.finish();
        if outcome.is_err() && tally.failed == 0 {
            // It did not compile, or a test took its process down: no result line tells of it.
            tally.failed = 1;
        }
        self.tally.add(&tally);
        self.failures.extend(failures);
        outcome
    }

    /// A few tests that failed are run once more by themselves, which tells a fault from a machine that had no time for all of
    /// them at once. The result counts and names them either way.
    fn with_chances<'a>(
        &mut self,
        selection: impl Iterator<Item = &'a str> + Clone,
        more: &BTreeMap<String, String>,
    ) -> Result<()> {
        let (before, failed) = (self.failures.len(), self.tally.failed);
        let Err(first) = self.cargo_test(selection.clone(), &[], more) else {
            return Ok(());
        };
        let again: Vec<String> = self.failures.iter().skip(before).map(|one| one.test.clone()).collect();
        // What failed without a name (a program that fell over) cannot be run again, and is not chance.
        let failed = usize::try_from(self.tally.failed - failed)?;
        if interrupted() || again.len() != failed || again.len() > CHANCES {
            return Err(first);
        }
        say(format_args!("once more, alone: {}", again.join(", ")));
        let mut more = more.clone();
        more.insert(TEST_THREADS.to_owned(), "1".to_owned());
        let filters: Vec<&str> = std::iter::once("--exact")
            .chain(again.iter().map(String::as_str))
            .collect();
        let passed = self.tally.passed;
        let outcome = self.cargo_test(selection, &filters, &more);
        // Each counts once, as it ended at last; tests of the same name in other programs have counted before.
        let again = u32::try_from(again.len())?;
        let mended = (self.tally.passed - passed).min(again);
        self.tally.passed = passed + mended;
        self.tally.failed -= again.min(self.tally.failed);
        self.tally.mended += mended;
        outcome
    }

    /// The cluster, its tests, and in any case its end.
    fn system(&mut self, options: &TestOptions) {
        let cache = self.cache;
        let mut up = false;
        self.step("cluster up", |_| {
            let images = ImageOptions::default();
            let command = if !options.use_kubeconfig && cluster::is_up(cache)? {
                ClusterCommand::Load(images)
            } else {
                ClusterCommand::Up(UpOptions {
                    images,
                    nodes: NODES,
                    keep_failed: false,
                })
            };
            cluster::run(cache, options.use_kubeconfig, &command)?;
            up = true;
            Ok(())
        });
        if up {
            self.step("system tests", |round| {
                let mut more = system_environment(cache, options.use_kubeconfig)?;
                // Most of their time they wait for the cluster.
                more.insert(TEST_THREADS.to_owned(), "4".to_owned());
                round.with_chances(["--workspace"].iter().chain(&SYSTEM_TARGETS).copied(), &more)
            });
        } else if !interrupted() {
            self.tally.failed += 1;
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
}
