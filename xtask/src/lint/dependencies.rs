//! Licences, sources and known vulnerabilities of the crates, by cargo-deny; and which of them the
//! first command of the README compiles.

use crate::demo;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{human, say};
use flopwatch_toolchain::project;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a recording on one machine does without: clients of Kubernetes and of object stores, TLS,
/// Parquet, an allocator for programs that run for months. Each costs whoever tries Flopwatch out
/// seconds.
const NOT_IN_THE_DEMO: [&str; 12] = [
    "flopwatch-fleet",
    "flopwatch-overhead",
    "hyper-rustls",
    "k8s-controller",
    "k8s-openapi",
    "kube",
    "oci-client",
    "parquet",
    "reqwest",
    "ring",
    "rustls",
    "tikv-jemalloc-sys",
];
/// Built from its crate and its own lock file: PyPI's wheel is of 2023, and Debian has none.
const VERSION: &str = "0.20.2";
/// The advisories are a git repository, which not every machine reaches.
const FETCH_TIMEOUT: Duration = Duration::from_mins(2);

/// cargo-deny of the pinned version, built when the cache lacks it.
fn program(cache: &Cache) -> Result<PathBuf> {
    let folder = cache.item("cargo-deny", &[VERSION], |folder| {
        say(format_args!("building cargo-deny {VERSION}"));
        let begin = Instant::now();
        let target = folder.join("target");
        project::cargo()?
            .args([
                "install",
                "--quiet",
                "--locked",
                "--profile",
                "dev",
                "--version",
                VERSION,
            ])
            .arg("--root")
            .arg(folder)
            .arg("cargo-deny")
            .env("CARGO_TARGET_DIR", &target)
            // It runs for seconds: what its compiler saves is worth more than what its optimiser
            // would.
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("CARGO_PROFILE_DEV_INCREMENTAL", "false")
            .patiently()
            .quiet()?;
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
        say(format_args!("built in {}", human(begin.elapsed())));
        Ok(())
    })?;
    Ok(folder.join("bin/cargo-deny"))
}

fn run(cache: &Cache) -> Result<Run> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Run::new(program(cache)?).dir(project::root()?).env("CARGO", cargo);
    Ok(run.arg("--workspace"))
}

/// Licences, sources, duplicates: what deny.toml says of them.
pub(super) fn check(cache: &Cache) -> Result<()> {
    run(cache)?
        .args(["check", "--hide-inclusion-graph", "licenses", "bans", "sources"])
        .quiet()
}

/// Known vulnerabilities and withdrawn versions. Where the database cannot be had, says that
/// nothing was looked up.
pub(super) fn advisories(cache: &Cache) -> Result<()> {
    if let Err(error) = run(cache)?.args(["fetch", "db"]).deadline(FETCH_TIMEOUT).quiet() {
        say(format_args!(
            "advisories: NOT CHECKED, the database cannot be fetched from here: {error:#}"
        ));
        return Ok(());
    }
    run(cache)?
        .args(["check", "--hide-inclusion-graph", "advisories"])
        .quiet()
}

/// Fails when the demo compiles what it does without, and when it does not compile: the tests'
/// build has the features that it leaves out.
pub(super) fn demo() -> Result<()> {
    let compiled = project::crates_of(&demo::PROGRAMS)?;
    let found = needless(&compiled);
    let Some(first) = found.first() else {
        return project::check_quickly(&demo::PROGRAMS);
    };
    bail!(
        "`cargo xtask demo` would compile {}: what a node alone needs belongs to flopwatch-agent (`cargo tree -p flopwatch \
         --no-default-features -i {first}` says what brings it)",
        found.join(", ")
    )
}

fn needless(compiled: &BTreeSet<String>) -> Vec<&'static str> {
    NOT_IN_THE_DEMO
        .into_iter()
        .filter(|name| compiled.contains(*name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_demo_does_without_is_named_and_the_demo_has_none_of_it() {
        let compiled = ["serde", "kube", "parquet"].map(str::to_owned).into();
        assert_eq!(needless(&compiled), ["kube", "parquet"]);
        let compiled = project::crates_of(&demo::PROGRAMS).unwrap();
        assert!(compiled.contains("flopwatch-trace"), "the check looked at nothing");
        assert_eq!(needless(&compiled), [""; 0]);
    }
}
