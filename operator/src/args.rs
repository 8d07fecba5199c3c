//! The command line.

mod admission;
mod controller;
mod gateway;
mod release;

use std::net::SocketAddr;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use admission::AdmissionArgs;
pub use controller::ControllerArgs;
pub use gateway::GatewayArgs;
pub use release::ReleaseArgs;

use crate::probes::Listen;

/// Flopwatch's operator: profiles GPU pods in place.
#[derive(Debug, Parser)]
#[command(name = "flopwatch-operator", version)]
pub struct Cli {
    /// What to run.
    #[command(subcommand)]
    pub command: Command,
}

/// What to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turns profiling sessions into captures, looks after captures, makes certificates.
    Controller(Box<ControllerArgs>),
    /// Prepares pods that opted in, and writes down who asked for a session.
    Admission(Box<AdmissionArgs>),
    /// Serves sessions and their artifacts over HTTP to those who may.
    Gateway(Box<GatewayArgs>),
    /// Before an uninstall: stops every capture of the cluster and takes its finalizer off. Safe to
    /// run twice.
    Release(Box<ReleaseArgs>),
    /// Prints the custom resource definitions as YAML.
    Crds,
}

/// Form of the log on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// How a subcommand logs.
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// Form of the log.
    #[arg(long, env = "FLOPWATCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What to log: a level, or directives such as `info,kube=debug`.
    #[arg(long, env = "FLOPWATCH_LOG_LEVEL", default_value = "info")]
    pub log_level: String,
}

/// Flags that every long-running subcommand has.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// Namespace that the operator runs in.
    #[arg(long, env = "POD_NAMESPACE", default_value = "flopwatch")]
    pub namespace: String,
    /// Where /metrics is served, over TLS, to those who may read it.
    #[arg(long, env = "FLOPWATCH_LISTEN_METRICS", default_value = "0.0.0.0:9464")]
    pub listen_metrics: SocketAddr,
    /// Where /healthz and /readyz are served, over plain HTTP.
    #[arg(long, env = "FLOPWATCH_LISTEN_HEALTH", default_value = "0.0.0.0:9465")]
    pub listen_health: SocketAddr,
    /// How it logs.
    #[command(flatten)]
    pub log: LogArgs,
}

impl CommonArgs {
    /// Where metrics and probes are served.
    fn probes(&self) -> Listen {
        Listen {
            health: self.listen_health,
            metrics: self.listen_metrics,
        }
    }
}
