//! What a prepared container costs beside an unprepared one.

use crate::setup;
use anyhow::{Context as _, Result};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::step;
use flopwatch_toolchain::project;

const LAUNCHER: &str = "flopwatch-launcher";
const WORKLOAD: &str = "flopwatch-sample-workload";

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct GraftOptions {
    /// Starts of each kind.
    #[arg(long, default_value_t = 20)]
    starts: u32,
    /// Rounds, each of one window of every kind.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

/// Builds what is measured, and measures it.
pub(crate) fn run(cache: &Cache, options: &GraftOptions) -> Result<()> {
    step("setting up", || setup::basic(cache))?;
    let programs = step("building the launcher and a sample workload", || {
        let mut programs = project::build_binaries(&[WORKLOAD])?;
        programs.extend(project::build_static(LAUNCHER)?);
        Ok(programs)
    })?;
    let program = |name: &str| {
        programs
            .get(name)
            .with_context(|| format!("cargo built no binary {name}"))
    };
    let run = project::cargo()?
        .envs(project::tools(cache)?)
        .env("FLOPWATCH_LAUNCHER", program(LAUNCHER)?)
        .env("FLOPWATCH_WORKLOAD", program(WORKLOAD)?);
    run.args(["bench", "--quiet", "-p", "flopwatch-attach", "--bench", "graft", "--"])
        .args([options.starts.to_string(), options.rounds.to_string()])
        .shown()
}
