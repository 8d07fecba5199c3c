//! Regions of the Python package, around work of each framework on the GPU.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{Outcome, ProfilersOptions};
use crate::graft::program::{CANNOT_RUN, UNAVAILABLE};

/// Calls whose GPU time is known.
pub(super) const GPU_TIMES: &str = "gpu_times";
/// Calls that were measured.
pub(super) const CALLS: &str = "calls";

/// Runs the package beside the program with a framework.
pub(super) fn measure(options: &ProfilersOptions, bundle: &Path, framework: &str, gpu: bool) -> Result<Outcome> {
    let python = options.jax_python.as_ref().filter(|_| framework == "jax");
    let python = python.unwrap_or(&options.python);
    let mut path = OsString::from(bundle);
    if let Some(others) = std::env::var_os("PYTHONPATH") {
        path.push(":");
        path.push(others);
    }
    let mut command = Command::new(python);
    command.env("PYTHONPATH", path).arg(bundle.join("regions_program.py"));
    command.arg(framework).args((!gpu).then_some("cpu"));
    let ran = command.output().with_context(|| python.display().to_string())?;
    let printed = String::from_utf8_lossy(&ran.stdout);
    let line = printed.lines().last().unwrap_or_default();
    if ran.status.code() == Some(CANNOT_RUN) {
        let reason = line.strip_prefix(UNAVAILABLE).unwrap_or(line);
        return Ok(Outcome::NotRun(reason.to_owned()));
    }
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        bail!("{}", said.lines().last().unwrap_or("it says nothing"));
    }
    let found: BTreeMap<String, u64> = serde_json::from_str(line).context("what it printed")?;
    Ok(Outcome::Found(found))
}
