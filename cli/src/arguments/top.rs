//! What is asked of the fleet.

use clap::{Args, ValueEnum};

use super::{FormatArguments, GatewayArguments, Span};

const EXAMPLE: &str =
    "Example: the ten kernels with most GPU time of the last week, in all namespaces, by what schedules drew alone
  kubectl flopwatch top kernels --since 7d -A --limit 10 --drawn-only";

/// What of the fleet to say.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct TopArguments {
    /// What to add up
    #[arg(value_enum, value_name = "WHAT")]
    pub by: TopBy,
    /// How far back, such as 24h or 7d; at most 92d
    #[arg(long, default_value = "24h", value_name = "TIME")]
    pub since: Span,
    /// Of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Most rows; the rest is one
    #[arg(long, default_value_t = 20, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: u16,
    /// Leave out captures that no schedule drew: they are no sample of the fleet
    #[arg(long)]
    pub drawn_only: bool,
    /// How it is printed.
    #[command(flatten)]
    pub format: FormatArguments,
    /// How the gateway is asked.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

/// What is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TopBy {
    /// Kernels by name: time of GPUs
    Kernels,
    /// NVTX ranges by name: time of processors; they nest
    Ranges,
    /// Images: time of GPUs in kernels
    Images,
}

impl TopBy {
    /// The word on the command line and in the gateway's paths.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Ranges => "ranges",
            Self::Images => "images",
        }
    }
}
