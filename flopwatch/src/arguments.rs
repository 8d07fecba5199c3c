//! What the commands are told: their arguments and options.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use flopwatch_analysis::advice::Severity;
use flopwatch_analysis::export::{ExportFormat, Table};
use flopwatch_api::profiler::{CaptureRange, CudaGraphTrace, parse_capture_range};
use flopwatch_pipeline::{disassembly, tools};
use flopwatch_report::Format;

use crate::source::Source;

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// A ProfilingSession manifest; its target may be left out. Without one: ten seconds of CUDA and NVTX.
    #[arg(short = 'f', long = "file", value_name = "MANIFEST")]
    pub manifest: Option<PathBuf>,
    /// Folder of the results [default: flopwatch-ID in the current folder].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Length of the window in seconds, in place of the manifest's durationSeconds.
    #[arg(short, long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1..=300))]
    pub duration: Option<i32>,
    /// How CUDA graphs are traced: graph (a row per launch) or node (every kernel).
    #[arg(long, value_name = "MODE", value_parser = graph_mode)]
    pub cuda_graph_trace: Option<CudaGraphTrace>,
    /// Record these ranges of the command alone: cuda-profiler-api or nvtx:NAME, with ,xCOUNT behind it for several.
    #[arg(long, value_name = "RANGE", value_parser = parse_capture_range)]
    pub capture_range: Option<CaptureRange>,
    /// Sample hardware counters of the GPUs, so often in a second [default: 10000].
    #[arg(long, value_name = "HERTZ", num_args = 0..=1, default_missing_value = "10000", value_parser = clap::value_parser!(i32).range(10..=200_000))]
    pub gpu_metrics: Option<i32>,
    /// Loopback address to serve the results on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Do not serve the results: print the summary, wait for the command and exit.
    #[arg(long)]
    pub no_serve: bool,
    /// Rows per table of the printed summary.
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    pub top: usize,
    /// Print nothing while recording.
    #[arg(short, long)]
    pub quiet: bool,
    /// The nsys to use [default: the one on PATH, or Debian's].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NSYS")]
    pub nsys: Option<PathBuf>,
    /// The folder host-linux-x64 that belongs to it [default: found beside it].
    #[arg(long, value_name = "DIR", env = "FLOPWATCH_NSYS_HOST")]
    pub nsys_host: Option<PathBuf>,
    /// The NVML library [default: libnvidia-ml.so.1 where the loader finds it].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NVML")]
    pub nvml_library: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `summary`.
#[derive(Debug, Args)]
pub struct SummaryArguments {
    /// The capture, or a summary.json.
    pub file: PathBuf,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: SummaryFormat,
    /// Rows per table [default: 10 in tables for people, all in CSV]. JSON always has all.
    #[arg(long, value_name = "ROWS")]
    pub top: Option<usize>,
    /// How to read the file.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// Capture to read: a report, an export, a trace or a timeline file.
    pub input: PathBuf,
    /// The timeline file to write, *.h5; it appears whole or not at all.
    pub output: PathBuf,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// Identifier of the session, kept in the file [default: that of the capture, else "local"].
    #[arg(long, value_name = "ID")]
    pub session_id: Option<String>,
    /// How to read the input.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The capture: any file that `convert` reads.
    pub file: PathBuf,
    /// Format to write.
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(ExportFormat::ALL.map(ExportFormat::name)).try_map(named(ExportFormat::from_name)))]
    pub to: ExportFormat,
    /// The file to write; it appears whole or not at all [default: named after the capture, in the current folder].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which table of CSV and Parquet: events or samples.
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(Table::ALL.map(Table::name)).try_map(named(Table::from_name)), default_value = "events")]
    pub table: Table,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// How to read the capture.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `analyze`.
#[derive(Debug, Args)]
pub struct AnalyzeArguments {
    /// The analysis.
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// The captures, in the order that the analysis knows them by: before, then after.
    #[arg(required_unless_present = "list")]
    pub files: Vec<PathBuf>,
    /// List the analyses, or the one that is named; as JSON with the schemas of parameters and results.
    #[arg(long, conflicts_with = "files")]
    pub list: bool,
    /// A parameter, as NAME=VALUE; may be repeated.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// How to write the result [default: tables for a terminal; HTML for an output *.html, CSV for *.csv, JSON for any other; a file
    /// for another program as it is].
    #[arg(long, value_enum)]
    pub format: Option<ResultFormat>,
    /// The file to write; it appears whole or not at all [default: standard output; files for other programs: their own name in the
    /// current folder].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// How to read the captures.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The capture before the change.
    pub before: PathBuf,
    /// The capture after it.
    pub after: PathBuf,
    /// Change of the time of an iteration, in percent, from which on it is a regression or an improvement [default: 5].
    #[arg(long, value_name = "PERCENT")]
    pub threshold_percent: Option<f64>,
    /// What ends with exit code 3.
    #[arg(long, value_enum, default_value_t)]
    pub fail_on: FailOn,
    /// A further parameter of the analysis, as NAME=VALUE; may be repeated.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// How to write the result [default: tables for a terminal; HTML for an output *.html, CSV for *.csv, JSON for any other].
    #[arg(long, value_enum)]
    pub format: Option<ResultFormat>,
    /// The file to write; it appears whole or not at all [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// How to read the captures.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Which verdict ends with exit code 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A regression.
    #[default]
    Regression,
    /// Anything but that nothing changed: a regression, an improvement, and what cannot be told.
    AnyChange,
    /// None.
    Never,
}

/// How the result of an analysis is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResultFormat {
    /// Tables for people.
    #[value(alias = "text")]
    Table,
    /// The result itself.
    Json,
    /// Its tables, with exact numbers, for spreadsheets and scripts.
    Csv,
    /// One file that any browser opens and prints.
    Html,
    /// The tables, charts and key figures as JSON.
    Page,
}

impl ResultFormat {
    /// The same as the catalogue knows it.
    pub const fn format(self) -> Format {
        match self {
            Self::Table => Format::Text,
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            Self::Html => Format::Html,
            Self::Page => Format::Page,
        }
    }
}

/// What clap's checked names are turned into.
fn named<T>(
    from_name: impl Fn(&str) -> Option<T> + Clone + Send + Sync,
) -> impl Fn(String) -> Result<T, &'static str> + Clone + Send + Sync {
    move |name| from_name(&name).ok_or("no such name")
}

/// How foreign files are read.
#[derive(Clone, Debug, Args)]
pub struct SourceArguments {
    /// Longest time in seconds for each step, such as an import or the transform.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Say nothing meanwhile.
    #[arg(short, long)]
    pub quiet: bool,
    /// Read reports of Nsight Systems through an export by an installed nsys, for events that only it reads: OpenACC, OpenMP,
    /// Vulkan, DX.
    #[arg(long)]
    pub nsys_export: bool,
    /// The nsys for raw captures and --nsys-export [default: the one on PATH, or Debian's].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NSYS")]
    pub nsys: Option<PathBuf>,
    /// The folder host-linux-x64 that belongs to it [default: found beside it].
    #[arg(long, value_name = "DIR", env = "FLOPWATCH_NSYS_HOST")]
    pub nsys_host: Option<PathBuf>,
    /// The nvdisasm for machine code in reports of Nsight Compute [default: the one on PATH, or of CUDA's installer].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NVDISASM")]
    pub nvdisasm: Option<PathBuf>,
}

impl SourceArguments {
    /// The file to read, with the tools of this machine.
    pub fn source(self, file: PathBuf, session_id: Option<String>) -> Source {
        let path = std::env::var_os("PATH");
        Source {
            file,
            session_id,
            nsys_export: self.nsys_export,
            tools: tools::find(self.nsys.as_deref(), self.nsys_host.as_deref(), path.as_ref()),
            disassembler: disassembly::find(self.nvdisasm.as_deref(), path.as_ref()),
            limit: Duration::from_secs(self.timeout),
            quiet: self.quiet,
        }
    }
}

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum SummaryFormat {
    /// Tables for people.
    #[default]
    Table,
    /// The artifact itself.
    Json,
    /// A line per row of a table, for spreadsheets and scripts.
    Csv,
}

/// Arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArguments {
    /// The capture: any file that `convert` reads.
    pub file: PathBuf,
    /// Exit with code 3 where a finding is of this severity or a graver one.
    #[arg(long, value_name = "SEVERITY", value_parser = PossibleValuesParser::new(Severity::ALL.map(Severity::as_str)).try_map(named(Severity::from_name)))]
    pub fail_on: Option<Severity>,
    /// Most findings, those that are worth most [default: 50].
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u32>,
    /// How to write the findings [default: as the name of --output ends, else table, and json in other files].
    #[arg(long, value_enum)]
    pub format: Option<ResultFormat>,
    /// The file to write; it appears whole or not at all [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// How to read the capture.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// A folder with timeline.h5, summary.json or capture.nsys-rep in it, or one such file; without one, the viewer alone. Any other capture can be
    /// dropped onto it.
    pub source: Option<PathBuf>,
    /// Loopback address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The nsys for raw captures that are dropped onto the viewer [default: the one on PATH, or Debian's].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NSYS")]
    pub nsys: Option<PathBuf>,
    /// The folder host-linux-x64 that belongs to it [default: found beside it].
    #[arg(long, value_name = "DIR", env = "FLOPWATCH_NSYS_HOST")]
    pub nsys_host: Option<PathBuf>,
}

fn graph_mode(name: &str) -> Result<CudaGraphTrace, String> {
    CudaGraphTrace::from_name(name).ok_or_else(|| "there are graph and node".to_owned())
}
