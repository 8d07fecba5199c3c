//! `/healthz` and `/readyz` in plain HTTP for whoever asks, and `/metrics` over TLS for those who
//! may read it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use flopwatch_api::METRICS_AUDIENCE;
use flopwatch_http::{Limit, Reviewer, ReviewerOptions, for_readers_of_paths};
use kube::Client;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::serve::serve;

/// Most connections of those who read metrics.
const MAX_CONNECTIONS: usize = 32;
/// Longest time in which one of them takes nothing of an answer.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a process says how it is.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Address of `/healthz` and `/readyz`, in plain HTTP.
    pub health: SocketAddr,
    /// Address of `/metrics`, over TLS.
    pub metrics: SocketAddr,
}

/// Whether the process can do its work; false until told otherwise.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that the process can do its work from now on.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    /// Whether the process can do its work.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What refreshes gauges that are computed when they are read.
pub type Refresh = Arc<dyn Fn(&Metrics) + Send + Sync>;

/// What is served of a process beside its work.
pub(crate) struct Probes {
    /// The addresses of its health and of its series.
    pub(crate) listen: Listen,
    /// Series that `/metrics` shows.
    pub(crate) metrics: Metrics,
    /// What refreshes some of them.
    pub(crate) refresh: Refresh,
    /// Whether it can work.
    pub(crate) readiness: Readiness,
    /// What metrics are served with, once there is one.
    pub(crate) certificate: watch::Receiver<Option<Arc<ServerConfig>>>,
}

impl Probes {
    /// Serves until `stop`; `client` asks who may read metrics.
    pub(crate) async fn serve(self, client: Client, stop: CancellationToken) -> std::io::Result<()> {
        let Self {
            listen,
            metrics,
            refresh,
            readiness,
            certificate,
        } = self;
        let listener = tokio::net::TcpListener::bind(listen.health).await?;
        tracing::info!(address = %listener.local_addr()?, "serving probes");
        let health = axum::serve(listener, health(readiness)).with_graceful_shutdown(stop.clone().cancelled_owned());
        let options = ReviewerOptions::for_metrics(METRICS_AUDIENCE);
        let reviewer = Arc::new(Reviewer::new(client, options, metrics.metrics_access_reviews.clone()));
        let limit = Limit::new(MAX_CONNECTIONS, STALL_TIMEOUT, metrics.refused_connections.clone());
        let series = series(metrics, refresh, reviewer);
        let served = Readiness::default();
        let series = serve(listen.metrics, series, certificate, limit, served, stop);
        tokio::try_join!(async { health.await }, series).map(|_ended| ())
    }
}

fn health(readiness: Readiness) -> axum::Router {
    axum::Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(readiness)
}

/// The series: those of the controller name pods and kernels of every tenant.
fn series(metrics: Metrics, refresh: Refresh, reviewer: Arc<Reviewer>) -> axum::Router {
    let routes = axum::Router::new()
        .route("/metrics", get(render))
        .with_state((metrics, refresh));
    for_readers_of_paths(routes, reviewer)
}

async fn render(State((metrics, refresh)): State<(Metrics, Refresh)>) -> axum::response::Response {
    refresh(&metrics);
    match metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, &'static str) {
    if readiness.get() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use flopwatch_test_harness::{ApiServer, Identity, Right};
    use http_body_util::BodyExt as _;
    use serde_json::json;
    use tower::ServiceExt as _;

    use super::*;

    async fn ask(router: &axum::Router, path: &str, token: Option<&str>) -> (StatusCode, String) {
        let request = Request::get(path);
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        let answer = router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// An API server that knows two tenants and a Prometheus, of whom the last alone may read
    /// `/metrics`.
    fn api_server() -> ApiServer {
        let server = ApiServer::new();
        for user in ["tenant-a", "tenant-b", "prometheus"] {
            server.add_token(user, Identity::new(user));
        }
        server.allow("prometheus", Right::path("get", "/metrics"));
        server
    }

    #[tokio::test]
    async fn readyz_follows_readiness_and_healthz_does_not() {
        let readiness = Readiness::default();
        let router = health(readiness.clone());
        assert_eq!(ask(&router, "/readyz", None).await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(&router, "/healthz", None).await.0, StatusCode::OK);
        readiness.set(true);
        assert_eq!(ask(&router, "/readyz", None).await.0, StatusCode::OK);
        assert_eq!(
            ask(&router, "/metrics", Some("prometheus")).await.0,
            StatusCode::NOT_FOUND
        );
    }

    #[tokio::test]
    async fn two_tenants_and_metrics() {
        let server = api_server();
        let metrics = Metrics::new().unwrap();
        let reviews = metrics.metrics_access_reviews.clone();
        let options = ReviewerOptions::for_metrics(METRICS_AUDIENCE);
        let reviewer = Arc::new(Reviewer::new(server.client("flopwatch"), options, reviews.clone()));
        let refresh: Refresh = Arc::new(|metrics| metrics.leader.set(1));
        let router = series(metrics, refresh, reviewer);
        for (token, expected) in [
            (None, StatusCode::UNAUTHORIZED),
            (Some("junk"), StatusCode::UNAUTHORIZED),
            (Some("tenant-a"), StatusCode::FORBIDDEN),
            (Some("tenant-b"), StatusCode::FORBIDDEN),
        ] {
            let (status, message) = ask(&router, "/metrics", token).await;
            assert_eq!(status, expected, "{token:?}");
            assert!(!message.contains("flopwatch_leader"), "{token:?}: {message}");
        }
        for _ in 0..3 {
            let (status, message) = ask(&router, "/metrics", Some("prometheus")).await;
            assert_eq!(status, StatusCode::OK);
            assert!(message.contains("flopwatch_leader 1"), "{message}");
        }
        let calls = server.calls().into_iter();
        for review in calls.filter(|call| call.path.ends_with("/subjectaccessreviews")) {
            let spec = &review.body["spec"];
            assert_eq!(
                spec["nonResourceAttributes"],
                json!({"path": "/metrics", "verb": "get"})
            );
            assert!(spec["resourceAttributes"].is_null());
        }
        let allowed = reviews.with_label_values(&["access", "allowed"]).get();
        assert_eq!(allowed, 1, "a scrape soon after another asks nobody");
    }
}
