//! Certificates of admission, of the controller and of the gateway: made, rotated and published by
//! the leader; those of the agents are [signed](agents) for them.
//!
//! An authority of our own, whose key only the controller reads, signs one certificate for the
//! admission Service, one for the controller's metrics, and one for the gateway where there is one.
//! All are renewed at two thirds of their life; so is the authority, whose predecessor stays
//! trusted until it runs out, and which signs nothing until its own certificate had time to reach
//! those who trust it.

pub mod agents;
mod decide;
mod issue;
mod material;
mod publish;

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;

use crate::deadline::CallError;
use crate::metrics::Metrics;

pub use agents::AgentNames;
pub use decide::{Decision, decide};
pub use issue::{IssueError, carry_out};
pub use material::{Authority, Leaf, Material, Names, SecretData};

/// Time between two looks at the secrets and at the webhook configuration.
const POLL_INTERVAL: Duration = Duration::from_mins(1);
/// Time until the next look after one failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// What the certificates are for and where they are kept.
#[derive(Clone, Debug)]
pub struct CertificateOptions {
    /// Namespace of the secrets.
    pub namespace: String,
    /// Secret with the authority and its key; nobody but the controller reads it.
    pub authority_secret: String,
    /// Secret that admission serves with.
    pub webhook_secret: String,
    /// DNS names that the certificates are good for.
    pub names: Names,
    /// Service of admission, as the webhook configuration names it.
    pub webhook_service: String,
    /// MutatingWebhookConfiguration whose `caBundle` is kept.
    pub webhook_configuration: String,
    /// Secret that the gateway serves with.
    pub gateway_secret: String,
    /// Secret that the controller serves its metrics with.
    pub controller_secret: String,
    /// ConfigMap with the authority that the gateway's clients trust (`ca.crt`).
    pub gateway_authority: String,
    /// What is signed for agents, which have keys of their own.
    pub agents: AgentNames,
}

/// Why certificates could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A secret or the webhook configuration could not be read or written.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

impl CertificateError {
    fn outcome(&self) -> &'static str {
        match self {
            Self::Call(error) => error.outcome(),
            Self::Issue(_) => "failed",
        }
    }
}

/// Keeps the certificates up to date for ever.
pub async fn keep(client: &Client, options: &CertificateOptions, metrics: &Metrics) {
    loop {
        let started = std::time::Instant::now();
        let result = bring_up_to_date(client, options, metrics).await;
        metrics
            .reconciliation_duration
            .with_label_values(&["certificates"])
            .observe(started.elapsed().as_secs_f64());
        let outcome = result.as_ref().map_or_else(CertificateError::outcome, |()| "completed");
        metrics
            .reconciliations
            .with_label_values(&["certificates", outcome])
            .inc();
        let wait = match result {
            Ok(()) => POLL_INTERVAL,
            Err(error) => {
                tracing::error!(%error, "certificates are not up to date");
                RETRY_INTERVAL
            }
        };
        tokio::time::sleep(wait.mul_f64(1.0 + fastrand::f64() / 5.0)).await;
    }
}

async fn bring_up_to_date(
    client: &Client,
    options: &CertificateOptions,
    metrics: &Metrics,
) -> Result<(), CertificateError> {
    let now = Timestamp::now();
    let current = publish::read(client, options).await?;
    let decision = decide(&current, &options.names, now);
    let desired = carry_out(&decision, &current, &options.names, now)?;
    if decision != Decision::default() {
        tracing::info!(?decision, "renewing certificates");
    }
    publish::write(client, options, &current, &desired).await?;
    for (name, certificate) in [
        (
            "authority",
            desired.authority.as_ref().map(|authority| &authority.certificate),
        ),
        ("admission", desired.webhook.as_ref().map(|leaf| &leaf.certificate)),
        ("gateway", desired.gateway.as_ref().map(|leaf| &leaf.certificate)),
        ("controller", desired.controller.as_ref().map(|leaf| &leaf.certificate)),
    ] {
        if let Some(facts) = certificate.and_then(|pem| material::Facts::of(pem)) {
            let gauge = metrics.certificate_expiry.with_label_values(&[name]);
            gauge.set(facts.not_after.as_duration().as_secs_f64());
        }
    }
    Ok(())
}
