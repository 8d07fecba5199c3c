//! Asking for what has to be made first.

use std::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use super::{Gateway, GatewayError};

/// Longest wait for it: an agent may have to fetch a timeline from another node first.
const LONGEST: Duration = Duration::from_mins(15);
/// Between two requests.
const PAUSE: Duration = Duration::from_secs(2);
/// Requests that may fail otherwise.
const ATTEMPTS: u32 = 5;

impl Gateway {
    /// Asks for `path` with these headers beside, again and again while it is being made.
    pub async fn get_when_made(&self, path: &str, headers: &HeaderMap) -> Result<Response<Incoming>, GatewayError> {
        let until = Instant::now() + LONGEST;
        let mut failed = 0;
        loop {
            let error = match self.get(path, headers.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let comes =
                matches!(&error, GatewayError::Refused { status, .. } if *status == StatusCode::SERVICE_UNAVAILABLE);
            failed += u32::from(!comes);
            if !error.may_pass() || failed > ATTEMPTS || Instant::now() >= until {
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }
}
