//! Sessions in the local cluster, stage by stage, and pods until they are ready.

use crate::in_cluster;
use anyhow::Result;
use clap::Args;
use flopwatch_toolchain::cache::Cache;

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct StagesOptions {
    /// Rounds, one after the other: a session with Nsight Systems, one with the CUDA tracer, and a
    /// pod of each preparation. The least, the median and the most are told, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// Runs the test that tells the stages, in the local cluster, which is brought up where it is not
/// and stays.
pub(crate) fn run(cache: &Cache, options: &StagesOptions) -> Result<()> {
    let rounds = ("FLOPWATCH_STAGES_ROUNDS", options.rounds.to_string());
    in_cluster::tell(cache, "stages", rounds, "stages::")
}
