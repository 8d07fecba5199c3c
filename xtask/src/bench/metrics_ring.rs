//! What the metrics ring costs with eight GPUs, and how long its gaps are.

use super::load;
use crate::setup;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use serde_json::{Map, Value};
use std::time::Duration;

/// Most percent of a core of all threads that sample.
const CORE: f64 = 0.5;
/// Longest pause between two rounds in ms.
const GAP: u64 = 200;
/// Longest time without the ring.
const MAX_BASELINE_DURATION: Duration = Duration::from_mins(5);
/// Time that the program takes beside what it measures.
const EXTRA_TIMEOUT: Duration = Duration::from_mins(2);

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct MetricsRingOptions {
    /// Seconds with the ring, after a third of them, five minutes at most, without; 3600 are an
    /// hour.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..=86_400))]
    seconds: u32,
    /// Containers that run, eight of them on GPUs of their own.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(8..=256))]
    containers: u32,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
}

/// Builds what is measured, and measures it.
pub(crate) fn run(cache: &Cache, options: &MetricsRingOptions) -> Result<()> {
    step("setting up", || setup::basic(cache))?;
    let library = step("building the tests' NVML", || {
        project::build_library("flopwatch-fake-nvml", "flopwatch_fake_nvml")
    })?;
    let bench = || -> Result<Run> {
        let run = project::cargo()?.env("FLOPWATCH_FAKE_NVML_LIBRARY", &library);
        Ok(run.args(["bench", "--quiet", "-p", "flopwatch-agent", "--bench", "metrics_ring"]))
    };
    step("building the program", || bench()?.arg("--no-run").quiet())?;
    let time = Duration::from_secs(options.seconds.into());
    let run = bench()?
        .arg("--")
        .args([options.seconds, options.containers].map(|number| number.to_string()));
    let said = run.deadline(time + MAX_BASELINE_DURATION + EXTRA_TIMEOUT).output()?;
    let line = said.lines().find(|line| line.starts_with('{'));
    let found: Value = serde_json::from_str(line.with_context(|| format!("no figures in {said:?}"))?)?;
    let figure = |name: &str| found.get(name).and_then(Value::as_u64).context("a figure is missing");
    let shares = |of: &str| found.get(of).and_then(Value::as_object).context("a figure is missing");
    let sum = |shares: &Map<String, Value>| shares.values().filter_map(Value::as_f64).sum::<f64>();
    let with = shares("with")?;
    let gaps = shares("longest_gap_ms")?;
    let gap = gaps.values().filter_map(Value::as_u64).max().context("no gaps")?;
    say(format_args!(
        "the metrics ring with 8 GPUs and {} containers, {} s ({})",
        options.containers,
        options.seconds,
        load()
    ));
    for (thread, share) in with {
        say(format_args!("  {thread:<16} {share:.3} % of a core"));
    }
    say(format_args!(
        "  without the ring: {:.3} % of a core",
        sum(shares("without")?)
    ));
    for source in ["nvml", "cgroup"] {
        let of = |of: &Map<String, Value>| of.get(source).cloned().unwrap_or_default();
        say(format_args!(
            "  {source}: {}, longest gap {} ms, {} samples missed",
            found.get(source).unwrap_or(&Value::Null),
            of(gaps),
            of(shares("missed_samples")?)
        ));
    }
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    let (cheap, steady) = (sum(with) <= CORE, gap <= GAP);
    say(format_args!(
        "  with the ring: {:.3} % of a core (budget {CORE} %: {})",
        sum(with),
        verdict(cheap)
    ));
    say(format_args!(
        "  longest gap: {gap} ms (budget {GAP} ms: {}), {} samples after gaps above that; {} ms of a thread that only sleeps",
        verdict(steady),
        figure("gaps_above_two_rounds")?,
        figure("sleeper_gap_ms")?
    ));
    if options.strict && !(cheap && steady) {
        bail!("the metrics ring misses a budget");
    }
    Ok(())
}
