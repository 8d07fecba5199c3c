//! The CUDA tracer on a real GPU: a small program of the bundle, with the tracer in it and with
//! each libcupti that the bundle carries, counts what it launches. Every item has its time, and one
//! that fails stops no other.

mod agent;
mod bare;
mod cost;
mod ends;
mod item;
mod mps;
mod place;
mod program;
mod records;
mod report;
mod tally;
mod torch;
mod until;
mod windows;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::findings::Findings as _;
use crate::machine;
use item::{Ended, Found, Item};
use place::Setup;
use report::TracerResults;
use until::Until;

/// How the tracer is tried.
#[derive(Debug, Args)]
pub(crate) struct TracerOptions {
    /// Where results.json and results.md go.
    #[arg(long, default_value = "results-tracer")]
    output: PathBuf,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Only items whose names have one of these in them.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Minutes that all items may take together.
    #[arg(long, default_value_t = 20)]
    minutes: u64,
    /// Milliseconds for which a pace is measured.
    #[arg(long, default_value_t = 2000)]
    pace_ms: u64,
    /// Records of nodes of graphs in one window.
    #[arg(long, default_value_t = 30_000_000)]
    records: u64,
    /// Kernels of a graph.
    #[arg(long, default_value_t = 1000)]
    nodes: u64,
    /// Windows one after the other.
    #[arg(long, default_value_t = 200)]
    switches: u64,
    /// The folder of the copies of libcupti; beside this program by default.
    #[arg(long)]
    cupti: Option<PathBuf>,
    /// The folder of a stand-in for the driver: a rehearsal.
    #[arg(long)]
    driver: Option<PathBuf>,
    /// Fail where there is no GPU, instead of checking what can be checked without.
    #[arg(long)]
    require_gpu: bool,
}

/// How long a program may take to begin CUDA.
const BEGIN_TIMEOUT: Duration = Duration::from_mins(1);

/// Tries every item, and writes the results behind each.
pub(crate) fn check(options: &TracerOptions) -> Result<()> {
    let own = std::env::current_exe()?;
    let bundle = own.parent().context("this program lies in no folder")?.to_owned();
    let cupti = options.cupti.clone().unwrap_or_else(|| bundle.join("cupti"));
    let mut setup = Setup {
        releases: place::releases(&cupti)?,
        bundle,
        driver: options.driver.clone(),
        version: 0,
        python: options.python.clone(),
        pace_ms: options.pace_ms,
        records: options.records,
        nodes: options.nodes.max(1),
        switches: options.switches,
    };
    let begun = setup.ask_version(Until::after(BEGIN_TIMEOUT))?;
    let mut results = TracerResults {
        version: 1,
        machine: machine::describe(),
        driver: begun.as_ref().ok().copied(),
        no_cuda: begun.err(),
        is_rehearsal: options.driver.is_some(),
        items: Vec::new(),
    };
    std::fs::create_dir_all(&options.output)?;
    if let Some(reason) = &results.no_cuda {
        if options.require_gpu {
            bail!("{reason}");
        }
        return results.conclude("the tracer", &options.output);
    }
    let all = Until::after(Duration::from_secs(options.minutes.saturating_mul(60)));
    let wanted = |item: &Item<'_>| options.only.is_empty() || options.only.iter().any(|part| item.name.contains(part));
    let items: Vec<Item<'_>> = items(&setup).into_iter().filter(wanted).collect();
    if items.is_empty() {
        bail!("no item has one of {:?} in its name", options.only);
    }
    for item in items {
        let result = item.run(all);
        eprintln!("{}: {}", result.name, result.outcome());
        results.items.push(result);
        results.write(&options.output)?;
    }
    results.conclude("the tracer", &options.output)
}

/// The items, the ones first that the others stand on.
fn items(setup: &Setup) -> Vec<Item<'_>> {
    type Work = fn(&Setup, Until, &mut Found) -> Result<Ended>;
    let mut items = Vec::new();
    for release in &setup.releases {
        items.push(Item {
            name: format!("libcupti {} without the tracer", release.name),
            limit: Duration::from_secs(30),
            work: Box::new(move |until, found| bare::of_release(setup, release, until, found)),
        });
    }
    for release in &setup.releases {
        items.push(Item {
            name: format!("libcupti {}", release.name),
            limit: Duration::from_mins(1),
            work: Box::new(move |until, found| windows::of_release(setup, release, until, found)),
        });
    }
    let others: [(&str, u64, Work); 8] = [
        ("windows one after the other", 120, windows::switches),
        ("durations beside CUDA's events", 60, windows::durations),
        ("ends in a window", 120, ends::in_window),
        ("PyTorch's profiler", 150, torch::in_turns),
        ("cost of kernels", 90, cost::eager),
        ("cost of graphs", 90, cost::graphs),
        ("two programs by MPS", 90, mps::two_programs),
        ("millions of records", 300, records::many),
    ];
    for (name, seconds, work) in others {
        items.push(Item {
            name: name.to_owned(),
            limit: Duration::from_secs(seconds),
            work: Box::new(move |until, found| work(setup, until, found)),
        });
    }
    items
}
