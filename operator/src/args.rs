//! The command line.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderValue;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use flopwatch_bucket::StoreArguments;

use crate::admission::AdmissionOptions;
use crate::admission::entrypoint::EntrypointMode;
use crate::admission::prepare::PrepareOptions;
use crate::certificates::{AgentNames, CertificateOptions, Names};
use crate::controller::ControllerOptions;
use crate::controller::pace::STATUS_WRITES;
use crate::gateway::{AgentOptions, GatewayIdentity, GatewayOptions};
use crate::probes::Listen;
use crate::release::ReleaseOptions;

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
    /// Before an uninstall: stops every capture of the cluster and takes its finalizer off. Safe to run twice.
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
    /// Service account of the agents, in the operator's namespace: their certificates are signed.
    #[arg(long, env = "FLOPWATCH_AGENT_ACCOUNT", default_value = "flopwatch-agent")]
    agent_account: String,
    /// Secret with the authority and its key; only the controller needs it.
    #[arg(long, env = "FLOPWATCH_AUTHORITY_SECRET", default_value = "flopwatch-authority")]
    authority_secret: String,
    /// Service of the gateway, in the operator's namespace. Without one, the gateway gets no certificate.
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
    /// DNS names that readers of the controller's metrics ask for are of a Service of this name, which need not exist.
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
    /// Most writes of captures' statuses per second by all agents together, averaged over a minute; the first and the last write
    /// of each capture are not counted. The more captures run, the less often a new one is written (every 2 s to every 60 s).
    #[arg(long, env = "FLOPWATCH_MAX_STATUS_WRITES_PER_SECOND", default_value_t = STATUS_WRITES, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_status_writes_per_second: u32,
    /// Suspends new captures. The same can be switched without a restart: key `capturesSuspended: "true"` in the
    /// ConfigMap of --config-map.
    #[arg(long, env = "FLOPWATCH_CAPTURES_SUSPENDED")]
    captures_suspended: bool,
    /// ConfigMap in the operator's namespace that is watched for `capturesSuspended`; it need not exist.
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
            common:
                CommonArgs {
                    namespace,
                    listen_metrics,
                    listen_health,
                    log: _,
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
            probes: Listen {
                health: listen_health,
                metrics: listen_metrics,
            },
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

/// Flags of `admission`.
#[derive(Debug, Args)]
pub struct AdmissionArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Where reviews are served, over TLS.
    #[arg(long, env = "FLOPWATCH_LISTEN", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Secret with the certificate, in the operator's namespace; it is watched.
    #[arg(long, env = "FLOPWATCH_TLS_SECRET", default_value = "flopwatch-admission-tls")]
    tls_secret: String,
    /// Image with the launcher at /usr/local/bin/flopwatch-launcher: the agent's.
    #[arg(long, env = "FLOPWATCH_LAUNCHER_IMAGE")]
    launcher_image: String,
    /// Image with Nsight Systems.
    #[arg(long, env = "FLOPWATCH_TOOLS_IMAGE")]
    tools_image: String,
    /// Folder of its target part in that image. It must keep the name target-linux-x64.
    #[arg(long, env = "FLOPWATCH_TOOLS_PATH", default_value = "/opt/nsys/target-linux-x64", value_parser = tools_path)]
    tools_path: String,
    /// Pull policy of both images. Default: the API server's.
    #[arg(long, env = "FLOPWATCH_IMAGE_PULL_POLICY", value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: Option<String>,
    /// Version to write down on prepared pods.
    #[arg(long, env = "FLOPWATCH_VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Look up the entrypoint of images whose containers have no command: `pinned` where the node surely runs what the
    /// registry shows, `all` for every image.
    #[arg(long, env = "FLOPWATCH_ENTRYPOINT_LOOKUP", value_enum, default_value_t = EntrypointMode::Off, num_args = 0..=1, require_equals = true, default_missing_value = "pinned")]
    entrypoint_lookup: EntrypointMode,
    /// Registries (host:port) that are asked over plain HTTP, comma-separated.
    #[arg(long, env = "FLOPWATCH_INSECURE_REGISTRIES", value_delimiter = ',')]
    insecure_registries: Vec<String>,
    /// Mebibytes that the tools take; a pod whose ephemeral-storage limit does not hold them and a capture is not
    /// prepared.
    #[arg(long, env = "FLOPWATCH_TOOLS_SIZE_MEBIBYTES", default_value_t = 200)]
    tools_size_mebibytes: u32,
    /// Memory limit in mebibytes below which a pod is not prepared.
    #[arg(long, env = "FLOPWATCH_MIN_MEMORY_MEBIBYTES", default_value_t = 64)]
    min_memory_mebibytes: u32,
    /// sizeLimit of the volume that a capture grows in. A pod that exceeds it is evicted, so captures are kept below it.
    #[arg(long, env = "FLOPWATCH_RUN_SIZE_LIMIT")]
    run_size_limit: Option<String>,
}

impl AdmissionArgs {
    /// The flags for logging.
    pub fn log(&self) -> &LogArgs {
        &self.common.log
    }

    /// What the flags mean together.
    pub fn options(self) -> AdmissionOptions {
        let Self {
            common:
                CommonArgs {
                    namespace,
                    listen_metrics,
                    listen_health,
                    log: _,
                },
            listen,
            tls_secret,
            launcher_image,
            tools_image,
            tools_path,
            image_pull_policy,
            version,
            entrypoint_lookup,
            insecure_registries,
            tools_size_mebibytes,
            min_memory_mebibytes,
            run_size_limit,
        } = self;
        AdmissionOptions {
            namespace,
            listen,
            probes: Listen {
                health: listen_health,
                metrics: listen_metrics,
            },
            tls_secret,
            prepare: PrepareOptions {
                launcher_image,
                tools_image,
                tools_path,
                image_pull_policy,
                version,
                tools_bytes: u64::from(tools_size_mebibytes) << 20,
                run_size_limit,
                min_memory_bytes: u64::from(min_memory_mebibytes) << 20,
                entrypoints: entrypoint_lookup,
            },
            insecure_registries,
        }
    }
}

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

/// Flags of `gateway`.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Where it is served, over TLS.
    #[arg(long, env = "FLOPWATCH_LISTEN", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Secret with the certificate, in the operator's namespace; it is watched.
    #[arg(long, env = "FLOPWATCH_TLS_SECRET", default_value = "flopwatch-gateway-tls")]
    tls_secret: String,
    /// File with the authority of the agents' certificates.
    #[arg(
        long,
        env = "FLOPWATCH_AGENT_AUTHORITY",
        default_value = "/etc/flopwatch/agents/ca.crt"
    )]
    agent_authority: PathBuf,
    /// The gateway's own service account: it asks for tokens of it, one for each node's agent.
    #[arg(long, env = "FLOPWATCH_SERVICE_ACCOUNT", default_value = "flopwatch-gateway")]
    service_account: String,
    /// The gateway's pod, which those tokens end with.
    #[arg(long, env = "POD_NAME")]
    pod_name: Option<String>,
    /// Its UID.
    #[arg(long, env = "POD_UID")]
    pod_uid: Option<String>,
    /// DNS name in the agents' certificates. Default: flopwatch-agent.NAMESPACE.svc.
    #[arg(long, env = "FLOPWATCH_AGENT_SERVER_NAME")]
    agent_server_name: Option<String>,
    /// Most artifacts that are passed on at once.
    #[arg(long, env = "FLOPWATCH_MAX_TRANSFERS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    max_transfers: u16,
    /// Origin of web pages that may call it, such as `https://grafana.example`; may be given again.
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    cors_origin: Vec<HeaderValue>,
    /// The agents' Service, in the operator's namespace.
    #[arg(long, env = "FLOPWATCH_AGENT_SERVICE", default_value = "flopwatch-agent")]
    agent_service: String,
    #[command(flatten)]
    store: StoreArguments,
}

impl GatewayArgs {
    /// The flags for logging.
    pub fn log(&self) -> &LogArgs {
        &self.common.log
    }

    /// What the flags mean together.
    pub fn options(self) -> GatewayOptions {
        let Self {
            common:
                CommonArgs {
                    namespace,
                    listen_metrics,
                    listen_health,
                    log: _,
                },
            listen,
            tls_secret,
            agent_authority,
            service_account,
            pod_name,
            pod_uid,
            agent_server_name,
            max_transfers,
            cors_origin,
            agent_service,
            store,
        } = self;
        let server_name = agent_server_name.unwrap_or_else(|| format!("flopwatch-agent.{namespace}.svc"));
        let identity = GatewayIdentity {
            namespace: namespace.clone(),
            account: service_account,
            pod: pod_name.zip(pod_uid),
        };
        GatewayOptions {
            namespace,
            listen,
            probes: Listen {
                health: listen_health,
                metrics: listen_metrics,
            },
            tls_secret,
            agents: AgentOptions {
                server_name,
                authority: agent_authority,
                identity,
                transfers: max_transfers.into(),
                service: agent_service,
            },
            store,
            origins: cors_origin,
        }
    }
}

/// A page of any site could otherwise call with what a browser knows.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match (host, HeaderValue::try_from(text)) {
        (Some(host), Ok(value)) if !host.is_empty() && !host.contains(['/', '*']) => Ok(value),
        _ => Err("must be a scheme, a host and perhaps a port, such as https://grafana.example".to_owned()),
    }
}

/// Nsight Systems refuses to start from a folder of another name.
fn tools_path(path: &str) -> Result<String, String> {
    let path = path.trim_end_matches('/');
    if path.starts_with('/') && path.ends_with("/target-linux-x64") {
        Ok(path.to_owned())
    } else {
        Err("must be an absolute path that ends in /target-linux-x64".to_owned())
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
    fn a_release_gives_agents_twenty_seconds_unless_told_otherwise() {
        let grace =
            |flags: &[&str]| match Cli::parse_from(["flopwatch-operator", "release"].iter().chain(flags)).command {
                Command::Release(args) => args.options().grace.as_secs(),
                other => panic!("{other:?}"),
            };
        assert_eq!(grace(&[]), 20);
        assert_eq!(grace(&["--grace-seconds=0"]), 0);
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

    #[test]
    fn the_look_up_is_off_unless_asked_for() {
        let mode = |flags: &[&str]| {
            let line = [
                "flopwatch-operator",
                "admission",
                "--launcher-image=a",
                "--tools-image=b",
            ];
            match Cli::parse_from(line.iter().chain(flags)).command {
                Command::Admission(args) => args.options().prepare.entrypoints,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(mode(&[]), EntrypointMode::Off);
        assert_eq!(mode(&["--entrypoint-lookup"]), EntrypointMode::Pinned);
        assert_eq!(mode(&["--entrypoint-lookup=all"]), EntrypointMode::All);
    }

    #[test]
    fn the_gateways_command_line_in_the_chart_is_understood() {
        let line = [
            "flopwatch-operator",
            "gateway",
            "--namespace=ns",
            "--log-format=json",
            "--log-level=info",
            "--agent-server-name=flopwatch-agent.ns.svc",
            "--agent-authority=/etc/flopwatch/agents/ca.crt",
            "--service-account=flopwatch-gateway",
            "--agent-service=flopwatch-agent",
            "--max-transfers=64",
            "--cors-origin=https://grafana.example",
            "--cors-origin=http://localhost:3000",
        ];
        match Cli::parse_from(line).command {
            Command::Gateway(args) => assert_eq!(args.options().origins.len(), 2),
            other => panic!("{other:?}"),
        }
        for origin in [
            "*",
            "grafana.example",
            "https://*.example",
            "https://grafana.example/",
            "https://",
        ] {
            let option = format!("--cors-origin={origin}");
            assert!(
                Cli::try_parse_from(["flopwatch-operator", "gateway", &option]).is_err(),
                "{origin}"
            );
        }
    }

    #[test]
    fn a_tools_path_of_another_name_is_refused_at_the_start() {
        let line = [
            "flopwatch-operator",
            "admission",
            "--launcher-image=a",
            "--tools-image=b",
            "--tools-path=/opt/nsys",
        ];
        assert!(Cli::try_parse_from(line).is_err());
    }
}
