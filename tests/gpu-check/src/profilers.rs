//! The agent's profilers that need a GPU and no Nsight Systems: Kineto and JAX on demand, Nsight
//! Compute, and GPM; and the regions of the Python package. The agent's own code records; programs
//! stand where a node has containers.

mod container;
mod gpm;
mod ncu;
mod on_demand;
mod regions;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_model::{Capture, Events};
use serde::Serialize;

use crate::findings::Findings as _;
use crate::machine;
use report::ProfilersResults;

/// How the profilers are checked.
#[derive(Debug, Args)]
pub(crate) struct ProfilersOptions {
    /// Where results.json and results.md go.
    #[arg(long, default_value = "results-profilers")]
    output: PathBuf,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The Python that has JAX; by default the same.
    #[arg(long)]
    jax_python: Option<PathBuf>,
    /// Length of a capture in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Fail where there is no GPU, instead of checking what can be checked without.
    #[arg(long)]
    require_gpu: bool,
}

/// What came of one profiler.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ProfilerResult {
    pub(crate) profiler: String,
    /// Key of [`Self::found`] that the profiler must have found.
    pub(crate) holds: String,
    /// Why it was not tried.
    pub(crate) not_run: Option<String>,
    /// Why this machine has no such thing, in the agent's words.
    pub(crate) closed: Option<String>,
    /// What failed.
    pub(crate) failed: Option<String>,
    /// What it found: events by category, counters by kernel, points by metric.
    pub(crate) found: BTreeMap<String, u64>,
}

/// How a profiler's try ended, where nothing failed.
enum Outcome {
    Found(BTreeMap<String, u64>),
    NotRun(String),
    Closed(String),
}

impl ProfilerResult {
    fn new(profiler: &str, holds: &str, outcome: Result<Outcome>) -> Self {
        let mut result = Self {
            profiler: profiler.to_owned(),
            holds: holds.to_owned(),
            ..Self::default()
        };
        match outcome {
            Ok(Outcome::Found(found)) => result.found = found,
            Ok(Outcome::NotRun(reason)) => result.not_run = Some(reason),
            Ok(Outcome::Closed(reason)) => result.closed = Some(reason),
            Err(error) => result.failed = Some(format!("{error:#}")),
        }
        result
    }

    /// What came of it, on one line.
    pub(crate) fn outcome(&self) -> String {
        let ends = [
            ("not run", &self.not_run),
            ("closed on this machine", &self.closed),
            ("FAILED", &self.failed),
        ];
        let ended = ends
            .into_iter()
            .find_map(|(word, reason)| Some(format!("{word}: {}", reason.as_ref()?.replace('\n', " "))));
        ended.unwrap_or_else(|| {
            let counts = self.found.iter().map(|(what, count)| format!("{what} {count}"));
            counts.collect::<Vec<_>>().join(", ")
        })
    }

    /// Whether it found what it must, as far as it ran.
    pub(crate) fn passed(&self) -> bool {
        let holds = || self.found.get(&self.holds).is_some_and(|count| *count > 0);
        self.failed.is_none() && (self.not_run.is_some() || self.closed.is_some() || holds())
    }
}

/// Checks every profiler that can run here, and writes the results.
pub(crate) fn check(options: &ProfilersOptions) -> Result<()> {
    let own = std::env::current_exe()?;
    let bundle = own.parent().context("this program lies in no folder")?;
    let machine = machine::describe();
    let gpu = machine.gpu.is_some();
    if options.require_gpu && !gpu {
        bail!("{}", machine.no_gpu.unwrap_or_default());
    }
    std::fs::create_dir_all(&options.output)?;
    let mut results = ProfilersResults::new(machine);
    let frameworks = if gpu { "cuda_kernel" } else { "cpu_op" };
    let jax = if gpu { "cuda_kernel" } else { on_demand::ANY };
    let mut note = |profiler: &str, holds: &str, outcome: Result<Outcome>| {
        let result = ProfilerResult::new(profiler, holds, outcome);
        eprintln!("{profiler}: {}", result.outcome());
        results.profilers.push(result);
    };
    note("Kineto", frameworks, on_demand::kineto(options, bundle, gpu));
    note("Jax", jax, on_demand::jax(options, bundle, gpu));
    note("Ncu", ncu::KERNELS, ncu::profile(options, bundle, &own, gpu));
    note("GPM", gpm::SM_ACTIVITY, gpm::read(gpu));
    for (framework, marks) in [("pytorch", true), ("cupy", true), ("jax", false)] {
        let holds = if gpu && marks {
            regions::GPU_TIMES
        } else {
            regions::CALLS
        };
        let measured = regions::measure(options, bundle, framework, gpu);
        note(&format!("regions, {framework}"), holds, measured);
    }
    results.conclude("a profiler", &options.output)
}

/// Events of a capture, by category.
fn events(capture: &Capture) -> BTreeMap<String, u64> {
    let count = |events: &Events| u64::try_from(events.len()).unwrap_or(u64::MAX);
    let by_category = capture.events.iter();
    by_category
        .map(|(category, events)| (category.name().to_owned(), count(events)))
        .collect()
}

/// A path as text of a command line.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
