//! Reuses connections for the next request: opening one through the API server takes several round
//! trips.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{sleep, timeout};

use super::{Gateway, GatewayError, HEAD_TIMEOUT};

/// Most idle connections that are kept.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// How long a request waits for a connection whose last answer is being read.
const READY_DELAY: Duration = Duration::from_millis(2);

type Connection = SendRequest<Empty<Bytes>>;

/// The connections that may be used for another request.
#[derive(Clone, Default)]
pub(super) struct ConnectionPool(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ready: Vec<Connection>,
    /// Number of connections whose answer is being read.
    busy: usize,
}

impl ConnectionPool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_ready(&self) -> Option<Connection> {
        let mut state = self.state();
        state.ready.retain(|connection| !connection.is_closed());
        state.ready.pop()
    }

    /// Takes a connection that can be used for a request, if there is one.
    async fn acquire(&self) -> Option<Connection> {
        let ready = self.take_ready();
        if ready.is_some() || self.state().busy == 0 {
            return ready;
        }
        sleep(READY_DELAY).await;
        self.take_ready()
    }

    /// Returns a connection, which is reused once its answer was read.
    fn put_back(&self, mut connection: Connection) {
        self.state().busy += 1;
        let pool = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let is_ready = connection.ready().await.is_ok();
            let Some(pool) = pool.upgrade() else { return };
            let mut state = pool.lock().unwrap_or_else(PoisonError::into_inner);
            state.busy = state.busy.saturating_sub(1);
            if is_ready && state.ready.len() < MAX_IDLE_CONNECTIONS {
                state.ready.push(connection);
            }
        });
    }
}

impl Gateway {
    /// Sends a request without a body over an idle connection or a new one.
    pub(super) async fn send_pooled(&self, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, GatewayError> {
        let request = self.with_credentials(request)?;
        if let Some(mut idle) = self.connections.acquire().await
            // The gateway may have closed it just now: then it has not received the request.
            && let Ok(Ok(answer)) = timeout(HEAD_TIMEOUT, idle.send_request(request.clone())).await
        {
            self.connections.put_back(idle);
            return Ok(answer);
        }
        let mut opened = self.open_connection().await?;
        let answer = self.send_over(&mut opened, request).await?;
        self.connections.put_back(opened);
        Ok(answer)
    }
}
