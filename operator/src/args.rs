//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::certificates::CertificateOptions;
use crate::controller::ControllerOptions;

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

/// Flags that every long-running subcommand has.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// Namespace that the operator runs in.
    #[arg(long, env = "POD_NAMESPACE", default_value = "flopwatch")]
    pub namespace: String,
    /// Where /metrics, /healthz and /readyz are served, over plain HTTP.
    #[arg(long, env = "FLOPWATCH_LISTEN_METRICS", default_value = "0.0.0.0:9464")]
    pub listen_metrics: SocketAddr,
    /// Form of the log.
    #[arg(long, env = "FLOPWATCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What to log: a level, or directives such as `info,kube=debug`.
    #[arg(long, env = "FLOPWATCH_LOG_LEVEL", default_value = "info")]
    pub log_level: String,
}

/// Flags of `controller`.
#[derive(Debug, Args)]
pub struct ControllerArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Lead without a lease. Only for a single replica.
    #[arg(long, env = "FLOPWATCH_NO_LEADER_ELECTION", overrides_with = "leader_election")]
    no_leader_election: bool,
    /// Lead only while holding the lease (the default).
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "no_leader_election")]
    leader_election: bool,
    /// Name of the lease.
    #[arg(long, env = "FLOPWATCH_LEASE_NAME", default_value = "flopwatch-controller")]
    lease_name: String,
    /// Who this process is among the candidates for the lease, unique: the pod's name.
    #[arg(long, env = "POD_NAME", default_value_t = default_identity())]
    identity: String,
    /// How long a node may be gone, or without an agent, before its captures are lost, in seconds.
    #[arg(long, env = "FLOPWATCH_NODE_LOST_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    node_lost_seconds: u32,
    /// Labels of the agent's pods in the operator's namespace.
    #[arg(
        long,
        env = "FLOPWATCH_AGENT_SELECTOR",
        default_value = "app.kubernetes.io/name=flopwatch,app.kubernetes.io/component=agent"
    )]
    agent_selector: String,
    /// Service of admission, in the operator's namespace.
    #[arg(long, env = "FLOPWATCH_WEBHOOK_SERVICE", default_value = "flopwatch-admission")]
    webhook_service: String,
    /// MutatingWebhookConfiguration whose caBundle is kept up to date.
    #[arg(long, env = "FLOPWATCH_WEBHOOK_CONFIGURATION", default_value = "flopwatch")]
    webhook_configuration: String,
    /// Secret that admission serves with.
    #[arg(long, env = "FLOPWATCH_WEBHOOK_SECRET", default_value = "flopwatch-admission-tls")]
    webhook_secret: String,
    /// Secret that agents serve with (tls.crt, tls.key, ca.crt).
    #[arg(long, env = "FLOPWATCH_AGENT_SECRET", default_value = "flopwatch-agent-tls")]
    agent_secret: String,
    /// Secret with the authority and its key; only the controller needs it.
    #[arg(long, env = "FLOPWATCH_AUTHORITY_SECRET", default_value = "flopwatch-authority")]
    authority_secret: String,
    /// DNS name that clients ask agents for. Default: flopwatch-agent.NAMESPACE.svc.
    #[arg(long, env = "FLOPWATCH_AGENT_SERVER_NAME")]
    agent_server_name: Option<String>,
    /// Makes no certificates: something else fills the secrets and the caBundle.
    #[arg(long, env = "FLOPWATCH_NO_CERTIFICATES")]
    no_certificates: bool,
    /// Most passes at once, of each controller.
    #[arg(long, env = "FLOPWATCH_MAX_CONCURRENT_RECONCILES", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_concurrent_reconciles: u16,
    /// Suspends new captures. The same can be switched without a restart: key `capturesSuspended: "true"` in the
    /// ConfigMap of --config-map.
    #[arg(long, env = "FLOPWATCH_CAPTURES_SUSPENDED")]
    captures_suspended: bool,
    /// ConfigMap in the operator's namespace that is watched for `capturesSuspended`; it need not exist.
    #[arg(long, env = "FLOPWATCH_CONFIG_MAP", default_value = "flopwatch-controller")]
    config_map: String,
}

impl ControllerArgs {
    /// The flags for logging.
    pub fn common(&self) -> &CommonArgs {
        &self.common
    }

    /// What the flags mean together.
    pub fn options(self) -> ControllerOptions {
        let Self {
            common:
                CommonArgs {
                    namespace,
                    listen_metrics,
                    log_format: _,
                    log_level: _,
                },
            no_leader_election,
            leader_election: _,
            lease_name,
            identity,
            node_lost_seconds,
            agent_selector,
            webhook_service,
            webhook_configuration,
            webhook_secret,
            agent_secret,
            authority_secret,
            agent_server_name,
            no_certificates,
            max_concurrent_reconciles,
            captures_suspended,
            config_map,
        } = self;
        let webhook_names = vec![
            format!("{webhook_service}.{namespace}.svc"),
            format!("{webhook_service}.{namespace}.svc.cluster.local"),
        ];
        let agent_names = vec![agent_server_name.unwrap_or_else(|| format!("flopwatch-agent.{namespace}.svc"))];
        let certificates = (!no_certificates).then(|| CertificateOptions {
            namespace: namespace.clone(),
            authority_secret,
            webhook_secret,
            webhook_names,
            webhook_service,
            webhook_configuration,
            agent_secret,
            agent_names,
        });
        ControllerOptions {
            namespace,
            listen_metrics,
            lease: (!no_leader_election).then_some(lease_name),
            identity,
            node_lost: Duration::from_secs(u64::from(node_lost_seconds)),
            agent_selector,
            concurrency: max_concurrent_reconciles,
            suspended: captures_suspended,
            config_map,
            certificates,
        }
    }
}

/// A name of this process's own, for a run outside of a pod.
fn default_identity() -> String {
    format!("flopwatch-operator-{:08x}", fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(flags: &[&str]) -> ControllerOptions {
        let line = ["flopwatch-operator", "controller", "--namespace", "ns"];
        match Cli::parse_from(line.iter().chain(flags)).command {
            Command::Controller(args) => args.options(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_of_certificates_follow_the_namespace() {
        let certificates = controller(&[]).certificates.unwrap();
        assert_eq!(certificates.webhook_names[0], "flopwatch-admission.ns.svc");
        assert_eq!(certificates.agent_names, ["flopwatch-agent.ns.svc"]);
        assert!(controller(&["--no-certificates"]).certificates.is_none());
    }

    #[test]
    fn the_last_word_on_leader_election_counts() {
        assert_eq!(controller(&[]).lease.as_deref(), Some("flopwatch-controller"));
        assert_eq!(controller(&["--no-leader-election"]).lease, None);
        assert!(
            controller(&["--no-leader-election", "--leader-election"])
                .lease
                .is_some()
        );
    }
}
