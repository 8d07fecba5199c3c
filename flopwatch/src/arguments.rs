//! What the commands are told: their arguments and options.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use flopwatch_analysis::advice::Severity;
use flopwatch_analysis::export::{ExportFormat, Table};
use flopwatch_api::profiler::{CaptureRange, CudaGraphTrace, TraceCategory, parse_capture_range};
use flopwatch_model::Category;
use flopwatch_pipeline::{disassembly, tools};
use flopwatch_report::{Format, Layout};

use crate::source::Source;

/// Arguments of `record`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct RecordArguments {
    /// A ProfilingSession manifest; its target may be left out. Without one: ten seconds of CUDA
    /// and NVTX, with the profiler cuda until the command ends.
    #[arg(short = 'f', long = "file", value_name = "MANIFEST")]
    pub manifest: Option<PathBuf>,
    /// What records: nsys (Nsight Systems), or cuda, a library of ours that CUDA loads into the
    /// command [default: nsys].
    #[arg(long, value_enum, value_name = "PROFILER")]
    pub profiler: Option<LocalProfiler>,
    /// Record programs that run already, by the profiler cuda: the file cuda.trace that they share.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub attach_file: Option<PathBuf>,
    /// With --attach-file: the flight recorder's file of the same programs, for their NVTX ranges.
    #[arg(long, value_name = "FILE", requires = "attach_file")]
    pub recorder_file: Option<PathBuf>,
    /// With the profiler cuda: folder of a libcupti, for programs that have loaded none [default:
    /// CUDA's, or Debian's].
    #[arg(long, value_name = "DIR", env = "FLOPWATCH_CUDA_CUPTI")]
    pub cupti: Option<PathBuf>,
    /// Folder of the results [default: flopwatch-ID in the current folder].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace the results of an earlier recording in that folder.
    #[arg(long)]
    pub force: bool,
    /// Length of the window in seconds, in place of the manifest's durationSeconds.
    #[arg(short, long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1..=300))]
    pub duration: Option<i32>,
    /// How CUDA graphs are traced: graph (a row per launch) or node (every kernel).
    #[arg(long, value_name = "MODE", value_parser = graph_mode)]
    pub cuda_graph_trace: Option<CudaGraphTrace>,
    /// Record these ranges of the command alone: cuda-profiler-api or nvtx:NAME, with ,xCOUNT
    /// behind it for several.
    #[arg(long, value_name = "RANGE", value_parser = parse_capture_range)]
    pub capture_range: Option<CaptureRange>,
    /// Sample hardware counters of the GPUs, so often in a second [default: 10000].
    #[arg(long, value_name = "HERTZ", num_args = 0..=1, default_missing_value = "10000", value_parser = clap::value_parser!(i32).range(10..=200_000))]
    pub gpu_metrics: Option<i32>,
    /// Categories of the timeline that must hold events for success, such as
    /// cuda_kernel,os_runtime; they are recorded too [default: what the manifest requires, else
    /// CUDA's of a program that uses CUDA, else nvtx_range].
    #[arg(long, value_delimiter = ',', value_name = "CATEGORY", value_parser = recorded_category)]
    pub require: Vec<Category>,
    /// Loopback address to serve the results on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Do not serve the results: print the summary, wait for the command and exit.
    #[arg(long)]
    pub no_serve: bool,
    /// Rows per table of the printed summary.
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    pub top: usize,
    /// Show names as long as they are and every column, however narrow the terminal is.
    #[arg(long)]
    pub wide: bool,
    /// Print nothing while recording.
    #[arg(short, long)]
    pub quiet: bool,
    /// The nsys to use [default: the one on PATH, Debian's, or that of `cargo xtask demo`].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NSYS")]
    pub nsys: Option<PathBuf>,
    /// The folder host-linux-x64 that belongs to it [default: found beside it].
    #[arg(long, value_name = "DIR", env = "FLOPWATCH_NSYS_HOST")]
    pub nsys_host: Option<PathBuf>,
    /// The NVML library [default: libnvidia-ml.so.1 where the loader finds it].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NVML")]
    pub nvml_library: Option<PathBuf>,
    /// The command and its arguments: all that follows is the command's own. Behind `--` it may
    /// begin with a dash.
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "attach_file",
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

/// What records a command of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocalProfiler {
    /// Nsight Systems.
    Nsys,
    /// The CUDA tracer.
    Cuda,
}

/// Arguments of `summary`.
#[derive(Debug, Args)]
pub struct SummaryArguments {
    /// The capture, or a summary.json.
    pub file: PathBuf,
    /// Rows per table [default: 10 in tables for people, all in CSV]. JSON always has all, and HTML
    /// the first thousand.
    #[arg(long, value_name = "ROWS")]
    pub top: Option<usize>,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArguments,
    /// How to read the file.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// Capture to read: a file of any format that is named below.
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
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(ExportFormat::ALL.iter().map(|format| format.name())).try_map(named(ExportFormat::from_name)))]
    pub to: ExportFormat,
    /// The file to write; it appears whole or not at all [default: named after the capture, in the
    /// current folder].
    #[arg(short, long, value_name = "FILE", value_parser = exported_file())]
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
    /// The analysis, by its name; `--list` tells them.
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// The captures, in the order that the analysis knows them by: before, then after.
    #[arg(required_unless_present = "list")]
    pub files: Vec<PathBuf>,
    /// List the analyses, or the one that is named; as JSON with the schemas of parameters and
    /// results.
    #[arg(long, conflicts_with = "files")]
    pub list: bool,
    /// A parameter, as NAME=VALUE; may be repeated.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArguments,
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
    /// Change of the time of an iteration, in percent, from which on it is a regression or an
    /// improvement [default: 5].
    #[arg(long, value_name = "PERCENT")]
    pub threshold_percent: Option<f64>,
    /// What ends with exit code 3.
    #[arg(long, value_enum, default_value_t)]
    pub fail_on: FailOn,
    /// A further parameter of the analysis, as NAME=VALUE; may be repeated.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArguments,
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

/// How a result is printed, the same for every command that has one.
#[derive(Clone, Debug, Default, Args)]
pub struct PrintArguments {
    /// How to write it [default: tables on standard output; HTML for an output *.html, CSV for
    /// *.csv, tables for *.txt, JSON for any other; a file for another program as it is].
    #[arg(long, value_enum)]
    pub format: Option<ResultFormat>,
    /// The file to write; it appears whole or not at all [default: standard output; files for other
    /// programs: their own name in the current folder].
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    pub output: Option<PathBuf>,
    /// Replace the output if it is there.
    #[arg(long)]
    pub force: bool,
    /// Show names as long as they are and every column, however narrow the terminal is. A pipe and
    /// a file have all anyway.
    #[arg(long)]
    pub wide: bool,
}

impl PrintArguments {
    /// What a text is written on.
    pub fn layout(&self) -> Layout {
        if self.output.is_some() {
            Layout::default()
        } else {
            Layout::of_stdout().wide(self.wide)
        }
    }
}

/// A file that a command may write. The mere name of a format is refused: with kubectl `-o json`
/// says how to print.
fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    no_format("--format", |name| ResultFormat::from_str(name, true).is_ok())
}

/// The same of `export`.
fn exported_file() -> impl TypedValueParser<Value = PathBuf> {
    no_format("--to", |name| ExportFormat::from_name(name).is_some())
}

fn no_format(option: &'static str, is_format: fn(&str) -> bool) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| match path.to_str() {
        Some(name) if is_format(name) => Err(format!(
            "{name} is a format: {option} {name} writes it; a file of that name is ./{name}"
        )),
        _ => Ok(path),
    })
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
    /// The format of the analysis catalogue that this one stands for.
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

/// Longest time in seconds for each step of reading a file, where nobody says another.
const STEP_TIMEOUT: u64 = 600;

/// How foreign files are read.
#[derive(Clone, Debug, Args)]
pub struct SourceArguments {
    /// Longest time in seconds for each step, such as an import or the transform.
    #[arg(long, value_name = "SECONDS", default_value_t = STEP_TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Say nothing meanwhile.
    #[arg(short, long)]
    pub quiet: bool,
    /// Read reports of Nsight Systems through an export by an installed nsys, for events that only
    /// it reads: OpenACC, OpenMP, Vulkan, DX.
    #[arg(long)]
    pub nsys_export: bool,
    /// The nsys for raw captures and --nsys-export [default: the one on PATH, Debian's, or that of
    /// `cargo xtask demo`].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NSYS")]
    pub nsys: Option<PathBuf>,
    /// The folder host-linux-x64 that belongs to it [default: found beside it].
    #[arg(long, value_name = "DIR", env = "FLOPWATCH_NSYS_HOST")]
    pub nsys_host: Option<PathBuf>,
    /// The nvdisasm for machine code in reports of Nsight Compute [default: the one on PATH, or of
    /// CUDA's installer].
    #[arg(long, value_name = "FILE", env = "FLOPWATCH_NVDISASM")]
    pub nvdisasm: Option<PathBuf>,
}

impl Default for SourceArguments {
    /// What the command line has without options.
    fn default() -> Self {
        Self {
            timeout: STEP_TIMEOUT,
            quiet: false,
            nsys_export: false,
            nsys: None,
            nsys_host: None,
            nvdisasm: None,
        }
    }
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
    /// How the findings are printed.
    #[command(flatten)]
    pub print: PrintArguments,
    /// How to read the capture.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Captures (any files that `convert` reads), results of `record`, or folders of captures;
    /// without one, the viewer alone. Any other capture can be dropped onto it.
    #[arg(value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Loopback address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// How to read captures, those too that are dropped onto the viewer.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// Arguments of `open`.
#[derive(Debug, Args)]
pub struct OpenArguments {
    /// What to serve, and how.
    #[command(flatten)]
    pub serve: ServeArguments,
    /// Print the address, and open no browser.
    #[arg(long)]
    pub no_browser: bool,
}

/// Arguments of `mcp`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub struct McpArguments {
    /// Folders below which captures may be read, and captures [default: the current folder].
    #[arg(value_name = "DIR|FILE")]
    pub paths: Vec<PathBuf>,
    /// How to read captures.
    #[command(flatten)]
    pub source: SourceArguments,
}

/// A category that Nsight Systems records.
fn recorded_category(name: &str) -> Result<Category, String> {
    let recorded = |category: &Category| TraceCategory::recording(*category).is_some();
    let known = Category::ALL.iter().copied().filter(recorded);
    let known: Vec<&str> = known.map(Category::name).collect();
    let found = Category::from_name(name).filter(recorded);
    found.ok_or_else(|| format!("Nsight Systems records {}", known.join(", ")))
}

fn graph_mode(name: &str) -> Result<CudaGraphTrace, String> {
    CudaGraphTrace::from_name(name).ok_or_else(|| "there are graph and node".to_owned())
}
