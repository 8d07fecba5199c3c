//! The command line of `controller`.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{ArgAction, Args};
use flopwatch_artifacts::object_store::StoreArguments;

use super::{CommonArgs, LogArgs};
use crate::certificates::{AgentNames, CertificateOptions, Names};
use crate::controller::ControllerOptions;
use crate::controller::pace::DEFAULT_STATUS_WRITES_PER_SECOND;

/// Flags of `controller`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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
    /// Unique replica identity for leader election. Default: the pod's name.
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
    /// Service account of the agents, in the operator's namespace: their certificates are signed.
    #[arg(long, env = "FLOPWATCH_AGENT_ACCOUNT", default_value = "flopwatch-agent")]
    agent_account: String,
    /// Secret with the authority and its key; only the controller needs it.
    #[arg(long, env = "FLOPWATCH_AUTHORITY_SECRET", default_value = "flopwatch-authority")]
    authority_secret: String,
    /// Service of the gateway, in the operator's namespace. Without one, the gateway gets no
    /// certificate.
    #[arg(long, env = "FLOPWATCH_GATEWAY_SERVICE")]
    gateway_service: Option<String>,
    /// Secret that the gateway serves with.
    #[arg(long, env = "FLOPWATCH_GATEWAY_SECRET", default_value = "flopwatch-gateway-tls")]
    gateway_secret: String,
    /// ConfigMap that names the authority of the gateway's certificate (ca.crt), for clients.
    #[arg(long, env = "FLOPWATCH_GATEWAY_AUTHORITY", default_value = "flopwatch-gateway-ca")]
    gateway_authority: String,
    /// Secret that the controller serves its metrics with.
    #[arg(
        long,
        env = "FLOPWATCH_CONTROLLER_SECRET",
        default_value = "flopwatch-controller-tls"
    )]
    controller_secret: String,
    /// DNS names that readers of the controller's metrics ask for are of a Service of this name,
    /// which need not exist.
    #[arg(long, env = "FLOPWATCH_CONTROLLER_SERVICE", default_value = "flopwatch-controller")]
    controller_service: String,
    /// DNS name that clients ask agents for. Default: flopwatch-agent.NAMESPACE.svc.
    #[arg(long, env = "FLOPWATCH_AGENT_SERVER_NAME")]
    agent_server_name: Option<String>,
    /// Makes no certificates: something else fills the secrets and the caBundle.
    #[arg(long, env = "FLOPWATCH_NO_CERTIFICATES")]
    no_certificates: bool,
    /// Most passes at once, of each controller.
    #[arg(long, env = "FLOPWATCH_MAX_CONCURRENT_RECONCILES", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_concurrent_reconciles: u16,
    /// Most captures at once in one namespace; 0: no limit. Sessions beyond it wait.
    #[arg(long, env = "FLOPWATCH_MAX_CAPTURES_PER_NAMESPACE", default_value_t = 10)]
    max_captures_per_namespace: u16,
    /// Most writes of captures' statuses per second by all agents together, averaged over a minute;
    /// the first and the last write of each capture are not counted. The more captures run, the
    /// less often a new one is written (every 2 s to every 60 s).
    #[arg(long, env = "FLOPWATCH_MAX_STATUS_WRITES_PER_SECOND", default_value_t = DEFAULT_STATUS_WRITES_PER_SECOND, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_status_writes_per_second: u32,
    /// Suspends new captures. The same can be switched without a restart: key
    /// `capturesSuspended: "true"` in the ConfigMap of --config-map.
    #[arg(long, env = "FLOPWATCH_CAPTURES_SUSPENDED")]
    captures_suspended: bool,
    /// ConfigMap in the operator's namespace that is watched for `capturesSuspended`; it need not
    /// exist.
    #[arg(long, env = "FLOPWATCH_CONFIG_MAP", default_value = "flopwatch-controller")]
    config_map: String,
    #[command(flatten)]
    store: StoreArguments,
}

impl ControllerArgs {
    /// The flags for logging.
    pub fn log(&self) -> &LogArgs {
        &self.common.log
    }

    /// What the flags mean together.
    pub fn options(self) -> ControllerOptions {
        let Self {
            common,
            no_leader_election,
            leader_election: _,
            lease_name,
            identity,
            node_lost_seconds,
            agent_selector,
            webhook_service,
            webhook_configuration,
            webhook_secret,
            agent_account,
            gateway_service,
            gateway_secret,
            gateway_authority,
            authority_secret,
            controller_secret,
            controller_service,
            agent_server_name,
            no_certificates,
            max_concurrent_reconciles,
            max_captures_per_namespace,
            max_status_writes_per_second,
            captures_suspended,
            config_map,
            store,
        } = self;
        let probes = common.probes();
        let namespace = common.namespace;
        let of_service = |service: &String| {
            vec![
                format!("{service}.{namespace}.svc"),
                format!("{service}.{namespace}.svc.cluster.local"),
            ]
        };
        let names = Names {
            webhook: of_service(&webhook_service),
            gateway: gateway_service.as_ref().map(of_service).unwrap_or_default(),
            controller: of_service(&controller_service),
        };
        let agents = AgentNames {
            user: format!("system:serviceaccount:{namespace}:{agent_account}"),
            server_name: agent_server_name.unwrap_or_else(|| format!("flopwatch-agent.{namespace}.svc")),
        };
        let certificates = (!no_certificates).then(|| CertificateOptions {
            namespace: namespace.clone(),
            authority_secret,
            webhook_secret,
            names,
            webhook_service,
            webhook_configuration,
            gateway_secret,
            controller_secret: controller_secret.clone(),
            gateway_authority,
            agents,
        });
        ControllerOptions {
            namespace,
            probes,
            tls_secret: controller_secret,
            lease: (!no_leader_election).then_some(lease_name),
            identity,
            node_lost: Duration::from_secs(u64::from(node_lost_seconds)),
            agent_selector,
            namespace_limit: NonZeroUsize::new(max_captures_per_namespace.into()),
            status_writes: max_status_writes_per_second,
            concurrency: max_concurrent_reconciles,
            suspended: captures_suspended,
            config_map,
            store,
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
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

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
        assert_eq!(certificates.names.webhook[0], "flopwatch-admission.ns.svc");
        assert_eq!(certificates.names.controller[0], "flopwatch-controller.ns.svc");
        assert_eq!(certificates.agents.server_name, "flopwatch-agent.ns.svc");
        assert_eq!(certificates.agents.user, "system:serviceaccount:ns:flopwatch-agent");
        assert!(certificates.names.gateway.is_empty());
        let gateway = controller(&["--gateway-service=g"]).certificates.unwrap().names.gateway;
        assert_eq!(gateway[0], "g.ns.svc");
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
