//! Tests that run for longer than in CI, most of them in the local cluster, and say what they see
//! as they see it.

use crate::test;
use anyhow::Result;
use flopwatch_cluster::{self as cluster, ClusterCommand, ImageOptions, UpOptions};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than a night.
const RUN_TIMEOUT: Duration = Duration::from_hours(24);

/// What tests need of the local cluster, which is brought up where it is not.
pub(crate) fn environment(cache: &Cache) -> Result<BTreeMap<String, String>> {
    if !cluster::is_up(cache)? {
        let up = UpOptions {
            images: ImageOptions::of_tests(),
            nodes: test::NODES,
            keep_failed: false,
        };
        cluster::run(cache, false, &ClusterCommand::Up(up))?;
    }
    test::system_environment(cache, false)
}

/// Runs some of the system tests in the local cluster with one variable set, and shows what they
/// say.
pub(crate) fn tell(cache: &Cache, what: &str, variable: (&str, String), tests: &str) -> Result<()> {
    let mut more = environment(cache)?;
    let (name, value) = variable;
    more.insert(name.to_owned(), value);
    step(what, || {
        watched(cache, &more, &["--workspace", "--test", "system"], tests)
    })
}

/// Runs the tests of that name and shows what they say as they say it.
pub(crate) fn watched(cache: &Cache, more: &BTreeMap<String, String>, targets: &[&str], name: &str) -> Result<()> {
    project::cargo()?
        .envs(project::environment(cache)?)
        .envs(more)
        .arg("test")
        .args(targets)
        .args(["--", "--nocapture"])
        .args(Some(name).filter(|name| !name.is_empty()))
        .deadline(RUN_TIMEOUT)
        .watched(|line| say(line))
}
