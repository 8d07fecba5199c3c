//! The API server's clock: what it dates (an object's creation) is compared with its own time, not
//! with this node's.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::DATE;
use k8s_openapi::jiff::fmt::rfc2822;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, timeout};
use tracing::debug;

use crate::node::writer::CALL_TIMEOUT;

/// How long the difference of the two clocks is taken for the same.
const OFFSET_CACHE_TTL: Duration = Duration::from_mins(1);

/// What is known of the API server's clock.
#[derive(Debug, Default)]
pub struct ServerClock {
    /// How far it is ahead of this node's, and when that was seen.
    ahead: Mutex<Option<(SignedDuration, Instant)>>,
}

impl ServerClock {
    /// The API server's time, to a second or so; this node's where the API server does not say its
    /// own.
    pub async fn now(&self, client: &Client) -> Timestamp {
        let known = *self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = match known {
            Some((ahead, seen)) if seen.elapsed() < OFFSET_CACHE_TTL => ahead,
            _ => match ask(client).await {
                Some(server) => {
                    let ahead = server.duration_since(Timestamp::now());
                    debug!(%ahead, "asked the API server for its time");
                    *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some((ahead, Instant::now()));
                    ahead
                }
                None => known.map(|(ahead, _)| ahead).unwrap_or_default(),
            },
        };
        Timestamp::now()
            .saturating_add(ahead)
            .unwrap_or_else(|_calendar| Timestamp::now())
    }
}

/// When the API server answered; every answer says so, a refusal too.
async fn ask(client: &Client) -> Option<Timestamp> {
    let request = http::Request::get("/version").body(Body::empty()).ok()?;
    let answer = timeout(CALL_TIMEOUT, client.send(request)).await.ok()?.ok()?;
    let date = answer.headers().get(DATE)?.to_str().ok()?;
    Some(rfc2822::parse(date).ok()?.timestamp())
}
