//! A fleet of simulated nodes at the real control plane.

use crate::in_cluster;
use anyhow::Result;
use clap::Args;
use flopwatch_toolchain::cache::Cache;

/// Size of the simulated fleet.
#[derive(Debug, Args)]
pub(crate) struct FleetOptions {
    /// Nodes, and as many sessions of ten captures each.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    nodes: u32,
}

/// Runs the test that tells what a fleet costs, in the local cluster, which is brought up where it
/// is not and stays. A missed budget fails it.
pub(crate) fn run(cache: &Cache, options: &FleetOptions) -> Result<()> {
    let nodes = ("FLOPWATCH_FLEET_NODES", options.nodes.to_string());
    in_cluster::tell(cache, "fleet", nodes, "scale::")
}
