//! The gateway: sessions, their artifacts and the viewer over HTTP, to those who may.
//!
//! A caller shows a token of the cluster. What they may read is asked of the API server; what they
//! make or delete is made and deleted with their own token. Artifacts come from the agent of the
//! node, as they are: nothing foreign is parsed here. Rows of the fleet were written by agents.

mod access;
mod agents;
mod alerts;
mod analyses;
mod api_server;
mod artifact_routes;
mod connection_permits;
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
mod transfers;

use std::convert::identity;
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
use crate::gateway::alerts::AlertDecider;
use crate::gateway::api_server::ApiServer;
use crate::gateway::cookie::Cookies;
use crate::gateway::sessions::Sessions;
use crate::gateway::slots::Slots;
use crate::gateway::state::{Gateway, GatewayParts};
use crate::gateway::store::ObjectStore;
use crate::metrics::Metrics;
use crate::probes::{Listen, Probes, Readiness};
use crate::serve::{follow_secret, serve};
use crate::watch::{events, follow};

/// Largest body of a request.
const MAX_BODY_BYTES: usize = 64 << 10;
/// Most requests whose answer has not begun.
const MAX_REQUESTS: usize = 256;
/// Most clients that listen to sessions at once.
const MAX_LISTENERS: usize = 256;
/// Most clients of one user that listen to sessions at once.
const MAX_LISTENERS_PER_USER: usize = 64;
/// Most connections of Socket.IO whose client has shown no token yet; each is closed after 10 s.
const MAX_UNAUTHENTICATED: usize = 64;
/// Most connections of one IP address whose client has shown no token yet.
const MAX_UNAUTHENTICATED_PER_ADDRESS: usize = 32;
/// Most open connections; one more is closed at once.
const MAX_CONNECTIONS: usize = 1024;
/// Longest time in which a client takes nothing of what it is sent.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest pause within the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time until an answer begins, with its request's body: an artifact may wait for a
/// transfer permit, for the agent and for the store.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
/// Longest wait for the controller to give a session its id.
const ID_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the first state of the watches.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_mins(1);

/// How the gateway runs.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Namespace of the operator.
    pub namespace: String,
    /// Address that the gateway listens on, over TLS.
    pub listen: SocketAddr,
    /// Address and form of the port of metrics and probes.
    pub probes: Listen,
    /// Name of the Secret with the gateway's certificate; a change of it is taken up while serving.
    pub tls_secret: String,
    /// How agents are reached.
    pub agents: AgentOptions,
    /// Location of the object store; the gateway runs without one.
    pub store: StoreArguments,
    /// Origins of web pages that may call the gateway from a browser (CORS).
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
    #[error("the API server did not list sessions, captures and schedules within {FIRST_LIST_TIMEOUT:?}")]
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
    let watches = run_watches(&client, &sessions, writer, &metrics);
    let first = async {
        let listed = tokio::time::timeout(FIRST_LIST_TIMEOUT, async {
            sessions.wait_until_listed().await;
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
    let gateway = Gateway::from(GatewayParts {
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
        listeners: Slots::new(MAX_LISTENERS, MAX_LISTENERS_PER_USER),
        unauthenticated: Slots::new(MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_PER_ADDRESS),
        alerts: AlertDecider::new(client.clone(), schedules.clone(), metrics.alerts.clone()),
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
        let limit = Limit::new(MAX_CONNECTIONS, STALL_TIMEOUT, metrics.refused_connections.clone());
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

/// Feeds `sessions` and `schedules` from watches of the API server; runs for ever.
async fn run_watches(client: &Client, sessions: &Sessions, schedules: Writer<ProfilingSchedule>, metrics: &Metrics) {
    let config = watcher::Config::default;
    let mut of_sessions = events(Api::all(client.clone()), config(), identity, metrics.clone());
    let mut of_captures = events(Api::all(client.clone()), config(), identity, metrics.clone());
    let mut of_schedules = follow(Api::all(client.clone()), config(), identity, schedules, metrics.clone());
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

/// The router of every path, with the limits on size, time and concurrency that hold for them all.
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
    let (sockets, permits) = (sockets::layer(&gateway.subscriptions), gateway.permits.clone());
    Ok(routes::router(gateway)?
        .layer(middleware::from_fn_with_state(metrics.clone(), finish_response))
        // The viewer's pages have a content security policy of their own and are public.
        .merge(flopwatch_viewer::gateway_router())
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            ANSWER_TIMEOUT,
        ))
        .layer(GlobalConcurrencyLimitLayer::new(MAX_REQUESTS))
        // Outside of that limit: a client that polls waits for its answer most of the time.
        .layer(sockets)
        .layer(middleware::from_fn_with_state(
            permits,
            connection_permits::grant_permit,
        ))
        .layer(cors))
}

/// Sets the security headers of every answer and counts it by path and class of status.
async fn finish_response(
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
