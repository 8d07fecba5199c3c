//! Requests for results that have to be made first: they are repeated until the result is ready.

use std::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use super::{Gateway, GatewayError};

/// Longest wait for a result: an agent may have to fetch a timeline from another node first.
const READY_TIMEOUT: Duration = Duration::from_mins(15);
/// Time between two requests.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Most requests that may fail for another reason than that the result is being made.
const MAX_FAILED_ATTEMPTS: u32 = 5;

impl Gateway {
    /// Requests `path` with these further headers, every 2 s for at most 15 min while the gateway
    /// answers that the result is being made.
    pub async fn get_when_ready(&self, path: &str, headers: &HeaderMap) -> Result<Response<Incoming>, GatewayError> {
        let until = Instant::now() + READY_TIMEOUT;
        let mut failed = 0;
        loop {
            let error = match self.get(path, headers.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_pending =
                matches!(&error, GatewayError::Refused { status, .. } if *status == StatusCode::SERVICE_UNAVAILABLE);
            failed += u32::from(!is_pending);
            if !error.is_transient() || failed > MAX_FAILED_ATTEMPTS || Instant::now() >= until {
                return Err(error);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}
