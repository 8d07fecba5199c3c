//! The subcommands.

use clap::CommandFactory as _;
use flopwatch_api::session::{ProfilingSession, StopMode};
use flopwatch_report::Layout;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;

use crate::arguments::{
    Cli, Command, CompletionShell, DescribeArguments, DryRun, Format, OpenArguments, ProfileArguments, SessionName,
    SessionsArguments, StopArguments,
};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::{Display, until_end};
use crate::listing::{as_objects, print_none, typed};
use crate::print::{object, say};
use crate::sessions::{Columns, render};
use crate::{ask, compare, complete, describe, doctor, fetch, mcp, open, proxy, request, schedule, top};

/// Sessions as messages and `-o name` call them.
const KIND: &str = "profilingsession.flopwatch.dev";

/// Does what the command line asks for.
pub async fn run(cli: Cli) -> Result<(), Error> {
    if let Command::Completion { shell } = cli.command {
        return completion(shell);
    }
    let cluster = Cluster::connect(&cli.connection).await?;
    let layout = Layout::of_stdout();
    match cli.command {
        Command::Profile(arguments) => Box::pin(profile(&cluster, &arguments)).await,
        Command::Recent(arguments) => Box::pin(profile(&cluster, &arguments.into())).await,
        Command::Sessions(arguments) => list(&cluster, &arguments, layout).await,
        Command::Schedule(arguments) => schedule::run(&cluster, &arguments, layout).await,
        Command::Describe(arguments) => show(&cluster, &arguments, layout).await,
        Command::Watch(arguments) => follow(&cluster, &arguments.session.0, arguments.timeout.0).await,
        Command::Stop(arguments) => stop(&cluster, &arguments).await,
        Command::Fetch(arguments) => fetch::run(&cluster, &arguments).await,
        Command::Compare(arguments) => compare::run(&cluster, &arguments, layout).await,
        Command::Top(arguments) => top::run(&cluster, &arguments, layout).await,
        Command::Open(arguments) => open::run(&cluster, &arguments).await,
        Command::Proxy(arguments) => proxy::run(&cluster, &arguments).await,
        Command::Mcp(arguments) => mcp::run(&cluster, arguments).await,
        Command::Doctor(arguments) => doctor::run(&cluster, &arguments, layout).await,
        Command::Completion { shell } => completion(shell),
    }
}

fn completion(shell: CompletionShell) -> Result<(), Error> {
    let generate = |shell: clap_complete::Shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "kubectl-flopwatch", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    say(&match shell {
        CompletionShell::Bash => generate(clap_complete::Shell::Bash),
        CompletionShell::Elvish => generate(clap_complete::Shell::Elvish),
        CompletionShell::Fish => generate(clap_complete::Shell::Fish),
        CompletionShell::Powershell => generate(clap_complete::Shell::PowerShell),
        CompletionShell::Zsh => generate(clap_complete::Shell::Zsh),
        CompletionShell::Kubectl => complete::SCRIPT.to_owned(),
    })
}

async fn profile(cluster: &Cluster, arguments: &ProfileArguments) -> Result<(), Error> {
    let template = arguments.template.as_deref().map(request::Template::read).transpose()?;
    let session = request::session(arguments, template, &cluster.namespace);
    let format = arguments.format.output;
    if arguments.dry_run == Some(DryRun::Client) {
        let format = format.filter(|format| *format != Format::Wide).unwrap_or(Format::Yaml);
        return say(&match format {
            Format::Name => format!("{KIND}/{}\n", named(&session)),
            format => object(&typed(&session)?, format)?,
        });
    }
    if let Some(pod) = &arguments.pod
        && !arguments.wait_for_pod
        && !ask::pod_exists(cluster, &pod.0).await?
    {
        return Err(Error::NoPod {
            namespace: cluster.namespace.clone(),
            name: pod.0.clone(),
        });
    }
    let dry_run = arguments.dry_run.is_some();
    let made = ask::create(cluster, &session, dry_run).await?;
    let name = made.name_any();
    say(&match format {
        Some(Format::Name) => format!("{KIND}/{name}\n"),
        Some(format @ (Format::Json | Format::Yaml)) => object(&typed(&made)?, format)?,
        _ if dry_run => format!("{KIND}/{name} created (server dry run)\n"),
        _ => format!("{KIND}/{name} created\n"),
    })?;
    if !arguments.wait && !arguments.open {
        return Ok(());
    }
    follow(cluster, &name, arguments.timeout.0).await?;
    if !arguments.open {
        return Ok(());
    }
    let opened = OpenArguments {
        session: SessionName(name),
        capture: None,
        port: 0,
        gateway: arguments.gateway.clone(),
    };
    open::run(cluster, &opened).await
}

/// The name, or the beginning of the one that the API server would make.
fn named(session: &ProfilingSession) -> String {
    let metadata = &session.metadata;
    let name = metadata.name.as_ref().or(metadata.generate_name.as_ref());
    name.cloned().unwrap_or_default()
}

async fn list(cluster: &Cluster, arguments: &SessionsArguments, layout: Layout) -> Result<(), Error> {
    let found = ask::list(cluster, arguments.all_namespaces, arguments.selector.as_deref()).await?;
    let format = arguments.format.output;
    if let Some(text) = as_objects(KIND, &found, format)? {
        return say(&text);
    }
    if found.is_empty() {
        let help = "Make one: kubectl flopwatch profile pod/NAME";
        print_none("sessions", cluster, arguments.all_namespaces, help);
        return Ok(());
    }
    let columns = Columns {
        namespaces: arguments.all_namespaces,
        wide: format == Some(Format::Wide),
    };
    say(&render(&found, columns, Timestamp::now(), layout))
}

async fn show(cluster: &Cluster, arguments: &DescribeArguments, layout: Layout) -> Result<(), Error> {
    let (session, captures) = fetch::session_with_captures(cluster, &arguments.session.0).await?;
    say(&match arguments.format.output {
        Some(Format::Name) => format!("{KIND}/{}\n", session.name_any()),
        Some(format @ (Format::Json | Format::Yaml)) => {
            let mut items = vec![typed(&session)?];
            for capture in &captures {
                items.push(typed(capture)?);
            }
            object(&json!({"apiVersion": "v1", "kind": "List", "items": items}), format)?
        }
        _ => describe::render(&session, &captures, Timestamp::now(), layout),
    })
}

async fn follow(cluster: &Cluster, name: &str, seconds: u32) -> Result<(), Error> {
    let progress = until_end(cluster, name, seconds, Display::of_stderr()).await?;
    progress.succeeded(name)?;
    say(&format!("{KIND}/{name} succeeded\n"))
}

async fn stop(cluster: &Cluster, arguments: &StopArguments) -> Result<(), Error> {
    let mode = if arguments.discard {
        StopMode::Discard
    } else {
        StopMode::Keep
    };
    let name = &arguments.session.0;
    ask::stop(cluster, name, mode).await?;
    say(&match mode {
        StopMode::Keep => format!("{KIND}/{name} stopped: what it recorded is published\n"),
        StopMode::Discard => format!("{KIND}/{name} stopped: what it recorded is thrown away\n"),
    })
}
