//! Connections that go on to the next request: one through the API server takes several round trips to make.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{sleep, timeout};

use super::{Gateway, GatewayError, HEAD};
use crate::cluster::with_causes;

/// Connections that are kept.
const MOST: usize = 4;
/// Until a connection whose last answer was read just now takes the next request.
const READY: Duration = Duration::from_millis(2);

type Connection = SendRequest<Empty<Bytes>>;

/// Connections whose last answer was read.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ready: Vec<Connection>,
    /// Those whose answer is being read.
    busy: usize,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> Option<Connection> {
        let mut state = self.state();
        state.ready.retain(|kept| !kept.is_closed());
        state.ready.pop()
    }

    /// A connection that can take a request.
    async fn take(&self) -> Option<Connection> {
        let ready = self.ready();
        if ready.is_some() || self.state().busy == 0 {
            return ready;
        }
        sleep(READY).await;
        self.ready()
    }

    /// Keeps a connection for when its answer was read.
    fn keep(&self, mut connection: Connection) {
        self.state().busy += 1;
        let kept = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let is_ready = connection.ready().await.is_ok();
            let Some(kept) = kept.upgrade() else { return };
            let mut state = kept.lock().unwrap_or_else(PoisonError::into_inner);
            state.busy = state.busy.saturating_sub(1);
            if is_ready && state.ready.len() < MOST {
                state.ready.push(connection);
            }
        });
    }
}

impl Gateway {
    /// Sends a request that asks for something, by a connection that is there or by a new one.
    pub(super) async fn ask(&self, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, GatewayError> {
        let unreachable = |reason: String| GatewayError::Unreachable {
            place: self.place(),
            reason,
        };
        let request = self.shown(request)?;
        if let Some(mut kept) = self.kept.take().await
            // The other end may have closed it just now: then nobody has heard of the request.
            && let Ok(Ok(answer)) = timeout(HEAD, kept.send_request(request.clone())).await
        {
            self.kept.keep(kept);
            return Ok(answer);
        }
        let mut made = self.connected().await?;
        let answer = timeout(HEAD, made.send_request(request))
            .await
            .map_err(|_elapsed| unreachable(format!("no answer within {} s", HEAD.as_secs())))?
            .map_err(|error| unreachable(with_causes(&error)))?;
        self.kept.keep(made);
        Ok(answer)
    }
}
