//! What the Python package costs as pip installs it: a region beside work of several lengths, and a
//! file as frames of polars beside the engine alone.

use super::{Figures, agree, best, build, convert, load, measure};
use crate::wheel::{self, WheelOptions};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::{Cache, remove};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::wheel::Requirements;
use flopwatch_toolchain::{project, torch};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Most us of an empty region while the profiler is on, and while it is off.
const BUDGETS: [(&str, f64); 2] = [("on", 5.0), ("off", 1.0)];
/// Most times the engine's own time until frames of polars are there.
const FRAMES: f64 = 1.5;

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct PythonOptions {
    /// How often each side reads the file, in turns; the fastest counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// The package's wheel [default: it is built as it is handed out].
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
}

/// Where the package and the scripts are.
struct Rig {
    site: PathBuf,
    scripts: PathBuf,
}

impl Rig {
    fn new(cache: &Cache, wheel: Option<&Path>) -> Result<Self> {
        let folder = cache.root().join("bench/python");
        let wheel = match wheel {
            Some(wheel) => wheel.to_owned(),
            None => step("building the wheel", || {
                wheel::build(cache, &WheelOptions::HANDED_OUT, &folder.join("wheel"))
            })?,
        };
        let site = folder.join("site");
        remove(&site)?;
        let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"];
        Run::new("python3").args(pip).arg(&site).arg(&wheel).quiet()?;
        Ok(Self {
            site,
            scripts: project::root()?.join("python/bench"),
        })
    }

    /// A script of ours with the package, and with what rivals tell their figures by.
    fn run(&self, python: &Path, script: &str) -> Result<Run> {
        let rivals = project::root()?.join("trace/bench/rivals");
        let path = std::env::join_paths([&self.site, &rivals])?;
        Ok(Run::new(python).arg(self.scripts.join(script)).env("PYTHONPATH", path))
    }
}

/// Builds what is measured, and measures it.
pub(crate) fn run(cache: &Cache, options: &PythonOptions) -> Result<()> {
    let rig = Rig::new(cache, options.wheel.as_deref())?;
    let mut missed = regions(cache, &rig)?;
    missed.extend(frames(cache, &rig, options.rounds)?);
    if options.strict && !missed.is_empty() {
        bail!("budgets missed: {}", missed.join(", "));
    }
    Ok(())
}

/// What regions cost; gives what was missed.
fn regions(cache: &Cache, rig: &Rig) -> Result<Vec<String>> {
    torch::ensure(cache)?;
    let python = torch::find(cache).context("there is no PyTorch")?;
    let line = step("regions", || rig.run(&python, "regions.py")?.output())?;
    let costs: Vec<Value> = serde_json::from_str(line.trim()).with_context(|| format!("no figures in {line:?}"))?;
    say(format_args!(
        "a region beside work, us: least, median and most of the blocks' medians, less contextlib.nullcontext ({})",
        load()
    ));
    let mut missed = Vec::new();
    for cost in costs {
        let number = |name: &str| cost.get(name).and_then(Value::as_f64).context("a figure is missing");
        let kind = cost.get("kind").and_then(Value::as_str).context("a kind is missing")?;
        let (work, least) = (number("work_ms")?, number("least_us")?);
        let budget = BUDGETS.iter().find(|(of, _)| *of == kind && work <= 0.0);
        let verdict = match budget {
            None => String::new(),
            Some((_, most)) if least <= *most => format!(" (budget {most}: met)"),
            Some((_, most)) => {
                missed.push(format!("an empty region, {kind}"));
                format!(" (budget {most}: MISSED)")
            }
        };
        say(format_args!(
            "  {work:>6} ms  {kind:<32} {least:>7.2} {:>7.2} {:>7.2}{verdict}",
            number("median_us")?,
            number("most_us")?
        ));
    }
    Ok(missed)
}

/// An export of ten million events, and the timeline file of it, until they are frames; gives what
/// was missed.
fn frames(cache: &Cache, rig: &Rig, rounds: u32) -> Result<Vec<String>> {
    let engine = step("building the bench program", build)?;
    let python = Requirements::BenchPolars.environment(cache)?.join("bin/python3");
    let folder = cache.root().join("bench/python");
    let export = step("input", || convert::large().input.file(&engine, &folder))?.context("no input")?;
    let timeline = folder.join("timeline.h5");
    step("its timeline file", || {
        Run::new(&engine).arg("convert").args([&export, &timeline]).quiet()
    })?;
    let mut missed = Vec::new();
    for (what, file) in [("an export of Nsight Systems", export), ("a timeline file", timeline)] {
        let (mut own, mut framed): (Option<Figures>, Option<Figures>) = (None, None);
        for _ in 0..rounds.max(1) {
            best(
                &mut own,
                measure("the engine", Run::new(&engine).arg("open").arg(&file))?,
            );
            best(
                &mut framed,
                measure("Python", rig.run(&python, "frame.py")?.arg(&file))?,
            );
        }
        let (own, framed) = (own.context("no run")?, framed.context("no run")?);
        agree(what, &framed, &own)?;
        let times = framed.seconds / own.seconds;
        let word = if times <= FRAMES { "met" } else { "MISSED" };
        say(format_args!(
            "10 M events, {what}, to frames of polars ({}): {:.3} s, {:.3} s of processors, peak {} MB; the engine alone {:.3} s, {:.3} s of processors, peak {} MB",
            load(),
            framed.seconds,
            framed.cpu_seconds(),
            framed.peak_bytes / 1_000_000,
            own.seconds,
            own.cpu_seconds(),
            own.peak_bytes / 1_000_000
        ));
        say(format_args!(
            "  {times:.2} times the engine's time (budget {FRAMES}: {word})"
        ));
        if times > FRAMES {
            missed.push(format!("{what} to frames"));
        }
    }
    Ok(missed)
}
