//! The command line of `gateway`.

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::http::HeaderValue;
use clap::Args;
use flopwatch_artifacts::object_store::StoreArguments;

use super::{CommonArgs, LogArgs};
use crate::gateway::{AgentOptions, GatewayIdentity, GatewayOptions};

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
    /// UID of the gateway's own pod, which its tokens are bound to.
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
    /// Namespace of requests to profile that name none. Default: they are refused.
    #[arg(long, env = "FLOPWATCH_RUN_NAMESPACE")]
    run_namespace: Option<String>,
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
            common,
            listen,
            tls_secret,
            agent_authority,
            service_account,
            pod_name,
            pod_uid,
            agent_server_name,
            max_transfers,
            cors_origin,
            run_namespace,
            agent_service,
            store,
        } = self;
        let probes = common.probes();
        let namespace = common.namespace;
        let server_name = agent_server_name.unwrap_or_else(|| format!("flopwatch-agent.{namespace}.svc"));
        let identity = GatewayIdentity {
            namespace: namespace.clone(),
            account: service_account,
            pod: pod_name.zip(pod_uid),
        };
        GatewayOptions {
            namespace,
            listen,
            probes,
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
            run_namespace,
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

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
}
