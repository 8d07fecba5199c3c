//! The plain HTTP port: `/metrics`, `/healthz`, `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

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

#[derive(Clone)]
struct Probes {
    metrics: Metrics,
    readiness: Readiness,
    refresh: Refresh,
}

/// Serves until `stop`.
pub async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    readiness: Readiness,
    refresh: Refresh,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "serving metrics and probes");
    axum::serve(
        listener,
        router(Probes {
            metrics,
            readiness,
            refresh,
        }),
    )
    .with_graceful_shutdown(stop.cancelled_owned())
    .await
}

fn router(probes: Probes) -> axum::Router {
    axum::Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(probes)
}

async fn metrics(State(probes): State<Probes>) -> axum::response::Response {
    (probes.refresh)(&probes.metrics);
    match probes.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn readyz(State(probes): State<Probes>) -> (StatusCode, &'static str) {
    if probes.readiness.get() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::*;

    async fn status(router: &axum::Router, path: &str) -> StatusCode {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn readyz_follows_readiness_and_healthz_does_not() {
        let probes = Probes {
            metrics: Metrics::new().unwrap(),
            readiness: Readiness::default(),
            refresh: Arc::new(|metrics| metrics.leader.set(1)),
        };
        let readiness = probes.readiness.clone();
        let metrics = probes.metrics.clone();
        let router = router(probes);
        assert_eq!(status(&router, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&router, "/healthz").await, StatusCode::OK);
        readiness.set(true);
        assert_eq!(status(&router, "/readyz").await, StatusCode::OK);
        assert_eq!(status(&router, "/metrics").await, StatusCode::OK);
        assert!(metrics.render().unwrap().contains("flopwatch_leader 1"));
    }
}
