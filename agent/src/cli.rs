//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use flopwatch_pipeline::children::ChildCommand;

use crate::node;

/// Flopwatch's node agent. For one machine there is `flopwatch`.
#[derive(Debug, Parser)]
#[command(name = "flopwatch-agent", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Carry out the captures of one Kubernetes node (what the DaemonSet runs).
    Run(Box<node::Options>),
    /// Make the folder for profilers' sessions in the node's cgroups: once per node, by an init
    /// container with CAP_DAC_OVERRIDE, so that the agent needs no such capability.
    PrepareNode {
        /// The host's cgroup file systems, writable.
        #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
        cgroup_root: PathBuf,
    },
    /// What this program runs itself as in a sandbox.
    #[command(flatten)]
    Child(ChildCommand),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_daemon_set_command_line_is_understood() {
        let line = [
            "flopwatch-agent",
            "run",
            "--log-format=json",
            "--log-level=info",
            "--cgroup-root=/host/sys/fs/cgroup",
            "--data-dir=/var/lib/flopwatch",
            "--tools-dir=/opt/nsys",
            "--tls-dir=/etc/flopwatch/tls",
            "--max-captures=2",
            "--max-capture-bytes=2147483648",
            "--min-free-bytes=1073741824",
            "--min-free-percent=15",
            "--pod-resources=/var/lib/kubelet/pod-resources/kubelet.sock",
            "--node-name=n",
            "--namespace=flopwatch-system",
            "--pod-name=flopwatch-agent-x",
            "--advertise-address=10.0.0.1",
        ];
        Cli::try_parse_from(line).unwrap();
    }
}
