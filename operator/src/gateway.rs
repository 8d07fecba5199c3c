//! The gateway: sessions, their artifacts and the viewer over HTTP, to those who may.
//!
//! A caller shows a token of the cluster. What they may read is asked of the API server; what they make or delete is made and
//! deleted with their own token. Artifacts come from the agent of the node, as they are: nothing foreign is parsed here. Rows of the fleet were
//! written by agents.

mod access;
mod agents;
mod alerts;
mod analyses;
mod api_server;
mod artifact_routes;
mod bring;
mod cookie;
mod defaults;
mod deliver;
mod directory;
mod document;
mod extract;
mod fleet;
mod messages;
mod mode;
mod node_tokens;
mod options;
mod problem;
mod profiler;
mod progress;
mod request;
mod routes;
mod seat;
mod session_routes;
mod sessions;
mod sign_in;
mod slots;
mod sockets;
mod state;
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
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_artifacts::object_store::{ClusterError, Limits, LocationError, StoreArguments, cluster_name};
use flopwatch_http::{Limit, Reviewer, ReviewerOptions};
use futures::StreamExt as _;
use kube::api::Api;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{reflector, watcher};
use kube::{Client, Config};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

pub use agents::AgentOptions;
pub use cookie::CookieError;
pub use node_tokens::GatewayIdentity;
pub use routes::openapi;

use crate::gateway::agents::Agents;
use crate::gateway::alerts::Desk;
use crate::gateway::api_server::ApiServer;
use crate::gateway::cookie::Cookies;
use crate::gateway::sessions::Sessions;
use crate::gateway::slots::Slots;
use crate::gateway::state::{Gateway, Parts};
use crate::gateway::store::ObjectStore;
use crate::metrics::Metrics;
use crate::probes::{Listen, Probes, Readiness};
use crate::serve::{follow_secret, serve};
use crate::watch::{events, follow};

/// Largest body of a request.
const MOST_BYTES: usize = 64 << 10;
/// Most requests whose answer has not begun.
const MOST_REQUESTS: usize = 256;
/// Most clients that listen to sessions, and most of one user.
const MOST_LISTENERS: usize = 256;
const MOST_LISTENERS_EACH: usize = 64;
/// Most connections of Socket.IO that showed no token yet, and most of one address. Each has 10 s.
const MOST_VISITORS: usize = 64;
const MOST_VISITORS_EACH: usize = 32;
/// Most open connections; one more is closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// Longest time in which a client takes nothing of what it is sent.
const STALL: Duration = Duration::from_mins(1);
/// Longest pause within the body of a request.
const BODY: Duration = Duration::from_secs(10);
/// Longest time until an answer begins, with its request's body: an artifact may wait for its turn, for the agent and for the store.
const BEGIN: Duration = Duration::from_mins(2);
/// Longest wait for the controller to give a session its id.
const ID_TIMEOUT: Duration = Duration::from_secs(5);
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
    pub probes: Listen,
    /// Secret with the certificate; it is watched.
    pub tls_secret: String,
    /// How agents are reached.
    pub agents: AgentOptions,
    /// Where the object store is.
    pub store: StoreArguments,
    /// Origins of web pages that may call it.
    pub origins: Vec<HeaderValue>,
    /// Namespace of requests to profile that name none.
    pub run_namespace: Option<String>,
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
    /// Sessions, captures or schedules could not be listed.
    #[error("the API server did not list sessions, captures and schedules within {FIRST_STATE:?}")]
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
    let sessions = Sessions::new(metrics.gateway_notices.clone());
    let (schedules, writer) = reflector::store();
    let watches = keep(&client, &sessions, writer, &metrics);
    let first = async {
        let listed = tokio::time::timeout(FIRST_STATE, async {
            sessions.first().await;
            schedules
                .wait_until_ready()
                .await
                .map_err(|_gone| GatewayError::Ended("watches"))
        });
        listed.await.map_err(|_elapsed| GatewayError::FirstState)?
    };
    let bucket = match &options.store.store_url {
        Some(_) => options.store.open(&cluster_name(&client).await?, Limits::default())?,
        None => None,
    };
    let gateway = Gateway::from(Parts {
        sessions: sessions.clone(),
        reviewer: Reviewer::new(
            client.clone(),
            ReviewerOptions::default(),
            metrics.gateway_access_reviews.clone(),
        ),
        api_server: ApiServer::new(config),
        agents: Agents::new(client.clone(), options.agents.clone()),
        store: bucket.map(|bucket| ObjectStore::new(bucket, metrics.store.reads.clone())),
        cookies: Cookies::new().map_err(GatewayError::Key)?,
        listeners: Slots::new(MOST_LISTENERS, MOST_LISTENERS_EACH),
        visitors: Slots::new(MOST_VISITORS, MOST_VISITORS_EACH),
        alerts: Desk::new(client.clone(), schedules.clone(), metrics.alerts.clone()),
        id_timeout: ID_TIMEOUT,
        run_namespace: options.run_namespace,
    });
    let router = guarded(gateway, &options.origins, &metrics).map_err(GatewayError::Document)?;
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
        () = watches => return Err(GatewayError::Ended("watches")),
    }
    if stop.is_cancelled() {
        Ok(())
    } else {
        Err(GatewayError::Ended("server"))
    }
}

/// Keeps up what the gateway knows of sessions, captures and schedules.
async fn keep(client: &Client, sessions: &Sessions, schedules: Writer<ProfilingSchedule>, metrics: &Metrics) {
    let config = watcher::Config::default;
    let mut of_sessions = events(
        Api::all(client.clone()),
        config(),
        std::convert::identity,
        metrics.clone(),
    );
    let mut of_captures = events(
        Api::all(client.clone()),
        config(),
        std::convert::identity,
        metrics.clone(),
    );
    let mut of_schedules = follow(
        Api::all(client.clone()),
        config(),
        std::convert::identity,
        schedules,
        metrics.clone(),
    );
    let keep_sessions = async {
        while let Some(event) = of_sessions.next().await {
            sessions.session_event(event);
        }
    };
    let keep_captures = async {
        while let Some(event) = of_captures.next().await {
            sessions.capture_event(event);
        }
    };
    let keep_schedules = async { while of_schedules.next().await.is_some() {} };
    tokio::join!(keep_sessions, keep_captures, keep_schedules);
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
    let (sockets, seats) = (sockets::layer(&gateway.subscriptions), gateway.seats.clone());
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
        .layer(middleware::from_fn_with_state(seats, seat::seat))
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
mod crate_tests;
