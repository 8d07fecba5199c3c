//! Captures held against independent readings of the same files: `trace/oracles`.

use crate::setup;
use anyhow::{Context as _, Result};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::step;
use flopwatch_toolchain::{nsys, project, python};
use std::path::PathBuf;
use std::time::Duration;

const PROGRAM: &str = "flopwatch";
/// A folder of some hundred large captures takes hours.
const RUN_TIMEOUT: Duration = Duration::from_hours(24);

/// Which captures, and which program.
#[derive(Debug, Args)]
pub(crate) struct OracleOptions {
    /// A folder of captures, or one of them.
    folder: PathBuf,
    /// The program that is held against the oracles [default: it is built].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Begin no further file after so many seconds, and draw their order [default: read all].
    #[arg(long)]
    seconds: Option<u32>,
    /// Draws the order.
    #[arg(long, default_value_t = 0, requires = "seconds")]
    seed: u64,
}

/// Prints every difference; fails where there is any.
pub(crate) fn run(cache: &Cache, options: &OracleOptions) -> Result<()> {
    setup::basic(cache)?;
    step("newer Nsight Systems", || nsys::ensure_newer(cache))?;
    step("Python", || python::ensure(cache))?;
    let python = python::find(cache).context("the Python that was set up is gone")?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => step("building flopwatch", || {
            let mut built = project::build_binaries(&[PROGRAM])?;
            built.remove(PROGRAM).context("cargo built no flopwatch")
        })?,
    };
    let oracles = project::root()?.join("trace/oracles");
    let mut run = Run::new(python).envs(project::tools(cache)?).arg("-B").arg(oracles);
    run = run.arg("--program").arg(program).arg(&options.folder);
    if let Some(seconds) = options.seconds {
        let (seconds, seed) = (seconds.to_string(), options.seed.to_string());
        run = run.args(["--seconds", &seconds, "--seed", &seed]);
    }
    run.deadline(RUN_TIMEOUT).shown()
}
