//! `/healthz` and `/readyz` in plain HTTP, `/metrics` for those who may read it, and the log's
//! format.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flopwatch_http::{Reviewer, for_readers_of_paths};
use prometheus::{Registry, TextEncoder};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to standard error. `filter` is a level or a list of `target=level`; what cannot
/// be parsed becomes `info`.
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
#[derive(Clone, Debug)]
pub struct Health {
    ready: Arc<AtomicBool>,
    started: Instant,
    /// Milliseconds from the start to the last heartbeat; 0 before the first.
    beat: Arc<AtomicU64>,
}

/// Longest silence between two heartbeats, above what a busy node costs and below what nobody
/// should wait for.
const MAX_SILENCE: Duration = Duration::from_mins(2);

impl Default for Health {
    fn default() -> Self {
        Self {
            ready: Arc::default(),
            started: Instant::now(),
            beat: Arc::default(),
        }
    }
}

impl Health {
    /// The look for launchers came back.
    pub fn beat(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat.store(now.max(1), Ordering::Release);
    }

    /// Whether it came back lately; before the first time it is not missed.
    pub fn is_alive(&self) -> bool {
        self.is_alive_at(self.started.elapsed())
    }

    fn is_alive_at(&self, now: Duration) -> bool {
        let beat = self.beat.load(Ordering::Acquire);
        beat == 0 || now.saturating_sub(Duration::from_millis(beat)) < MAX_SILENCE
    }

    /// The watches have seen their first list.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether they have.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}

/// What anybody may ask.
pub fn probes(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .with_state(health)
}

/// The series, for those who may `get` the path `/metrics`: they name the pods of every tenant.
pub fn series(registry: Registry, reviewer: Arc<Reviewer>) -> Router {
    let routes = Router::new().route("/metrics", get(metrics)).with_state(registry);
    for_readers_of_paths(routes, reviewer)
}

/// Serves the routes until it is told to stop.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

/// Longest time that collecting the metrics may take before the scrape is answered with an error.
const GATHER_TIMEOUT: Duration = Duration::from_secs(8);

async fn metrics(State(registry): State<Registry>) -> Response {
    // Collectors may ask a driver, which can block: not on a runtime thread.
    let gather = tokio::task::spawn_blocking(move || TextEncoder::new().encode_to_string(&registry.gather()));
    match tokio::time::timeout(GATHER_TIMEOUT, gather).await {
        Ok(Ok(Ok(text))) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Ok(Ok(Err(error))) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Ok(Err(_)) => (StatusCode::INTERNAL_SERVER_ERROR, "a collector failed\n").into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "collecting took too long\n").into_response(),
    }
}

async fn alive(State(health): State<Health>) -> Response {
    probed(health.is_alive(), "the look for waiting launchers does not come back\n")
}

async fn ready(State(health): State<Health>) -> Response {
    probed(health.is_ready(), "waiting for the first list of captures and pods\n")
}

/// What a probe is answered: that all is well, or what is not.
fn probed(is_well: bool, otherwise: &'static str) -> Response {
    if is_well {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, otherwise).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_whose_look_for_launchers_hangs_is_not_alive() {
        let health = Health::default();
        assert!(
            health.is_alive_at(Duration::from_hours(1)),
            "nothing is missed before the first"
        );
        health.beat();
        assert!(health.is_alive());
        assert!(!health.is_alive_at(MAX_SILENCE * 2));
        health.beat();
        assert!(health.is_alive());
    }
}
