//! The commands: what the command line asks for, and what is said of its outcome.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use clap::CommandFactory;
use flopwatch_analysis::Request;
use flopwatch_analysis::export::Export;
use flopwatch_api::profiler::GpuMetrics;
use flopwatch_attach::nsys::HostTools;
use flopwatch_pipeline::tools;
use flopwatch_summary::{ProfiledCount, Summary};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::arguments::{
    AnalyzeArguments, CompareArguments, ConvertArguments, DiagnoseArguments, ExportArguments, RecordArguments,
    ServeArguments, SummaryArguments, SummaryFormat,
};
use crate::cli::{Cli, Command};
use crate::compat::{self, CompatCommand};
use crate::manifest::Manifest;
use crate::record::{Options, Recording, record};
use crate::serve::Service;
use crate::source;

/// Runs a command to its end; gives the exit code of this program.
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
        Command::Serve(arguments) => Runtime::new()?.block_on(run_serve(&arguments)),
        Command::Child(command) => {
            // One machine keeps no rows of a fleet.
            command.run(None)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "flopwatch", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn run_record(arguments: RecordArguments) -> anyhow::Result<ExitCode> {
    let mut manifest = arguments
        .manifest
        .as_deref()
        .map_or_else(|| Ok(Manifest::default()), Manifest::read)?;
    if let Some(seconds) = arguments.duration {
        manifest.spec.duration_seconds = seconds;
    }
    let mut asked = manifest.spec.profiler.nsys.take().unwrap_or_default();
    asked.cuda_graph_trace = arguments.cuda_graph_trace.or(asked.cuda_graph_trace);
    asked.capture_range = arguments.capture_range.or(asked.capture_range);
    let hertz = arguments.gpu_metrics;
    asked.gpu_metrics = hertz
        .map(|frequency_hertz| GpuMetrics { frequency_hertz })
        .or(asked.gpu_metrics);
    manifest.spec.profiler.nsys = Some(asked);
    let path = std::env::var_os("PATH");
    let tools = tools::find(arguments.nsys.as_deref(), arguments.nsys_host.as_deref(), path.as_ref())?;
    let name = manifest.name.clone().unwrap_or_else(|| "recording".to_owned());
    let output = arguments
        .output
        .unwrap_or_else(|| format!("flopwatch-{name}-{}", std::process::id()).into());
    let options = Options {
        manifest,
        tools,
        output,
        command: arguments.command,
        nvml_library: arguments.nvml_library,
        quiet: arguments.quiet,
    };
    let Recording {
        session_id,
        folder,
        summary,
        missing,
        command,
    } = record(&options).await?;

    say(&format!(
        "{}\nResults in {} (session {session_id})\n",
        summary.render(arguments.top),
        folder.display()
    ))?;
    if let Some(missing) = &missing {
        drop(writeln!(std::io::stderr(), "flopwatch: {missing}"));
    }
    let failed = missing.is_some();
    if arguments.no_serve || failed {
        let code = command.end().await.map_or(1, report);
        return Ok(if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::from(code)
        });
    }
    // The command keeps running beside the service, and Ctrl-C ends both.
    let watched = tokio::spawn(async move { command.end().await.map(report) });
    serve(Some(&folder), &name, arguments.listen, Ok(options.tools)).await?;
    watched.abort();
    Ok(ExitCode::SUCCESS)
}

/// Says how the command ended; gives its code as a shell does.
fn report(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    drop(writeln!(std::io::stderr(), "flopwatch: the command ended ({status})"));
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

async fn run_serve(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let path = std::env::var_os("PATH");
    let tools = tools::find(arguments.nsys.as_deref(), arguments.nsys_host.as_deref(), path.as_ref());
    serve(arguments.source.as_deref(), "result", arguments.listen, tools).await?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    source: Option<&Path>,
    name: &str,
    address: SocketAddr,
    tools: Result<HostTools, tools::Error>,
) -> anyhow::Result<()> {
    let service = Service::new(source, name, address, tools).await?;
    let urls = service.file_urls().join("\n  ");
    if let Some(viewer) = service.viewer_url() {
        say(&format!("Open in a browser:\n  {viewer}\n"))?;
    }
    say(&format!("Serving until Ctrl-C:\n  {}\n  {urls}\n", service.url()))?;
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let asked = stop.clone();
    tokio::spawn(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        asked.cancel();
    });
    Ok(service.run(stop).await?)
}

/// Resolves when somebody asks this program to end; its children and its files go before it does.
async fn asked_to_end() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
}

async fn print_summary(arguments: SummaryArguments) -> anyhow::Result<ExitCode> {
    let SummaryArguments {
        file,
        format,
        top,
        source,
    } = arguments;
    let summary = source::summary(&source.source(file, None), asked_to_end()).await?;
    let text = match format {
        SummaryFormat::Table => summary.render(top.unwrap_or(10)),
        SummaryFormat::Json => summary.to_json()? + "\n",
        SummaryFormat::Csv => summary.to_csv(top.unwrap_or(usize::MAX)),
    };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn convert(arguments: ConvertArguments) -> anyhow::Result<ExitCode> {
    let ConvertArguments {
        input,
        output,
        force,
        session_id,
        source,
    } = arguments;
    let source = source.source(input, session_id);
    let summary = source::convert(&source, &output, force, asked_to_end()).await?;
    let held = held(&summary);
    say(&format!("{}: {held}\n", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// What a capture holds, in short: events, and launches that a kernel profiler replayed, which have no time.
fn held(summary: &Summary) -> String {
    let ProfiledCount { launches, metrics } = summary.profiled;
    let events = format!("{} events", summary.total_events);
    match (summary.total_events, launches) {
        (_, 0) => events,
        (0, _) => format!("{launches} profiled launches with {metrics} metrics"),
        _ => format!("{events}, {launches} profiled launches with {metrics} metrics"),
    }
}

async fn export(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let ExportArguments {
        file,
        to,
        output,
        table,
        force,
        source,
    } = arguments;
    let named = || Path::new(file.file_name().unwrap_or_default()).with_extension(to.extension());
    let output = output.unwrap_or_else(named);
    let source = source.source(file, None);
    let request = Request::of(Export::definition(to, table))?;
    let report = source::analyze_to(&[source], &request, &output, force, asked_to_end()).await?;
    let mut text = format!(
        "{}: {} events, {} samples\n",
        output.display(),
        report.events,
        report.samples
    );
    for left_out in &report.left_out {
        let line = format!("not in it: {} {}\n", left_out.count, left_out.what);
        text.push_str(&line);
    }
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn analyze(arguments: AnalyzeArguments) -> anyhow::Result<ExitCode> {
    say(&crate::analyze::run(arguments, asked_to_end()).await?)?;
    Ok(ExitCode::SUCCESS)
}

async fn report_of(command: CompatCommand) -> anyhow::Result<ExitCode> {
    say(&compat::run(command, asked_to_end()).await?)?;
    Ok(ExitCode::SUCCESS)
}

async fn compare(arguments: CompareArguments) -> anyhow::Result<ExitCode> {
    let compared = crate::compare::run(arguments, asked_to_end()).await?;
    say(&compared.text)?;
    Ok(compared.exit_code())
}

async fn diagnose(arguments: DiagnoseArguments) -> anyhow::Result<ExitCode> {
    let diagnosed = crate::diagnose::run(arguments, asked_to_end()).await?;
    say(&diagnosed.text)?;
    Ok(diagnosed.exit_code())
}

fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}
