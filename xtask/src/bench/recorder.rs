//! What an empty NVTX range costs: with nothing, with the flight recorder, with Nsight Systems,
//! with both.

use super::load;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_recorder::LIBRARY;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::nsys::{self, Nsys};
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Most ns of a range with the recorder alone.
const BUDGET: f64 = 50.0;
/// Threads of each kind of run.
const THREADS: [&str; 2] = ["1", "16"];

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct RecorderOptions {
    /// Rounds, each of one run of every kind; the least figure counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Fail when the budget is missed.
    #[arg(long)]
    strict: bool,
}

/// Who hears of the ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    Nobody,
    Recorder,
    Profiler,
    Both,
}

impl Listener {
    const ALL: [Self; 4] = [Self::Nobody, Self::Recorder, Self::Profiler, Self::Both];

    const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "none",
            Self::Recorder => "flight recorder",
            Self::Profiler => "Nsight Systems",
            Self::Both => "recorder before Nsight Systems",
        }
    }

    /// Ranges of a thread: those of the profiler take long, and are all kept.
    const fn ranges(self) -> &'static str {
        match self {
            Self::Nobody | Self::Recorder => "2000000",
            Self::Profiler | Self::Both => "20000",
        }
    }
}

/// What a run said.
#[derive(Debug, Clone, Copy)]
struct Figures {
    nanoseconds: f64,
    kilobytes: f64,
}

/// The program and everything around it.
struct Rig {
    folder: PathBuf,
    program: PathBuf,
    nsys: PathBuf,
}

/// Builds the program that makes NVTX ranges, in `folder`: its arguments are the number of threads,
/// and of ranges of each.
pub(super) fn ranges_program(nsys: &Nsys, folder: &Path) -> Result<PathBuf> {
    let source = project::root()?.join("xtask/src/bench/recorder/ranges.c");
    let program = folder.join("ranges");
    Run::new("cc")
        .args(["-O2", "-pthread", "-I"])
        .arg(nsys.target.join("nvtx/include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-ldl")
        .quiet()?;
    Ok(program)
}

/// A run of a program under Nsight Systems, which keeps its NVTX ranges in a report at `output`.
pub(super) fn recording_ranges(nsys: &Path, output: &Path) -> Run {
    Run::new(nsys)
        .args(["profile", "--trace", "nvtx", "--sample", "none", "--cpuctxsw", "none"])
        .args(["--force-overwrite", "true", "--output"])
        .arg(output)
}

impl Rig {
    fn new(cache: &Cache) -> Result<Self> {
        let nsys = nsys::ensure(cache)?;
        let folder = cache.root().join("bench/recorder");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("libflopwatch-recorder.so"), LIBRARY)?;
        Ok(Self {
            program: ranges_program(&nsys, &folder)?,
            nsys: nsys.program(),
            folder,
        })
    }

    fn run(&self, listener: Listener, threads: &str) -> Result<Figures> {
        let library = self.folder.join("libflopwatch-recorder.so");
        let program = &self.program;
        let command = match listener {
            Listener::Nobody => Run::new(program).without("NVTX_INJECTION64_PATH"),
            Listener::Recorder => Run::new(program).env("NVTX_INJECTION64_PATH", &library),
            Listener::Profiler => self.profiled().arg(program),
            Listener::Both => {
                let chained = "export FLOPWATCH_NVTX_NEXT=\"$NVTX_INJECTION64_PATH\" NVTX_INJECTION64_PATH=\"$0\" QUADD_INJECTION_PROXY=; exec \"$@\"";
                self.profiled().args(["sh", "-c", chained]).arg(&library).arg(program)
            }
        };
        let said = command
            .env("FLOPWATCH_RECORDER_DIR", &self.folder)
            .args([threads, listener.ranges()])
            .output()?;
        remove(&self.folder.join("recorder.ring"))?;
        let line = said.lines().find(|line| line.starts_with('{'));
        let figures: Value = serde_json::from_str(line.with_context(|| format!("no figures in {said:?}"))?)?;
        let figure = |name: &str| figures.get(name).and_then(Value::as_f64).context("a figure is missing");
        Ok(Figures {
            nanoseconds: figure("ns")?,
            kilobytes: figure("kilobytes")?,
        })
    }

    fn profiled(&self) -> Run {
        recording_ranges(&self.nsys, &self.folder.join("report"))
    }
}

fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Measures every kind by turns, and prints the least of each.
pub(crate) fn run(cache: &Cache, options: &RecorderOptions) -> Result<()> {
    let rig = step("building the program", || Rig::new(cache))?;
    let mut best: Vec<(Listener, &str, Figures)> = Vec::new();
    for _ in 0..options.rounds.max(1) {
        for listener in Listener::ALL {
            for threads in THREADS {
                let figures = rig.run(listener, threads)?;
                let known = best
                    .iter_mut()
                    .find(|(of, with, _)| *of == listener && *with == threads);
                match known {
                    Some((_, _, least)) => least.nanoseconds = least.nanoseconds.min(figures.nanoseconds),
                    None => best.push((listener, threads, figures)),
                }
            }
        }
    }
    say(format_args!("processor time of an empty push and pop ({})", load()));
    let mut missed = false;
    for (listener, threads, figures) in best {
        let is_ours = listener == Listener::Recorder;
        let is_missed = is_ours && figures.nanoseconds > BUDGET;
        missed |= is_missed;
        let verdict = match (is_ours, is_missed) {
            (false, _) => "",
            (true, false) => "  (budget 50 ns: met)",
            (true, true) => "  (budget 50 ns: MISSED)",
        };
        say(format_args!(
            "  {:<32} {threads:>2} threads {:>8.1} ns, resident {:>6} kB{verdict}",
            listener.name(),
            figures.nanoseconds,
            figures.kilobytes
        ));
    }
    if options.strict && missed {
        bail!("the flight recorder misses its budget");
    }
    Ok(())
}
