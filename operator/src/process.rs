//! What every subcommand that talks to the API server does around its work: logs, the client,
//! SIGTERM.

use anyhow::Context as _;
use kube::Client;
use std::io::IsTerminal as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use flopwatch_operator::args::{LogArgs, LogFormat};

/// Runs `work` until it ends or the process is asked to: SIGTERM and SIGINT cancel the token, and
/// the work is then expected to end by itself.
pub(crate) fn run(
    flags: &LogArgs,
    work: impl AsyncFnOnce(Client, CancellationToken) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    log(flags)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut terminate = signal(SignalKind::terminate()).context("watching for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("watching for SIGINT")?;
        let token = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("got SIGTERM, ending"),
                _ = interrupt.recv() => tracing::info!("got SIGINT, ending"),
            }
            token.cancel();
        });
        let client = Client::try_default().await.context("connecting to the API server")?;
        let result = work(client, stop).await;
        match &result {
            Ok(()) => tracing::info!("ended"),
            Err(error) => tracing::error!(%error, "ended"),
        }
        result
    })
}

fn log(flags: &LogArgs) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&flags.log_level).with_context(|| format!("--log-level {}", flags.log_level))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let installed = match flags.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    installed.map_err(|error| anyhow::anyhow!("setting the log up: {error}"))
}
