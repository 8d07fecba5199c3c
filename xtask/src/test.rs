//! The README's test command: everything that CI runs.

mod ledger;
mod skip;
mod tally;

use crate::bench::short;
use crate::{lint, setup, web, wheel};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use flopwatch_cluster::{self as cluster, ClusterCommand, ImageOptions, UpOptions};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{acknowledge_interrupt, interrupted};
use flopwatch_toolchain::progress::{human, result, say, step};
use flopwatch_toolchain::{nsys, project};
use skip::Machine;
pub(crate) use skip::{Kind, Skip};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
pub(crate) use tally::{Failure, Outcome, Tally};

const SYSTEM_TESTS: &str = "flopwatch-system-tests";
/// The tests that need a cluster. They are selected in the whole workspace: selecting their package
/// alone would compile every dependency once more, with fewer features.
pub(crate) const SYSTEM_TARGETS: [&str; 2] = ["--test", "system"];
/// Libraries, and the programs that have tests in themselves: `--bins` would take those along that no harness fits.
const UNIT_TARGETS: [&str; 5] = ["--lib", "--bin", "xtask", "--bin", "flopwatch-gpu-check"];
/// The second one is what tests lose.
pub(crate) const NODES: u8 = 2;
/// Where a library's tests that start processes or open sockets are: modules of this name. The unit level leaves them out.
const CRATE_TESTS: &str = "crate_tests::";
/// Lines of a step's error that are said once more at the end.
const MOST_LINES: usize = 40;
/// How the test harness is told how many tests to run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

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
    /// In memory, seconds: no process, no network, no browser.
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
    let place = Machine::here()?;
    let mut round = Round {
        cache,
        outcome: Outcome::default(),
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
        let sets_up = options.only.is_none();
        let torch = sets_up.then(|| scope.spawn(|| setup::pytorch(cache)));
        if crates {
            // Before cargo, which puts it into the agent.
            round.step("viewer", |_| web::build(cache));
        }
        // So do the viewer's tests, which wait for a browser.
        let viewer = crates.then(|| scope.spawn(|| step("viewer's tests", || Ok(web::test(cache)))));
        if sets_up {
            round.step("lint", |_| lint::code(cache));
        }
        // Tests wait most of their time, for a profiler or a browser; what is left of the processor compiles what comes later.
        let others = sets_up.then(|| scope.spawn(|| lint::others(cache)));
        let bench = sets_up.then(|| scope.spawn(short::compile));
        match torch.map(std::thread::ScopedJoinHandle::join) {
            Some(Ok(Ok(()))) | None => {}
            Some(Ok(Err(error))) => {
                say(format_args!("PyTorch: {error:#}"));
                round.failed.push("PyTorch".to_owned());
            }
            // Its thread came to no end.
            Some(Err(_)) => round.failed.push("PyTorch".to_owned()),
        }
        match (unit, crates) {
            (true, true) => round.cargo("unit and crate tests", &[], &[]),
            (true, false) => round.cargo("unit tests", &UNIT_TARGETS, &["--skip", CRATE_TESTS]),
            (false, true) => {
                round.cargo("crate tests", &["--exclude", SYSTEM_TESTS, "--test", "*"], &[]);
                round.cargo("crate tests in libraries", &UNIT_TARGETS, &[CRATE_TESTS]);
            }
            (false, false) => {}
        }
        match viewer.map(std::thread::ScopedJoinHandle::join) {
            Some(Ok(Ok(outcome))) => {
                if outcome.tally.failed > 0 {
                    round.failed.push("viewer's tests".to_owned());
                }
                round.outcome.add(outcome);
            }
            // Its thread came to no end.
            Some(_) => round.failed.push("viewer's tests".to_owned()),
            None => {}
        }
        if let Some(others) = others.map(std::thread::ScopedJoinHandle::join) {
            round.step("other checks", |_| {
                others.unwrap_or_else(|_| bail!("their thread came to no end"))
            });
        }
        if let Some(Ok(Err(error))) = programs.map(std::thread::ScopedJoinHandle::join) {
            // Starting the cluster reports it again, with what it prevents.
            say(format_args!("building the cluster's programs: {error:#}"));
        }
        if let Some(Ok(Err(error))) = bench.map(std::thread::ScopedJoinHandle::join) {
            // So do the benches.
            say(format_args!("building the bench program: {error:#}"));
        }
    });
    if options.wants(Level::Crate) {
        // After cargo's tests: maturin compiles a part of the module in its own way.
        round.step("wheel", |_| wheel::run(cache, &wheel::WheelOptions::TESTS));
    }
    if options.only.is_none() {
        // Where nothing else runs.
        round.step("benches beside their rivals", |_| {
            short::run(cache, &short::ShortOptions::TESTS)
        });
    }
    if options.wants(Level::System) {
        round.system(options);
    }
    let interrupted = interrupted();
    say(format_args!("all steps took {}", human(begin.elapsed())));
    // At the end, where whoever sees only the end of a long log finds them.
    for Failure { test, output } in &round.outcome.failures {
        say(format_args!("{test} failed:\n    {}", output.join("\n    ")));
    }
    if place.refuses_any(&round.outcome.skips) {
        round.failed.push("skips".to_owned());
    }
    result(&round.outcome.tally);
    if interrupted {
        bail!("interrupted");
    }
    if round.failed.is_empty() && round.outcome.tally.failed == 0 {
        Ok(())
    } else {
        bail!("failed: {}", round.failed.join(", "))
    }
}

/// What the system tests need to know: the way to the cluster, the fake NVML, the profiler.
pub(crate) fn system_environment(cache: &Cache, use_kubeconfig: bool) -> Result<BTreeMap<String, String>> {
    let mut more = cluster::reach(cache, use_kubeconfig)?.environment();
    more.insert("FLOPWATCH_SYSTEM_TESTS".to_owned(), "1".to_owned());
    more.extend(project::built_for_tests(cache)?);
    more.extend(nsys::ensure(cache)?.environment());
    Ok(more)
}

struct Round<'a> {
    cache: &'a Cache,
    outcome: Outcome,
    failed: Vec<String>,
}

impl Round<'_> {
    /// One step; its failure is written down and the next step runs, unless somebody interrupted.
    fn step(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<()>) {
        if interrupted() {
            return;
        }
        if let Err(error) = step(name, || work(self)) {
            let error = format!("{error:#}");
            say(format_args!("{name}: {error}"));
            self.failed.push(name.to_owned());
            self.outcome.failures.push(Failure {
                test: name.to_owned(),
                output: error.lines().take(MOST_LINES).map(str::to_owned).collect(),
            });
        }
    }

    /// Tests of unit and crate level, each once: what fails there by chance is a fault.
    fn cargo(&mut self, name: &str, targets: &[&str], filters: &[&str]) {
        self.step(name, |round| {
            let more = if targets == UNIT_TARGETS {
                BTreeMap::new()
            } else {
                project::built_for_tests(round.cache)?
            };
            let (outcome, ended) = cargo_test(round.cache, targets, filters, &more)?;
            round.outcome.add(outcome);
            ended
        });
    }

    /// The tests in the cluster. One that failed alone is run a second time, which tells a fault from a machine that had no time;
    /// the ledger remembers it.
    fn system_tests(&mut self, more: &BTreeMap<String, String>) -> Result<()> {
        let (mut outcome, mut ended) = cargo_test(self.cache, &SYSTEM_TARGETS, &[], more)?;
        let mut again = BTreeSet::new();
        if let Some(test) = chance(&outcome).filter(|_| !interrupted()) {
            say(format_args!("a second time, alone: {test}"));
            let (second, passed) = cargo_test(self.cache, &SYSTEM_TARGETS, &["--exact", &test], more)?;
            outcome.mend(second);
            ended = passed;
            again.insert(test);
        }
        self.outcome.add(outcome);
        if interrupted() {
            bail!("interrupted");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let ledger = ledger::record(self.cache, ledger::Round { ended: now, again })?;
        say(&ledger);
        let unreliable = ledger.unreliable();
        if !unreliable.is_empty() {
            bail!("needed a second try too often, find out why: {}", unreliable.join(", "));
        }
        ended
    }

    /// The cluster, its tests, and in any case its end.
    fn system(&mut self, options: &TestOptions) {
        let cache = self.cache;
        let mut up = false;
        self.step("cluster up", |_| {
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
            cluster::run(cache, options.use_kubeconfig, &command)?;
            up = true;
            Ok(())
        });
        if up {
            self.step("system tests", |round| {
                let mut more = system_environment(cache, options.use_kubeconfig)?;
                // Most of their time they wait for the cluster.
                more.insert(TEST_THREADS.to_owned(), "4".to_owned());
                round.system_tests(&more)
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
}

/// Runs tests of the workspace: what became of them, and how cargo ended.
fn cargo_test(
    cache: &Cache,
    targets: &[&str],
    filters: &[&str],
    more: &BTreeMap<String, String>,
) -> Result<(Outcome, Result<()>)> {
    let run = project::cargo()?
        .envs(project::environment(cache)?)
        // An error of ours names its own way; frames of the runtime bury it.
        .env("RUST_BACKTRACE", "0")
        // Without it every program with snapshots starts cargo to ask for it.
        .env("INSTA_WORKSPACE_ROOT", project::root()?)
        .envs(more)
        .args(["test", "--no-fail-fast", "--workspace"])
        .args(targets)
        // Skips are told on the standard output of tests that pass.
        .args(["--", "--show-output"])
        .args(filters);
    let mut reader = tally::Reader::default();
    let ended = run.watched(|line| {
        if let Some(line) = reader.read(line) {
            say(line);
        }
    });
    let mut outcome = reader.finish();
    if ended.is_err() && outcome.tally.failed == 0 {
        // It did not compile, or a test took its process down: no result line tells of it.
        outcome.tally.failed = 1;
    }
    Ok((outcome, ended))
}

/// The one test that failed, if that may be chance. What failed without a name (a program that fell over) cannot be run again, and
/// two at once are no chance.
fn chance(outcome: &Outcome) -> Option<String> {
    match outcome.failures.as_slice() {
        [only] if outcome.tally.failed == 1 => Some(only.test.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
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
