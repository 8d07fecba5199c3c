//! `flame`, `timeline`, `hta`, `memory`, `compile`: analyses under the names of an earlier profiling suite, as HTML unless JSON is asked for.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use flopwatch_analysis::Analysis;
use flopwatch_analysis::analyses::flame_graph::FlameGraphAnalysis;

use crate::analyze;
use crate::arguments::{AnalyzeArguments, ResultFormat, SourceArguments};

/// A report that the earlier suite had a command for.
#[derive(Debug, Subcommand)]
pub enum CompatCommand {
    /// Write the flame graph of a capture: time of GPUs, or with `-p weight=cpu` of the CPU, by
    /// stack.
    Flame(ReportArguments),
    /// Write when the CPU and GPUs of a capture were active.
    Timeline(ReportArguments),
    /// Write what the GPUs of a capture did with their time.
    Hta(ReportArguments),
    /// Write how much memory of GPUs was allocated over the time of a capture.
    Memory(ReportArguments),
    /// Write what torch.compile did in a capture: graph breaks, time, fusions.
    Compile(ReportArguments),
}

/// Arguments of every report.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// The capture: any file that `convert` reads.
    #[arg(value_name = "TRACE")]
    pub file: PathBuf,
    /// A further capture, where the analysis takes several; may be repeated: `compile` holds one of
    /// the eager program beside.
    #[arg(long, value_name = "TRACE")]
    pub with: Vec<PathBuf>,
    /// The file to write; it appears whole or not at all [default: standard output].
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Write JSON in place of HTML.
    #[arg(long)]
    pub json: bool,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// A parameter of the analysis, as NAME=VALUE; may be repeated.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// How to read the capture.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Runs the analysis of a report, and gives what to print. `until` ends the work early.
pub async fn run(command: CompatCommand, until: impl Future<Output = ()>) -> Result<String, analyze::Error> {
    let (analysis, arguments) = match command {
        CompatCommand::Flame(arguments) => (FlameGraphAnalysis::NAME, arguments),
        CompatCommand::Timeline(arguments) => ("profiler-timeline", arguments),
        CompatCommand::Hta(arguments) => ("profiler-hta", arguments),
        CompatCommand::Memory(arguments) => ("profiler-memory", arguments),
        CompatCommand::Compile(arguments) => ("profiler-compile", arguments),
    };
    let ReportArguments {
        file,
        with,
        output,
        json,
        force,
        parameters,
        source,
    } = arguments;
    let arguments = AnalyzeArguments {
        name: Some(analysis.to_owned()),
        files: std::iter::once(file).chain(with).collect(),
        list: false,
        parameters,
        format: Some(if json { ResultFormat::Json } else { ResultFormat::Html }),
        output,
        force,
        source,
    };
    analyze::run(arguments, until).await
}
