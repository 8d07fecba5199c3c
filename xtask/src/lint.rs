//! Format, lints, documentation, chart, dependencies.

#[cfg(test)]
mod chart;
mod circles;
#[cfg(test)]
mod dashboards;
mod dependencies;
mod documentation;
mod links;
mod lockfile;
mod names;
mod paths;
mod python;
mod width;

use crate::test::SYSTEM_TARGETS;
use anyhow::{Result, anyhow, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{Run, interrupted};
use flopwatch_toolchain::golang::HELM;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project::{self, Artifacts};
use std::collections::BTreeSet;
use std::fs;

/// The folders that hold pages, from the repository's root.
const PAGE_FOLDERS: [&str; 6] = [
    "",
    "docs",
    "docs/analyses",
    "docs/decisions",
    "docs/measurements",
    "web",
];

/// The files that git tracks and whose paths match one of `patterns`, each with its text. One that
/// was removed and not yet committed is left out.
fn tracked(patterns: &[&str]) -> Result<impl Iterator<Item = (String, String)>> {
    let root = project::root()?;
    let files = project::git(&[&["ls-files"], patterns].concat())?;
    Ok(files.into_iter().filter_map(move |file| {
        let text = fs::read_to_string(root.join(&file)).ok()?;
        Some((file, text))
    }))
}

/// Runs every check and fails when one failed.
pub(crate) fn run(cache: &Cache) -> Result<()> {
    let mut checks = Checks::default();
    checks.run("format", format);
    checks.run("clippy", || clippy(cache)?.1);
    checks.others(cache);
    checks.end()
}

/// Those that compile the workspace: all that comes later is waiting for that. Gives what was
/// built, if it compiles, and whether there was nothing to complain of.
pub(crate) fn compile(cache: &Cache) -> (Option<Artifacts>, Result<()>) {
    let mut checks = Checks::default();
    checks.run("format", format);
    let mut built = None;
    checks.run("clippy", || {
        let (artifacts, verdict) = clippy(cache)?;
        built = Some(artifacts);
        verdict
    });
    (built, checks.end())
}

/// Links between the documents, the paths that they name, the width of their lines, names, and
/// circles of imports.
pub(crate) fn links() -> Result<()> {
    links::check()?;
    paths::check()?;
    width::check()?;
    names::check()?;
    circles::check()
}

/// All others, which nothing waits for.
pub(crate) fn others(cache: &Cache) -> Result<()> {
    let mut checks = Checks::default();
    checks.others(cache);
    checks.end()
}

/// Checks of which each is made, whatever became of those before it.
#[derive(Default)]
struct Checks {
    failed: Vec<&'static str>,
}

impl Checks {
    fn others(&mut self, cache: &Cache) {
        self.run("documentation", || documentation::check(cache));
        self.run("links between the documents", links::check);
        self.run("paths in the documents", paths::check);
        self.run("lines of prose", width::check);
        self.run("names", names::check);
        self.run("circles of imports", circles::check);
        self.run("chart", || {
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
        self.run("Python", || python::check(cache));
        self.run("packages of the viewer", lockfile::check);
        self.run("licences and sources", || dependencies::check(cache));
        self.run("the demo", dependencies::demo);
        self.run("advisories", || dependencies::advisories(cache));
    }

    fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        if interrupted() {
            return;
        }
        if let Err(error) = step(name, work) {
            say(format_args!("{error:#}"));
            self.failed.push(name);
        }
    }

    fn end(self) -> Result<()> {
        if interrupted() {
            bail!("interrupted");
        }
        if self.failed.is_empty() {
            Ok(())
        } else {
            bail!("failed: {}", self.failed.join(", "))
        }
    }
}

fn format() -> Result<()> {
    project::cargo()?.args(["fmt", "--all", "--check"]).shown()
}

/// Compiles all that there is, as the tests run it; gives what was built, and an error where that
/// gave a warning.
fn clippy(cache: &Cache) -> Result<(Artifacts, Result<()>)> {
    // A library and its tests tell of the same warning.
    let mut told = BTreeSet::new();
    let mut warned = |warning: &str| {
        if told.insert(warning.to_owned()) {
            say(warning);
        }
    };
    let built = project::build_all(cache, &mut warned)?;
    // Those that run in a cluster alone are in no selection of all targets.
    project::build_tests(cache, &SYSTEM_TARGETS, &mut warned)?;
    let verdict = if told.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{} warnings", told.len()))
    };
    Ok((built, verdict))
}
