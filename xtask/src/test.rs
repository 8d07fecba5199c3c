//! The README's test command: everything that CI runs.

mod changed;
mod ledger;
mod need;
mod programs;
mod round;
mod schedule;
mod skip;
mod table;
mod tally;

use crate::setup;
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
    /// Only the tests that a change can reach, without setup: what differs from BASE, a revision, and what is not committed.
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
    let mut round = Round::begin(cache)?;
    match &options.changed {
        Some(base) => round.changed(options, base)?,
        None if options.only.is_some() => round.level(options),
        None => {
            let needs = if options.skip_cluster {
                setup::tests
            } else {
                setup::full
            };
            round.whole(options, needs)?;
        }
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
