//! The README's first command: profile a sample program on this machine, without a cluster.

use crate::cache::Cache;
use crate::progress::{say, step};
use crate::{nsys, project, setup};
use anyhow::{Context as _, Result};

const AGENT: &str = "flopwatch-agent";
const WORKLOAD: &str = "flopwatch-sample-workload";
const MANIFEST: &str = "examples/record.yaml";

/// Sets up, builds, and becomes the recorder.
pub(crate) fn run(cache: &Cache, record_args: &[String]) -> Result<()> {
    step("setting up", || setup::basic(cache))?;
    let binaries = step("building the recorder and a sample workload", || {
        project::build_binaries(cache, &[AGENT, WORKLOAD])
    })?;
    let binary = |name: &str| {
        binaries
            .get(name)
            .with_context(|| format!("cargo built no binary {name}"))
    };
    let (agent, workload) = (binary(AGENT)?, binary(WORKLOAD)?);
    let nsys = nsys::ensure(cache)?;
    say(format_args!("{AGENT} record -f {MANIFEST} -- {WORKLOAD}"));
    let recorder = crate::command::Run::new(agent)
        .dir(project::root()?)
        .envs(nsys.environment());
    Err(recorder
        .args(["record", "-f", MANIFEST])
        .args(record_args)
        .arg("--")
        .arg(workload)
        .replace())
}
