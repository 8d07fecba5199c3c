//! `/metrics`, `/healthz` and `/readyz` in plain HTTP, and the log's format.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Registry, TextEncoder};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to standard error. `filter` is a level or a list of `target=level`; what cannot be parsed becomes `info`.
pub fn start_logging(format: LogFormat, filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
}

/// What the probes answer. Cheap to clone; all clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Health {
    ready: Arc<AtomicBool>,
}

impl Health {
    /// The watches have seen their first list.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether they have.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}

#[derive(Clone)]
struct Shared {
    registry: Registry,
    health: Health,
}

/// The routes.
pub fn router(registry: Registry, health: Health) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(Shared { registry, health })
}

/// Serves the routes until it is told to stop.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

/// Longest time that collecting the metrics may take before the scrape is answered with an error.
const GATHER_TIMEOUT: Duration = Duration::from_secs(8);

async fn metrics(State(shared): State<Shared>) -> Response {
    // Collectors may ask a driver, which can block: not on a runtime thread.
    let gather = tokio::task::spawn_blocking(move || TextEncoder::new().encode_to_string(&shared.registry.gather()));
    match tokio::time::timeout(GATHER_TIMEOUT, gather).await {
        Ok(Ok(Ok(text))) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Ok(Ok(Err(error))) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Ok(Err(_)) => (StatusCode::INTERNAL_SERVER_ERROR, "a collector failed\n").into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "collecting took too long\n").into_response(),
    }
}

async fn ready(State(shared): State<Shared>) -> Response {
    if shared.health.is_ready() {
        "ok\n".into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "waiting for the first list of captures and pods\n",
        )
            .into_response()
    }
}
