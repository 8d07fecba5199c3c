//! Format, lints, documentation, chart, dependencies.

#[cfg(test)]
mod chart;
#[cfg(test)]
mod dashboards;
mod dependencies;
mod documentation;
mod links;
mod lockfile;
mod python;

use crate::test::SYSTEM_TARGETS;
use anyhow::{Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{Run, interrupted};
use flopwatch_toolchain::golang::HELM;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use std::collections::BTreeSet;

/// Runs every check and fails when one failed.
pub(crate) fn run(cache: &Cache) -> Result<()> {
    let environment = project::environment(cache)?;
    let cargo = || Ok::<_, anyhow::Error>(project::cargo()?.envs(&environment));
    let mut failed = Vec::new();
    let mut check = |name: &'static str, work: &dyn Fn() -> Result<()>| {
        if interrupted() {
            return;
        }
        if let Err(error) = step(name, work) {
            say(format_args!("{error:#}"));
            failed.push(name);
        }
    };
    check("format", &|| cargo()?.args(["fmt", "--all", "--check"]).shown());
    check("clippy", &|| clippy(cache));
    check("documentation", &|| documentation::check(cache));
    check("links between the documents", &links::check);
    check("chart", &|| {
        let chart = project::root()?.join("charts/flopwatch");
        let helm = HELM.build(cache)?.join("helm");
        Run::new(&helm)
            .args(["lint", "--strict", "--quiet"])
            .arg(&chart)
            .quiet()?;
        Run::new(&helm)
            .args(["template", "flopwatch", "--namespace", "flopwatch-system"])
            // What is off by default is rendered too.
            .args(["podMonitor", "rules", "dashboards"].map(|part| format!("--set=metrics.{part}.enabled=true")))
            .arg(&chart)
            .quiet()
    });
    check("Python", &|| python::check(cache));
    check("packages of the viewer", &lockfile::check);
    check("licences and sources", &|| dependencies::check(cache));
    check("advisories", &|| dependencies::advisories(cache));
    if interrupted() {
        bail!("interrupted");
    }
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("failed: {}", failed.join(", "))
    }
}

/// Compiles all that there is, as the tests run it, and fails when that gave a warning.
fn clippy(cache: &Cache) -> Result<()> {
    // A library and its tests tell of the same warning.
    let mut told = BTreeSet::new();
    let mut warned = |warning: &str| {
        if told.insert(warning.to_owned()) {
            say(warning);
        }
    };
    project::build_all(cache, &mut warned)?;
    // Those that run in a cluster alone are in no selection of all targets.
    project::build_tests(cache, &SYSTEM_TARGETS, &mut warned)?;
    if told.is_empty() {
        return Ok(());
    }
    bail!("{} warnings", told.len())
}
