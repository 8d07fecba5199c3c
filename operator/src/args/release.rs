//! The command line of `release`.

use std::time::Duration;

use clap::Args;

use super::LogArgs;
use crate::release::ReleaseOptions;

/// Flags of `release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// Namespace that the operator runs in.
    #[arg(long, env = "POD_NAMESPACE", default_value = "flopwatch")]
    namespace: String,
    /// ConfigMap in the operator's namespace in which new captures are suspended.
    #[arg(long, env = "FLOPWATCH_CONFIG_MAP", default_value = "flopwatch-controller")]
    config_map: String,
    /// How long the agents have to end captures that are at work, in seconds.
    #[arg(long, env = "FLOPWATCH_GRACE_SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(..=3_600))]
    grace_seconds: u32,
    #[command(flatten)]
    log: LogArgs,
}

impl ReleaseArgs {
    /// The flags for logging.
    pub fn log(&self) -> &LogArgs {
        &self.log
    }

    /// What the flags mean together.
    pub fn options(self) -> ReleaseOptions {
        let Self {
            namespace,
            config_map,
            grace_seconds,
            log: _,
        } = self;
        ReleaseOptions {
            namespace,
            config_map,
            grace: Duration::from_secs(u64::from(grace_seconds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

    #[test]
    fn a_release_gives_agents_twenty_seconds_unless_told_otherwise() {
        let grace =
            |flags: &[&str]| match Cli::parse_from(["flopwatch-operator", "release"].iter().chain(flags)).command {
                Command::Release(args) => args.options().grace.as_secs(),
                other => panic!("{other:?}"),
            };
        assert_eq!(grace(&[]), 20);
        assert_eq!(grace(&["--grace-seconds=0"]), 0);
    }
}
