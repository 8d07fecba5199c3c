//! The admission process: mutating webhooks that prepare pods which opted in, and that record the
//! requester of a session.
//!
//! Only one object is refused: a new pod whose own manifest claims that it was prepared. Every
//! other object is admitted, changed or unchanged, also where a review fails or runs out of time. A
//! review takes at most 1.9 s; at most 128 are under way at once, each of at most 8 MiB.

pub mod delivery;
pub mod entrypoint;
pub mod prepare;
mod quantity;
pub mod refusal;
mod requester;
mod review;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::post;
use flopwatch_http::Limit;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower_http::timeout::TimeoutLayer;

use crate::admission::delivery::{Delivering, DeliveryMode};
use crate::admission::entrypoint::EntrypointLookup;
use crate::admission::prepare::PrepareOptions;
use crate::metrics::Metrics;
use crate::probes::{Listen, Probes, Readiness};
use crate::serve::{follow_secret, serve};

/// Longest time that one review may take; the API server waits for two seconds.
const REVIEW_DEADLINE: Duration = Duration::from_millis(1900);
/// Largest review: an object of 1.5 MiB, twice, and the review around it.
const MAX_REVIEW_BYTES: usize = 8 << 20;
/// Most reviews at once.
const MAX_REVIEWS: usize = 128;
/// Most open connections: the API servers keep a few each.
const MAX_CONNECTIONS: usize = 4096;
/// Longest time in which an API server takes nothing of an answer.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The options of the admission process.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// Namespace of the operator.
    pub namespace: String,
    /// Address that reviews are served on, over TLS.
    pub listen: SocketAddr,
    /// Address and form of the port of metrics and probes.
    pub probes: Listen,
    /// Name of the Secret with the certificate; a change of it is taken up while serving.
    pub tls_secret: String,
    /// Images, paths and limits of the preparation.
    pub prepare: PrepareOptions,
    /// Whether images with tools are mounted into pods or copied by init containers.
    pub delivery: DeliveryMode,
    /// Registries (host and port) that are asked over plain HTTP.
    pub insecure_registries: Vec<String>,
}

/// Why the admission process ended before it was asked to stop.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The port of metrics and probes could not be served.
    #[error("cannot serve metrics and probes: {0}")]
    Probes(#[source] std::io::Error),
    /// The port of the reviews could not be served.
    #[error("cannot serve reviews: {0}")]
    Reviews(#[source] std::io::Error),
    /// A task that should run for ever ended; the text names it.
    #[error("the {0} ended")]
    Ended(&'static str),
}

/// The state that the handlers of reviews share.
pub(crate) struct Reviewer {
    client: Client,
    /// User name of the gateway's service account.
    gateway: String,
    prepare: PrepareOptions,
    delivering: Delivering,
    lookup: EntrypointLookup,
    metrics: Metrics,
}

/// Serves reviews, metrics and probes until `stop` is cancelled. The error names the port or task
/// that ended earlier.
pub async fn run(
    client: Client,
    options: AdmissionOptions,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), AdmissionError> {
    let readiness = Readiness::default();
    let (delivering, discovery) = delivery::start(&client, &options.namespace, options.delivery, &metrics);
    let reviewer = Reviewer {
        client: client.clone(),
        gateway: gateway_user(&options.namespace),
        prepare: options.prepare.clone(),
        delivering,
        lookup: EntrypointLookup::new(options.insecure_registries.clone(), metrics.clone()),
        metrics: metrics.clone(),
    };
    let (sender, certificate) = watch::channel(None);
    let probes = Probes {
        listen: options.probes,
        metrics: metrics.clone(),
        refresh: Arc::new(|_: &Metrics| {}),
        readiness: readiness.clone(),
        certificate: certificate.clone(),
    };
    let probes = probes.serve(client.clone(), stop.clone());
    let certificates = follow_secret(&client, &options.namespace, &options.tls_secret, &metrics, sender);
    let limit = Limit::new(MAX_CONNECTIONS, STALL_TIMEOUT, metrics.refused_connections.clone());
    let reviews = serve(
        options.listen,
        router(Arc::new(reviewer)),
        certificate,
        limit,
        readiness,
        stop.clone(),
    );
    tokio::pin!(reviews);
    tokio::select! {
        result = &mut reviews => result.map_err(AdmissionError::Reviews)?,
        result = probes => {
            result.map_err(AdmissionError::Probes)?;
            if !stop.is_cancelled() {
                return Err(AdmissionError::Ended("probe server"));
            }
            reviews.await.map_err(AdmissionError::Reviews)?;
        }
        () = discovery => return Err(AdmissionError::Ended("look at what the cluster mounts")),
        () = certificates => return Err(AdmissionError::Ended("watch of the certificate")),
    }
    if stop.is_cancelled() {
        Ok(())
    } else {
        Err(AdmissionError::Ended("review server"))
    }
}

/// User name of the gateway's service account, which creates the sessions of alerts.
fn gateway_user(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:flopwatch-gateway")
}

/// The router of the webhooks, with the limits on their size, time and number.
pub(crate) fn router(reviewer: Arc<Reviewer>) -> Router {
    Router::new()
        .route("/guard-pods", post(review::guard_pods))
        .route("/mutate-pods", post(review::mutate_pods))
        .route("/mutate-sessions", post(review::mutate_sessions))
        .layer(DefaultBodyLimit::max(MAX_REVIEW_BYTES))
        .layer(GlobalConcurrencyLimitLayer::new(MAX_REVIEWS))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::GATEWAY_TIMEOUT,
            REVIEW_DEADLINE,
        ))
        .with_state(reviewer)
}

#[cfg(test)]
mod tests;
