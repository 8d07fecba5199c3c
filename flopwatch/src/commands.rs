//! Runs each command of the command line, and prints its outcome.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use clap::CommandFactory;
use flopwatch_analysis::Request;
use flopwatch_analysis::export::Export;
use flopwatch_api::profiler::GpuMetrics;
use flopwatch_pipeline::children::ChildCommand;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::tools;
use flopwatch_report::page::figure::count;
use flopwatch_report::{Format, Layout};
use flopwatch_summary::{ProfiledCount, Summary};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "mcp")]
use crate::arguments::McpArguments;
use crate::arguments::{
    AnalyzeArguments, CompareArguments, ConvertArguments, DiagnoseArguments, ExportArguments, LocalProfiler,
    RecordArguments, ServeArguments, SourceArguments, SummaryArguments,
};
use crate::browser;
use crate::cli::{Cli, Command};
use crate::compat::{self, CompatCommand};
use crate::cut;
use crate::manifest::Manifest;
use crate::record::{Options, Profiler, Recording, Running, TracerOptions, record};
use crate::serve::Service;
use crate::source;

/// Runs a command to its end, and gives the exit code of the program.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Record(arguments) => Runtime::new()?.block_on(run_record(arguments)),
        Command::Summary(arguments) => Runtime::new()?.block_on(print_summary(arguments)),
        Command::Convert(arguments) => Runtime::new()?.block_on(convert(arguments)),
        Command::Export(arguments) => Runtime::new()?.block_on(export(arguments)),
        Command::Analyze(arguments) => Runtime::new()?.block_on(analyze(arguments)),
        Command::Compare(arguments) => Runtime::new()?.block_on(compare(arguments)),
        Command::Diagnose(arguments) => Runtime::new()?.block_on(diagnose(arguments)),
        Command::Compat(command) => Runtime::new()?.block_on(report_of(command)),
        Command::Open(arguments) => Runtime::new()?.block_on(run_serve(arguments.serve, !arguments.no_browser)),
        Command::Serve(arguments) => Runtime::new()?.block_on(run_serve(arguments, false)),
        #[cfg(feature = "mcp")]
        Command::Mcp(arguments) => run_mcp(arguments),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "flopwatch", &mut script);
            say(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Does the work of a child of this program.
pub fn run_child(command: ChildCommand) -> anyhow::Result<ExitCode> {
    // One machine keeps no rows of a fleet.
    command.run(None)?;
    Ok(ExitCode::SUCCESS)
}

async fn run_record(arguments: RecordArguments) -> anyhow::Result<ExitCode> {
    let mut manifest = arguments
        .manifest
        .as_deref()
        .map_or_else(|| Ok(Manifest::default()), Manifest::read)?;
    if let Some(seconds) = arguments.duration {
        manifest.spec.duration_seconds = seconds;
    }
    if !arguments.require.is_empty() {
        manifest.spec.require = arguments.require;
    }
    let mut asked = manifest.spec.profiler.nsys.take().unwrap_or_default();
    asked.cuda_graph_trace = arguments.cuda_graph_trace.or(asked.cuda_graph_trace);
    asked.capture_range = arguments.capture_range.or(asked.capture_range);
    let hertz = arguments.gpu_metrics;
    asked.gpu_metrics = hertz
        .map(|frequency_hertz| GpuMetrics { frequency_hertz })
        .or(asked.gpu_metrics);
    manifest.spec.profiler.nsys = Some(asked);
    let is_traced = arguments.attach_file.is_some() || arguments.profiler == Some(LocalProfiler::Cuda);
    let until_end =
        is_traced && arguments.attach_file.is_none() && arguments.manifest.is_none() && arguments.duration.is_none();
    let profiler = if is_traced {
        Profiler::Cuda(TracerOptions {
            cupti: arguments.cupti,
            attach: arguments.attach_file,
            ring: arguments.recorder_file,
        })
    } else {
        let path = std::env::var_os("PATH");
        let named = (arguments.nsys.as_deref(), arguments.nsys_host.as_deref());
        Profiler::Nsys(tools::find(named.0, named.1, path.as_ref())?)
    };
    let name = manifest.name.clone().unwrap_or_else(|| "recording".to_owned());
    let output = arguments
        .output
        .unwrap_or_else(|| format!("flopwatch-{name}-{}", std::process::id()).into());
    let options = Options {
        manifest,
        profiler,
        until_end,
        output,
        force: arguments.force,
        command: arguments.command,
        nvml_library: arguments.nvml_library,
        quiet: arguments.quiet,
    };
    let Recording {
        session_id,
        folder,
        summary,
        missing,
        notes,
        command,
    } = record(&options).await?;

    say(&format!(
        "{}\nResults in {} (session {session_id})\n",
        summary.render_on(arguments.top, Layout::of_stdout().wide(arguments.wide)),
        folder.display()
    ))?;
    for note in notes.into_iter().chain(missing.as_ref().map(ToString::to_string)) {
        drop(writeln!(std::io::stderr(), "flopwatch: {note}"));
    }
    let failed = missing.is_some();
    if arguments.no_serve || failed {
        let code = match command {
            Running::Foreign => 0,
            command => command.end().await.map_or(1, report),
        };
        return Ok(if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::from(code)
        });
    }
    // The command keeps running beside the service, and Ctrl-C ends both.
    let watched = tokio::spawn(async move { command.end().await.map(report) });
    let reading = SourceArguments {
        quiet: arguments.quiet,
        nsys: arguments.nsys,
        nsys_host: arguments.nsys_host,
        ..SourceArguments::default()
    };
    serve(&[folder], arguments.listen, &reading, false).await?;
    watched.abort();
    Ok(ExitCode::SUCCESS)
}

/// Prints how the profiled command ended, and gives its exit code as a shell does.
fn report(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    drop(writeln!(std::io::stderr(), "flopwatch: the command ended ({status})"));
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

async fn run_serve(arguments: ServeArguments, in_browser: bool) -> anyhow::Result<ExitCode> {
    serve(&arguments.paths, arguments.listen, &arguments.source, in_browser).await?;
    Ok(ExitCode::SUCCESS)
}

/// Serves captures until SIGINT or SIGTERM, with the viewer in the user's browser where
/// `in_browser` says so.
async fn serve(
    paths: &[PathBuf],
    address: SocketAddr,
    reading: &SourceArguments,
    in_browser: bool,
) -> anyhow::Result<()> {
    let stop = stop_when_terminated();
    let service = Service::new(paths, address, reading, &stop).await?;
    let urls = [vec![service.list_url()], service.file_urls()].concat().join("\n  ");
    let viewer = service.viewer_url();
    match &viewer {
        Some(url) => say(&format!("Open in a browser:\n  {url}\n"))?,
        None => {
            say("This program was built without the viewer: run `cargo xtask web`, then build the program again.\n")?;
        }
    }
    say(&format!("Serving until Ctrl-C:\n  {urls}\n"))?;
    if let Some(url) = viewer.filter(|_| in_browser) {
        // It connects as soon as it is there: the service listens already.
        tokio::spawn(async move {
            if let Err(error) = browser::open(&url).await {
                drop(writeln!(std::io::stderr(), "flopwatch: {}", chain(&error)));
            }
        });
    }
    Ok(service.run(stop).await?)
}

#[cfg(feature = "mcp")]
fn run_mcp(arguments: McpArguments) -> anyhow::Result<ExitCode> {
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async { crate::mcp::run(arguments, stop_when_terminated()).await });
    // A read of standard input that is no pipe cannot be given up: nobody waits for it.
    runtime.shutdown_background();
    served?;
    Ok(ExitCode::SUCCESS)
}

/// A token that is canceled when the program gets SIGINT or SIGTERM.
fn stop_when_terminated() -> CancellationToken {
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        until_terminated().await;
        asked.cancel();
    });
    stop
}

/// Resolves when the program gets SIGINT or SIGTERM; children and files are removed before it ends.
async fn until_terminated() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
}

async fn print_summary(arguments: SummaryArguments) -> anyhow::Result<ExitCode> {
    let (print, top) = (arguments.print, arguments.top);
    let request = Request::parse(flopwatch_summary::NAME, &Value::Null)?;
    let format = crate::analyze::format(&print, request.definition());
    if matches!(format, Format::Html | Format::Page) {
        let arguments = AnalyzeArguments {
            name: Some(flopwatch_summary::NAME.to_owned()),
            files: vec![arguments.file],
            list: false,
            parameters: Vec::new(),
            print,
            source: arguments.source,
        };
        return analyze(arguments).await;
    }
    let source = arguments.source.source(arguments.file, None);
    if let Some(output) = &print.output {
        source::check_output(std::slice::from_ref(&source), output, print.force)?;
    }
    let summary = source::summary(&source, until_terminated()).await?;
    cut::tell(cut::of_summary(&source, &summary));
    let text = match format {
        Format::Json => summary.to_json()? + "\n",
        Format::Csv => summary.to_csv(top.unwrap_or(usize::MAX)),
        _ => summary.render_on(top.unwrap_or(10), print.layout()),
    };
    let Some(output) = &print.output else {
        say(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    source::publish(text.as_bytes(), output, print.force)?;
    let events = count(summary.total_events, "event", "events");
    say(&format!("{}: {events} read\n", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn convert(arguments: ConvertArguments) -> anyhow::Result<ExitCode> {
    let output = arguments.output;
    let source = arguments.source.source(arguments.input, arguments.session_id);
    let summary = source::convert(&source, &output, arguments.force, until_terminated()).await?;
    cut::tell(cut::of_summary(&source, &summary));
    let contents = describe_contents(&summary);
    say(&format!("{}: {contents}\n", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// A phrase with the counts of a capture: its events, and the launches that a kernel profiler
/// replayed, which have no time.
fn describe_contents(summary: &Summary) -> String {
    let ProfiledCount { launches, metrics } = summary.profiled;
    let events = count(summary.total_events, "event", "events");
    let profiled = format!(
        "{} with {}",
        count(launches, "profiled launch", "profiled launches"),
        count(metrics, "metric", "metrics")
    );
    match (summary.total_events, launches) {
        (_, 0) => events,
        (0, _) => profiled,
        _ => format!("{events}, {profiled}"),
    }
}

async fn export(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let (file, to) = (arguments.file, arguments.to);
    let named = || Path::new(file.file_name().unwrap_or_default()).with_extension(to.extension());
    let output = arguments.output.unwrap_or_else(named);
    let sources = [arguments.source.source(file, None)];
    let request = Request::of(Export::definition(to, arguments.table))?;
    let report = source::analyze_to(&sources, &request, &output, arguments.force, until_terminated()).await?;
    cut::tell(cut::of_report(&sources, &report));
    let mut text = format!(
        "{}: {}, {}\n",
        output.display(),
        count(report.events, "event", "events"),
        count(report.samples, "sample", "samples")
    );
    for left_out in &report.left_out {
        let line = format!("not in it: {} {}\n", left_out.count, left_out.what);
        text.push_str(&line);
    }
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn analyze(arguments: AnalyzeArguments) -> anyhow::Result<ExitCode> {
    say(&crate::analyze::run(arguments, until_terminated()).await?)?;
    Ok(ExitCode::SUCCESS)
}

async fn report_of(command: CompatCommand) -> anyhow::Result<ExitCode> {
    say(&compat::run(command, until_terminated()).await?)?;
    Ok(ExitCode::SUCCESS)
}

async fn compare(arguments: CompareArguments) -> anyhow::Result<ExitCode> {
    let compared = crate::compare::run(arguments, until_terminated()).await?;
    say(&compared.text)?;
    Ok(compared.exit_code())
}

async fn diagnose(arguments: DiagnoseArguments) -> anyhow::Result<ExitCode> {
    let diagnosed = crate::diagnose::run(arguments, until_terminated()).await?;
    say(&diagnosed.text)?;
    Ok(diagnosed.exit_code())
}

/// Writes to standard output. A reader that has gone, such as `head`, is no error: what the command
/// found, and its exit code, are the same.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
