//! The gateway: sessions, their artifacts and the viewer over HTTP, to those who may.
//!
//! A caller shows a token of the cluster. What they may read is asked of the API server; what they make or delete is made and
//! deleted with their own token. Artifacts come from the agent of the node, as they are: nothing foreign is parsed here.

mod agents;
mod api_server;
mod cookie;
mod deliver;
mod messages;
mod problem;
mod progress;
mod request;
mod routes;
mod sessions;
mod sign_in;
mod sockets;
mod stop;
mod store;
mod targets;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use flopwatch_access::{Limit, Reviewer, ReviewerOptions};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_bucket::{ClusterError, Limits, LocationError, StoreArguments, cluster_name};
use futures::StreamExt as _;
use kube::api::Api;
use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::watcher;
use kube::{Client, Config};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

pub use agents::AgentOptions;
pub use cookie::CookieError;
pub use routes::openapi;

use crate::gateway::agents::Agents;
use crate::gateway::api_server::ApiServer;
use crate::gateway::cookie::Cookies;
use crate::gateway::routes::Gateway;
use crate::gateway::sessions::Sessions;
use crate::gateway::store::ObjectStore;
use crate::metrics::Metrics;
use crate::probes::{self, Readiness};
use crate::serve::{follow_secret, serve};
use crate::watch::follow;

/// Largest body of a request.
const MOST_BYTES: usize = 64 << 10;
/// Most requests whose answer has not begun.
const MOST_REQUESTS: usize = 256;
/// Most clients that listen to sessions.
const MOST_LISTENERS: usize = 256;
/// Most open connections; one more is closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// Longest time in which a client takes nothing of what it is sent.
const STALL: Duration = Duration::from_mins(1);
/// Longest pause within the body of a request.
const BODY: Duration = Duration::from_secs(10);
/// Longest time until an answer begins, with its request's body: an artifact may wait for its turn, for the agent and for the store.
const BEGIN: Duration = Duration::from_mins(2);
/// Longest wait for the controller to give a session its id.
const TAKEN_UP: Duration = Duration::from_secs(5);
/// Longest wait for the first state of the watches.
const FIRST_STATE: Duration = Duration::from_mins(1);

/// How the gateway runs.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Namespace of the operator.
    pub namespace: String,
    /// Where it is served, over TLS.
    pub listen: SocketAddr,
    /// Where metrics and probes are served.
    pub listen_metrics: SocketAddr,
    /// Secret with the certificate; it is watched.
    pub tls_secret: String,
    /// How agents are reached.
    pub agents: AgentOptions,
    /// Where the object store is.
    pub store: StoreArguments,
    /// Origins of web pages that may call it.
    pub origins: Vec<HeaderValue>,
}

/// Why the gateway ended though nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The port of metrics and probes could not be served.
    #[error("cannot serve metrics and probes: {0}")]
    Probes(#[source] std::io::Error),
    /// The gateway's own port could not be served.
    #[error("cannot serve: {0}")]
    Serve(#[source] std::io::Error),
    /// No key for browsers' cookies could be made.
    #[error("cannot make a key: {0}")]
    Key(#[source] CookieError),
    /// The object store cannot be used as it is named.
    #[error("the object store cannot be used: {0}")]
    Location(#[from] LocationError),
    /// The cluster's name in the object store is not known.
    #[error("the object store cannot be used: {0}")]
    Cluster(#[from] ClusterError),
    /// The document cannot be rendered.
    #[error("cannot render the OpenAPI document: {0}")]
    Document(#[source] serde_json::Error),
    /// The sessions could not be listed.
    #[error("the API server did not list the sessions within {FIRST_STATE:?}")]
    FirstState,
    /// A loop that runs for ever ended.
    #[error("the {0} ended")]
    Ended(&'static str),
}

/// Runs until `stop`. `config` says where the API server is; callers' own tokens are shown to it.
pub async fn run(
    client: Client,
    config: Config,
    options: GatewayOptions,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), GatewayError> {
    let readiness = Readiness::default();
    let (sessions, session_writer) = reflector::store();
    let (captures, capture_writer) = reflector::store();
    let (news, heard) = watch::channel(());
    let watches = async {
        tokio::join!(
            keep::<ProfilingSession>(client.clone(), session_writer, &news, metrics.clone()),
            keep::<Capture>(client.clone(), capture_writer, &news, metrics.clone()),
        )
    };
    let first = async {
        let both = async { sessions.wait_until_ready().await.is_ok() && captures.wait_until_ready().await.is_ok() };
        match tokio::time::timeout(FIRST_STATE, both).await {
            Ok(true) => Ok(()),
            _ => Err(GatewayError::FirstState),
        }
    };
    let bucket = match &options.store.store_url {
        Some(_) => options.store.open(&cluster_name(&client).await?, Limits::default())?,
        None => None,
    };
    let gateway = Gateway {
        sessions: Sessions::new(sessions.clone(), captures.clone()),
        reviewer: Reviewer::new(
            client.clone(),
            ReviewerOptions::default(),
            metrics.gateway_access_reviews.clone(),
        ),
        api_server: ApiServer::new(config),
        agents: Agents::new(options.agents.clone()),
        store: bucket.map(|bucket| ObjectStore::new(bucket, metrics.store.reads.clone())),
        cookies: Cookies::new().map_err(GatewayError::Key)?,
        news: heard,
        listeners: Arc::new(Semaphore::new(MOST_LISTENERS)),
        taken_up: TAKEN_UP,
    };
    let router = guarded(gateway, &options.origins, &metrics).map_err(GatewayError::Document)?;
    let probes = probes::serve(
        options.listen_metrics,
        metrics.clone(),
        readiness.clone(),
        Arc::new(|_: &Metrics| {}),
        stop.clone(),
    );
    let (sender, certificate) = watch::channel(None);
    let certificates = follow_secret(&client, &options.namespace, &options.tls_secret, &metrics, sender);
    let serving = async {
        first.await?;
        let limit = Limit::new(MOST_CONNECTIONS, STALL, metrics.refused_connections.clone());
        serve(options.listen, router, certificate, limit, readiness, stop.clone())
            .await
            .map_err(GatewayError::Serve)
    };
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => result?,
        result = probes => {
            result.map_err(GatewayError::Probes)?;
            if !stop.is_cancelled() {
                return Err(GatewayError::Ended("probe server"));
            }
            serving.await?;
        }
        () = certificates => return Err(GatewayError::Ended("watch of the certificate")),
        _ = watches => return Err(GatewayError::Ended("watches")),
    }
    if stop.is_cancelled() {
        Ok(())
    } else {
        Err(GatewayError::Ended("server"))
    }
}

/// Keeps a store at what the cluster holds, and tells of every change.
async fn keep<K>(client: Client, writer: Writer<K>, news: &watch::Sender<()>, metrics: Metrics)
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + Sync
        + 'static,
    K::DynamicType: Default + Eq + std::hash::Hash + Clone + std::fmt::Debug + Unpin + Send + Sync,
{
    let config = watcher::Config::default();
    let mut changes = follow(Api::all(client), config, std::convert::identity, writer, metrics);
    while changes.next().await.is_some() {
        news.send_replace(());
    }
}

/// The paths, with what guards them all.
pub(crate) fn guarded(
    gateway: Gateway,
    origins: &[HeaderValue],
    metrics: &Metrics,
) -> Result<Router, serde_json::Error> {
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins.iter().cloned()))
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::DELETE])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE, RANGE, IF_RANGE, IF_NONE_MATCH])
        .expose_headers([ETAG, CONTENT_RANGE, CONTENT_LENGTH, ACCEPT_RANGES]);
    let gateway = Arc::new(gateway);
    let sockets = sockets::layer(&gateway);
    Ok(routes::router(gateway)?
        .layer(middleware::from_fn_with_state(metrics.clone(), around))
        // It has a policy of its own, and is the same for everybody.
        .merge(flopwatch_viewer::gateway_router())
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(RequestBodyTimeoutLayer::new(BODY))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, BEGIN))
        .layer(GlobalConcurrencyLimitLayer::new(MOST_REQUESTS))
        // Outside of that limit: a client that polls waits for its answer most of the time.
        .layer(sockets)
        .layer(cors))
}

/// Headers of every answer, and the count.
async fn around(
    State(metrics): State<Metrics>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    headers.append(VARY, HeaderValue::from_static("Authorization, Cookie, Sec-Fetch-Site"));
    let class = match response.status().as_u16() {
        ..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    };
    let path = matched.as_ref().map_or("none", MatchedPath::as_str);
    metrics.gateway_requests.with_label_values(&[path, class]).inc();
    response
}

#[cfg(test)]
mod tests;
