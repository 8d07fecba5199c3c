//! Checks the GPU's part of Flopwatch on a machine that has one. `cargo xtask gpu-check` makes the
//! bundle that holds it.

mod child;
mod counters;
mod equality;
mod findings;
mod graft;
mod machine;
mod nvml;
mod pipeline;
mod profilers;
mod report;
mod tracer;
mod work;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use flopwatch_attach::reexec;

use findings::Findings as _;
use report::Results;

/// Compares the transform on the GPU with that of the processor, times both, and reads the driver
/// through the agent's code.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Sizes in events.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000, 10_000_000, 100_000_000])]
    sizes: Vec<u64>,
    /// Where results.json and results.md go.
    #[arg(long, default_value = "results")]
    output: PathBuf,
    /// The Python that has CuPy.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The CuPy pipeline; beside this program by default.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// Fail where there is no GPU, instead of checking what can be checked without.
    #[arg(long)]
    require_gpu: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the transform on the GPU once and prints nothing: what ncu profiles.
    Kernels {
        /// Size in events.
        #[arg(default_value_t = 1_000_000)]
        events: u64,
    },
    /// Runs the transform on the GPU again and again and says how far it is: a small CUDA program
    /// to be captured.
    Work {
        /// Size in events.
        events: u64,
        /// Length of the run, in seconds.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
    /// Grafts programs with CUDA tracing and captures them; in the bundle that carries Nsight
    /// Systems.
    Graft(graft::GraftOptions),
    /// Records programs by the agent's other profilers: Kineto, JAX, Nsight Compute, and GPM.
    Profilers(profilers::ProfilersOptions),
    /// Tries the CUDA tracer; in the bundle that carries copies of libcupti.
    Tracer(tracer::TracerOptions),
}

fn main() -> ExitCode {
    // As in the agent: the attach library starts this program again to change namespaces or users.
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = arguments.first().and_then(|first| first.to_str()).unwrap_or_default();
    if reexec::SUBCOMMANDS.contains(&first) {
        return reexec::child_main(&arguments);
    }
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Some(Command::Kernels { events }) => return equality::on_gpu_once(events),
        Some(Command::Work { events, seconds }) => return work::run(events, seconds),
        Some(Command::Graft(options)) => return graft::check(&options),
        Some(Command::Profilers(options)) => return profilers::check(&options),
        Some(Command::Tracer(options)) => return tracer::check(&options),
        None => {}
    }
    let mut results = Results::new(machine::describe());
    let gpu = results.machine.gpu.is_some();
    if !gpu && cli.require_gpu {
        bail!("{}", results.machine.no_gpu.unwrap_or_default());
    }
    for events in &cli.sizes {
        eprintln!("{events} events ...");
        results.sizes.push(equality::check(*events, gpu)?);
        if gpu && let Some(size) = results.sizes.last_mut() {
            size.cupy = Some(pipeline::run(&cli.python, cli.pipeline.as_deref(), *events)?);
        }
    }
    let largest = cli.sizes.iter().copied().filter(|events| *events <= 1_000_000).max();
    results.files = Some(equality::files(largest.unwrap_or(100_000), gpu)?);
    results.auto = Some(equality::auto(cli.sizes.iter().copied().max().unwrap_or_default())?);
    results.nvml = Some(nvml::read(gpu)?);
    if gpu {
        results.child = Some(child::run(largest.unwrap_or(100_000))?);
        std::fs::create_dir_all(&cli.output)?;
        results.counters = Some(counters::profile(&cli.output)?);
    }
    results.conclude("the GPU's part", &cli.output)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    const PAGE: &str = include_str!("../../../docs/gpu-results.md");

    #[test]
    fn each_check_writes_its_results_where_the_page_says() {
        let cli = Cli::command();
        let mut checks = 0;
        for command in cli.get_subcommands().chain([&cli]) {
            let output = command.get_arguments().find(|argument| argument.get_id() == "output");
            let Some(output) = output else { continue };
            let folder = output.get_default_values()[0].as_os_str().to_string_lossy();
            assert!(
                PAGE.contains(&format!("`{folder}/")),
                "{folder} of {}",
                command.get_name()
            );
            checks += 1;
        }
        assert_eq!(checks, 4);
    }
}
