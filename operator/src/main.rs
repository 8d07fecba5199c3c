//! `flopwatch-operator`: parses the command line and calls the library.

mod process;

use anyhow::Context as _;
use clap::Parser as _;
use flopwatch_operator::args::{Cli, Command};
use flopwatch_operator::metrics::Metrics;
use flopwatch_operator::{admission, controller, crds, gateway, release};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    // One provider for every TLS connection: with two in the program rustls refuses to choose.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        anyhow::bail!("a cryptography provider was installed before main");
    }
    match cli.command {
        Command::Crds => crds::print(&mut std::io::stdout().lock()).context("printing the custom resource definitions"),
        Command::Admission(args) => process::run(&args.log().clone(), async |client, stop| {
            Ok(admission::run(client, args.options(), Metrics::new()?, stop).await?)
        }),
        Command::Controller(args) => process::run(&args.log().clone(), async |client, stop| {
            Ok(controller::run(client, args.options(), Metrics::new()?, stop).await?)
        }),
        Command::Gateway(args) => process::run(&args.log().clone(), async |client, stop| {
            let config = kube::Config::infer().await.context("finding the API server")?;
            Ok(gateway::run(client, config, args.options(), Metrics::new()?, stop).await?)
        }),
        Command::Release(args) => process::run(&args.log().clone(), async |client, stop| {
            release::run(client, args.options(), stop).await?;
            Ok(())
        }),
    }
}
