//! The README's test command: everything that CI runs.

mod alike;
mod changed;
mod ledger;
mod need;
mod programs;
mod round;
mod schedule;
mod skip;
mod table;
mod tally;

use anyhow::Result;
use clap::{Args, ValueEnum};
use flopwatch_cluster as cluster;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::nsys;
use flopwatch_toolchain::project;
use round::Round;
pub(crate) use skip::{Kind, Skip};
use std::collections::BTreeMap;
pub(crate) use tally::{Failure, Outcome, Tally};

/// The tests that need a cluster. They are selected in the whole workspace: selecting their package
/// alone would compile every dependency once more, with fewer features.
pub(crate) const SYSTEM_TARGETS: [&str; 2] = ["--test", "system"];
/// All modules of their program, as filters of its harness.
const EVERY_MODULE: &[&str] = &[];
/// The module of pods that turn against their node, its agent or other tenants.
const HOSTILE: &[&str] = &["hostile::"];
/// The second one is what tests lose.
pub(crate) const NODES: u8 = 2;

/// Which tests, and what becomes of the cluster.
#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Leave out the tests that need a cluster.
    #[arg(long)]
    skip_cluster: bool,
    /// Only the tests of one level, without setup and lint.
    #[arg(long, value_enum, conflicts_with = "skip_cluster")]
    only: Option<Level>,
    /// Only the tests that a change can reach, without setup: what differs from BASE, a revision,
    /// and what is not committed.
    #[arg(long, value_name = "BASE", num_args = 0..=1, default_missing_value = "HEAD", conflicts_with = "skip_cluster")]
    changed: Option<String>,
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
    /// Those of the whole system whose pods turn against their node, its agent or other tenants.
    Hostile,
}

impl TestOptions {
    /// Whether the tests of a level that needs no cluster are wanted.
    fn wants(&self, level: Level) -> bool {
        self.only.is_none_or(|only| only == level)
    }

    /// The modules of the system's tests that are wanted, as filters of their program; None where
    /// nothing in a cluster is.
    fn system(&self) -> Option<&'static [&'static str]> {
        match self.only {
            Some(Level::Unit | Level::Crate) => None,
            Some(Level::System) => Some(EVERY_MODULE),
            Some(Level::Hostile) => Some(HOSTILE),
            None => (!self.skip_cluster).then_some(EVERY_MODULE),
        }
    }
}

/// Runs them, adds them up, and fails when anything failed.
pub(crate) fn run(cache: &Cache, options: &TestOptions) -> Result<()> {
    let mut round = Round::begin(cache)?;
    match &options.changed {
        Some(base) => round.changed(options, base)?,
        None if options.only.is_some() => round.level(options),
        None => round.whole(options)?,
    }
    round.end()
}

/// What the system tests need to know: the way to the cluster, the fake NVML, the profiler.
pub(crate) fn system_environment(cache: &Cache, use_kubeconfig: bool) -> Result<BTreeMap<String, String>> {
    let mut more = cluster::reach(cache, use_kubeconfig)?.environment();
    more.insert("FLOPWATCH_SYSTEM_TESTS".to_owned(), "1".to_owned());
    more.extend(project::for_tests(&project::build_all(cache, |_| ())?)?);
    more.extend(nsys::ensure(cache)?.environment());
    Ok(more)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        options: TestOptions,
    }

    fn options(words: &[&str]) -> TestOptions {
        Command::parse_from([&["test"][..], words].concat()).options
    }

    #[test]
    fn hostile_tests_are_the_module_of_that_name_of_the_systems_program_and_need_nothing_else() {
        let hostile = options(&["--only", "hostile"]);
        assert_eq!(hostile.system(), Some(&["hostile::"][..]));
        assert!(!hostile.wants(Level::Unit) && !hostile.wants(Level::Crate));
        let program = project::root().unwrap().join("tests/system/tests/system");
        let modules = std::fs::read_to_string(program.join("main.rs")).unwrap();
        assert!(modules.contains("\nmod hostile;\n") && program.join("hostile.rs").is_file());
    }

    #[test]
    fn a_round_has_all_of_the_systems_tests_unless_it_has_no_cluster_or_another_level() {
        let everything = Some(EVERY_MODULE);
        assert_eq!(options(&[]).system(), everything);
        assert_eq!(options(&["--only", "system"]).system(), everything);
        assert_eq!(options(&["--changed"]).system(), everything);
        for words in [&["--skip-cluster"][..], &["--only", "unit"], &["--only", "crate"]] {
            assert_eq!(options(words).system(), None, "{words:?}");
        }
    }
}
