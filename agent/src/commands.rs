//! The commands: what the command line asks for.

use std::error::Error;

use flopwatch_model::Timeline;
use flopwatch_pipeline::fleet_rows::FleetFiles;
use flopwatch_summary::Summary;
use tokio::runtime::Runtime;

use crate::cli::Command;
use crate::{fleet_rows, node};

/// Runs a command to its end.
pub fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(options) => {
            // Two libraries bring a provider each; rustls refuses to guess.
            rustls::crypto::ring::default_provider()
                .install_default()
                .map_err(|_installed| anyhow::anyhow!("a crypto provider is installed already"))?;
            Runtime::new()?.block_on(node::run(*options))?;
        }
        Command::PrepareNode { cgroup_root } => {
            node::graft::prepare_node(&cgroup_root).map_err(anyhow::Error::msg)?;
        }
        Command::Child(command) => command.run(Some(write_rows))?,
    }
    Ok(())
}

/// Writes rows of the fleet, for the child that transforms.
fn write_rows(files: &FleetFiles, timeline: &Timeline, summary: &Summary) -> Result<(), Box<dyn Error>> {
    Ok(fleet_rows::write(files, timeline, summary)?)
}
