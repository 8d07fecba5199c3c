//! `cargo xtask bench idle`: measures the processor time and the memory of an agent that has no
//! capture to make, and compares them with their budgets.

use super::load;
use crate::setup;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Cargo package and program of the agent.
const AGENT: &str = "flopwatch-agent";
/// Budget of processor time, in percent of a core.
const MAX_CORE_PERCENT: f64 = 0.2;
/// Budget of memory that is the agent's alone, in bytes.
const MAX_ANONYMOUS_BYTES: u64 = 25_000_000;
/// Time that the benchmark may take beside the seconds that it measures.
const EXTRA_TIMEOUT: Duration = Duration::from_mins(2);

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct IdleOptions {
    /// Seconds that are measured, after the agent has settled.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Containers that run on the node, which nobody profiles.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    containers: u32,
    /// GPUs of the node, which nobody uses.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=16))]
    gpus: u32,
    /// The agent's program [default: it is built as it is handed out].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
}

/// Builds the agent and its benchmark, runs the benchmark and prints its figures. Fails where a
/// budget is missed and `--strict` is given.
pub(crate) fn run(cache: &Cache, options: &IdleOptions) -> Result<()> {
    step("setting up", || setup::basic(cache))?;
    let library = step("building the tests' NVML", || {
        project::build_library("flopwatch-fake-nvml", "flopwatch_fake_nvml")
    })?;
    let program = match &options.program {
        Some(program) => std::path::absolute(program)?,
        None => step("building the agent", || {
            let mut built = project::build_to_hand_out(AGENT, "dist")?;
            built.remove(AGENT).context("cargo built no agent")
        })?,
    };
    let bench = || -> Result<Run> {
        let run = project::cargo()?.env("FLOPWATCH_FAKE_NVML_LIBRARY", &library);
        // The benchmark starts the agent and waits: it need not be optimized itself.
        Ok(run.args(["bench", "--quiet", "--profile", "dev", "-p", AGENT, "--bench", "idle"]))
    };
    step("building the benchmark", || bench()?.arg("--no-run").quiet())?;
    let sizes = [options.seconds, options.containers, options.gpus].map(|size| size.to_string());
    let run = bench()?.arg("--").arg(&program).args(sizes);
    let output = run
        .deadline(Duration::from_secs(options.seconds.into()) + EXTRA_TIMEOUT)
        .output()?;
    let line = output.lines().find(|line| line.starts_with('{'));
    let figures: Value = serde_json::from_str(line.with_context(|| format!("no figures in {output:?}"))?)?;
    let number = |object: &Value, name: &str| object.get(name).and_then(Value::as_f64).context("a figure is missing");
    let integer = |name: &str| figures.get(name).and_then(Value::as_u64).context("a figure is missing");
    say(format_args!(
        "an idle agent on a node with {} containers and {} GPUs, {} s ({})",
        options.containers,
        options.gpus,
        options.seconds,
        load()
    ));
    for (thread, costs) in figures
        .get("threads")
        .and_then(Value::as_object)
        .context("no threads")?
    {
        say(format_args!(
            "  {thread:<16} {:.3} % of a core, {:.2} wake-ups a second",
            number(costs, "percent")?,
            number(costs, "wakes_per_second")?
        ));
    }
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    let (percent, anonymous_bytes) = (number(&figures, "percent")?, integer("anonymous_bytes")?);
    let meets_core_budget = percent <= MAX_CORE_PERCENT;
    let meets_memory_budget = anonymous_bytes <= MAX_ANONYMOUS_BYTES;
    say(format_args!(
        "  all: {percent:.3} % of a core (budget {MAX_CORE_PERCENT} %: {}), {:.2} wake-ups a second, {} calls of the API server",
        verdict(meets_core_budget),
        number(&figures, "wakes_per_second")?,
        integer("calls")?
    ));
    let in_megabytes = |bytes: u64| {
        let tenths = bytes / 100_000;
        format!("{}.{} MB", tenths / 10, tenths % 10)
    };
    say(format_args!(
        "  its own memory: {} (budget {} MB: {}); with its program's pages {}, at most {}",
        in_megabytes(anonymous_bytes),
        MAX_ANONYMOUS_BYTES / 1_000_000,
        verdict(meets_memory_budget),
        in_megabytes(integer("resident_bytes")?),
        in_megabytes(integer("peak_bytes")?)
    ));
    if options.strict && !(meets_core_budget && meets_memory_budget) {
        bail!("an idle agent misses a budget");
    }
    Ok(())
}
