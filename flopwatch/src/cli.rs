//! The command line.

mod help;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use flopwatch_pipeline::children::ChildCommand;
use flopwatch_trace::FORMATS;

#[cfg(feature = "mcp")]
use self::help::MCP_HELP;
use self::help::{ANALYZE_HELP, COMPARE_HELP, DIAGNOSE_HELP, EXPORT_HELP, FIRST_STEPS, OPEN_HELP, RECORD_HELP};
#[cfg(feature = "mcp")]
use crate::arguments::McpArguments;
use crate::arguments::{
    AnalyzeArguments, CompareArguments, ConvertArguments, DiagnoseArguments, ExportArguments, OpenArguments,
    RecordArguments, ServeArguments, SummaryArguments,
};
use crate::compat::CompatCommand;

/// Flopwatch for one machine: records GPU programs, reads captures of profilers, tells what makes
/// them slow. Needs no cluster.
#[derive(Debug, Parser)]
#[command(name = "flopwatch", version, about, max_term_width = 100)]
#[command(after_help = FIRST_STEPS)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Profile a local command with Nsight Systems or the CUDA tracer; needs no cluster.
    #[command(after_help = RECORD_HELP)]
    Record(RecordArguments),
    /// Print the tables of a capture.
    #[command(after_help = FORMATS)]
    Summary(SummaryArguments),
    /// Make a timeline file (HDF5) of a capture.
    #[command(after_help = FORMATS)]
    Convert(ConvertArguments),
    /// Write a capture in the format of another program.
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArguments),
    /// Run an analysis of the catalogue on one or more captures.
    #[command(after_help = ANALYZE_HELP)]
    Analyze(AnalyzeArguments),
    /// Compare two captures, before and after a change, and say by the exit code whether it is a
    /// regression.
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArguments),
    /// Tell what makes a capture slow, why, and what to do.
    #[command(after_help = DIAGNOSE_HELP)]
    Diagnose(DiagnoseArguments),
    /// A report under the name of an earlier suite.
    #[command(flatten)]
    Compat(CompatCommand),
    /// Show captures in the browser: serve them on loopback, as `serve` does, until Ctrl-C.
    #[command(after_help = OPEN_HELP)]
    Open(OpenArguments),
    /// Serve captures with the viewer on loopback.
    #[command(after_help = FORMATS)]
    Serve(ServeArguments),
    /// Serve captures to an agent: the Model Context Protocol on standard input and output.
    #[cfg(feature = "mcp")]
    #[command(after_help = MCP_HELP)]
    Mcp(McpArguments),
    /// Print a completion script for a shell.
    Completion {
        /// Shell that the script is for.
        shell: Shell,
    },
}

/// The command line of the children that this program runs itself as in a sandbox. It stands apart
/// from people's: nothing of it is offered where a word is mistyped.
#[derive(Debug, Parser)]
struct ChildCli {
    /// What the child does.
    #[command(subcommand)]
    command: ChildCommand,
}

/// What a command line, the program's name first, asks of a child of this program; `None` of any
/// other.
pub fn child(line: &[OsString]) -> Option<ChildCommand> {
    let name = line.get(1)?.to_str()?;
    ChildCommand::has_subcommand(name).then(|| ChildCli::parse_from(line).command)
}
