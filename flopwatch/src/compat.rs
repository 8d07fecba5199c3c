//! `flame`, `timeline`, `hta`, `memory`, `compile`: analyses under the names of an earlier
//! profiling suite. A file of theirs is HTML unless its name says otherwise, and so is what is
//! piped on; a terminal gets tables.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use flopwatch_analysis::Analysis;
use flopwatch_analysis::analyses::flame_graph::FlameGraphAnalysis;

use crate::analyze;
use crate::arguments::{AnalyzeArguments, PrintArguments, ResultFormat, SourceArguments};

/// What `--help` prints after the options of a report.
const FORMATS: &str =
    "Without --format a terminal gets tables; a pipe, and a file whose name promises no other format, get HTML.";

/// A report that the earlier suite had a command for.
#[derive(Debug, Subcommand)]
pub enum CompatCommand {
    /// Write the flame graph of a capture: time of GPUs, or with `-p weight=cpu` of the CPU, by
    /// stack.
    #[command(after_help = FORMATS)]
    Flame(ReportArguments),
    /// Write when the CPU and GPUs of a capture were active: `analyze profiler-timeline` under its
    /// name in an earlier suite.
    #[command(after_help = FORMATS)]
    Timeline(ReportArguments),
    /// Write what the GPUs of a capture did with their time: `analyze profiler-hta` under its name
    /// in an earlier suite.
    #[command(after_help = FORMATS)]
    Hta(ReportArguments),
    /// Write how much memory of GPUs was allocated over the time of a capture: `analyze
    /// profiler-memory` under its name in an earlier suite.
    #[command(after_help = FORMATS)]
    Memory(ReportArguments),
    /// Write what torch.compile did in a capture, its graph breaks, time and fusions: `analyze
    /// profiler-compile` under its name in an earlier suite.
    #[command(after_help = FORMATS)]
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
    /// Write JSON, as --format json does.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// How the report is printed: by default as tables on a terminal, and as HTML elsewhere.
    #[command(flatten)]
    pub print: PrintArguments,
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
    let mut print = arguments.print;
    if arguments.json {
        print.format = Some(ResultFormat::Json);
    } else if print.format.is_none() {
        // A file whose name promises a format has that one.
        let is_for_people = match &print.output {
            Some(output) => analyze::of_name(output).is_some(),
            None => std::io::stdout().is_terminal(),
        };
        print.format = (!is_for_people).then_some(ResultFormat::Html);
    }
    let arguments = AnalyzeArguments {
        name: Some(analysis.to_owned()),
        files: std::iter::once(arguments.file).chain(arguments.with).collect(),
        list: false,
        parameters: arguments.parameters,
        print,
        source: arguments.source,
    };
    analyze::run(arguments, until).await
}
