//! Every recipe that CI runs, runnable by hand: `cargo xtask <recipe>`.

mod bench;
mod codegen;
mod cupti_layouts;
mod demo;
mod gpu_check;
mod in_cluster;
mod lint;
mod lock;
mod oracle;
mod release;
mod setup;
mod soak;
mod test;
mod web;
mod wheel;

use anyhow::Result;
use clap::{Parser, Subcommand};
use flopwatch_cluster as cluster;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::{command, cupti, kernels, progress};
use std::path::PathBuf;
use std::process::ExitCode;

/// Flopwatch's recipes. Built and fetched things are kept in $FLOPWATCH_CACHE (~/.cache/flopwatch).
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    recipe: Recipe,
}

#[derive(Debug, Subcommand)]
enum Recipe {
    /// Install what building and testing needs on a fresh Debian-like machine.
    Setup,
    /// Write generated, committed files anew: the custom resource definitions.
    Codegen,
    /// Build the GPU kernels with the CUDA compiler from PyPI (pinned, kept in the cache).
    Kernels {
        /// Copy the library there.
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// Fetch NVIDIA's libcupti of each major version of CUDA from PyPI (pinned, kept in the cache),
    /// with its license, for the agent's image.
    Cupti {
        /// Copy them into that folder.
        #[arg(long)]
        output: PathBuf,
    },
    /// Hold the headers of a release of CUPTI against the places from which the CUDA tracer reads.
    CuptiLayouts(cupti_layouts::CuptiLayoutsOptions),
    /// Make and check the bundles that are run by hand on a machine with an NVIDIA GPU.
    GpuCheck(gpu_check::GpuCheckOptions),
    /// Check format, lints, documentation, chart and licences.
    Lint,
    /// Lock what recipes take from PyPI: `xtask/toolchain/requirements`.
    Lock(lock::LockOptions),
    /// Build the viewer with Node, for the programs that serve it.
    Web(web::WebOptions),
    /// Run all tests: setup, lint, unit and crate tests, and the whole system in a real cluster.
    Test(test::TestOptions),
    /// Hold what `flopwatch` says of captures against independent readings of the same files.
    Oracle(oracle::OracleOptions),
    /// Build the programs as they are handed out, with their line tables in files of their own.
    Release(release::ReleaseOptions),
    /// Build the Python package as pip installs it, and try it in a clean environment of each
    /// Python of this machine.
    Wheel(wheel::WheelOptions),
    /// Attach to and detach from running workloads a thousand times under random faults, and report
    /// who was harmed.
    Soak(soak::SoakOptions),
    /// Profile a sample program on this machine, without a cluster.
    Demo {
        /// Further options of `flopwatch record`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        record_args: Vec<String>,
    },
    /// Measure the trace engine beside what people use instead; `graft`: what a prepared container
    /// costs.
    Bench(bench::BenchOptions),
    /// Run a real Kubernetes cluster on this machine.
    Cluster {
        /// Use the cluster that KUBECONFIG names instead of a local one.
        #[arg(long, global = true, env = "FLOPWATCH_USE_KUBECONFIG", value_parser = clap::builder::FalseyValueParser::new())]
        use_kubeconfig: bool,
        #[command(subcommand)]
        command: cluster::ClusterCommand,
    },
}

/// Runs the recipe that the command line names, and says why it failed.
pub fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    command::catch_interrupts()?;
    let cache = Cache::open()?;
    match &cli.recipe {
        Recipe::Setup => setup::all(&cache),
        Recipe::Codegen => codegen::run(&cache),
        Recipe::Kernels { output } => kernels::run(&cache, output.as_deref()),
        Recipe::Cupti { output } => cupti::run(&cache, output),
        Recipe::CuptiLayouts(options) => cupti_layouts::run(&cache, options),
        Recipe::GpuCheck(options) => gpu_check::run(&cache, options),
        Recipe::Lint => lint::run(&cache),
        Recipe::Lock(options) => lock::run(&cache, options),
        Recipe::Web(options) => web::run(&cache, options),
        Recipe::Test(options) => test::run(&cache, options),
        Recipe::Oracle(options) => oracle::run(&cache, options),
        Recipe::Release(options) => release::run(options),
        Recipe::Wheel(options) => wheel::run(&cache, options),
        Recipe::Soak(options) => soak::run(&cache, options),
        Recipe::Demo { record_args } => demo::run(&cache, record_args),
        Recipe::Bench(options) => bench::run(&cache, options),
        Recipe::Cluster {
            use_kubeconfig,
            command,
        } => cluster::run(&cache, *use_kubeconfig, command),
    }
}
