//! What an agent costs that has nothing to do.

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

const AGENT: &str = "flopwatch-agent";
/// Most percent of a core.
const CORE: f64 = 0.2;
/// Most memory in bytes.
const MEMORY: u64 = 25_000_000;
/// Time that the program takes beside what it measures.
const BESIDE: Duration = Duration::from_mins(2);

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

/// Builds what is measured, and measures it.
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
        // It starts the agent and waits.
        Ok(run.args(["bench", "--quiet", "--profile", "dev", "-p", AGENT, "--bench", "idle"]))
    };
    step("building what watches it", || bench()?.arg("--no-run").quiet())?;
    let numbers = [options.seconds, options.containers, options.gpus].map(|number| number.to_string());
    let run = bench()?.arg("--").arg(&program).args(numbers);
    let said = run
        .deadline(Duration::from_secs(options.seconds.into()) + BESIDE)
        .output()?;
    let line = said.lines().find(|line| line.starts_with('{'));
    let found: Value = serde_json::from_str(line.with_context(|| format!("no figures in {said:?}"))?)?;
    let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_f64).context("a figure is missing");
    let bytes = |name: &str| found.get(name).and_then(Value::as_u64).context("a figure is missing");
    say(format_args!(
        "an idle agent on a node with {} containers and {} GPUs, {} s ({})",
        options.containers,
        options.gpus,
        options.seconds,
        load()
    ));
    for (thread, of) in found.get("threads").and_then(Value::as_object).context("no threads")? {
        say(format_args!(
            "  {thread:<16} {:.3} % of a core, {:.2} wake-ups a second",
            number(of, "percent")?,
            number(of, "wakes_per_second")?
        ));
    }
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    let (percent, anonymous) = (number(&found, "percent")?, bytes("anonymous_bytes")?);
    let (cheap, small) = (percent <= CORE, anonymous <= MEMORY);
    say(format_args!(
        "  all: {percent:.3} % of a core (budget {CORE} %: {}), {:.2} wake-ups a second, {} calls of the API server",
        verdict(cheap),
        number(&found, "wakes_per_second")?,
        bytes("calls")?
    ));
    let megabytes = |bytes: u64| bytes / 100_000;
    let told = |bytes: u64| format!("{}.{} MB", megabytes(bytes) / 10, megabytes(bytes) % 10);
    say(format_args!(
        "  its own memory: {} (budget {} MB: {}); with its program's pages {}, at most {}",
        told(anonymous),
        MEMORY / 1_000_000,
        verdict(small),
        told(bytes("resident_bytes")?),
        told(bytes("peak_bytes")?)
    ));
    if options.strict && !(cheap && small) {
        bail!("an idle agent misses a budget");
    }
    Ok(())
}
