//! Format, lints, documentation, chart, licences.

use crate::cache::Cache;
use crate::command::{Run, find_program, interrupted};
use crate::golang::HELM;
use crate::progress::{say, step};
use crate::project;
use anyhow::{Result, bail};

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
    check("clippy", &|| {
        cargo()?
            .args([
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
            .shown()
    });
    check("documentation", &|| {
        let documentation = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
        cargo()?.env("RUSTDOCFLAGS", "-D warnings").args(documentation).shown()
    });
    if let Some(folder) = HELM.built(cache)? {
        let chart = project::root()?.join("charts/flopwatch");
        let helm = folder.join("helm");
        check("chart", &|| {
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
    } else {
        say("chart: not checked, helm is not built yet (cargo xtask cluster env builds it)");
    }
    if find_program("cargo-deny").is_some() {
        check("licences and sources", &|| {
            cargo()?
                .args(["deny", "--workspace", "check", "licenses", "bans", "sources"])
                .shown()
        });
    } else {
        say("licences and sources: not checked, cargo-deny is not installed");
    }
    if interrupted() {
        bail!("interrupted");
    }
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("failed: {}", failed.join(", "))
    }
}

#[cfg(test)]
mod dashboards;
