//! Limits on connections of Socket.IO. Each is counted from its handshake on: by IP address until
//! its client shows a token, and by user from then on.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flopwatch_http::{Credentials, Reviewer, bearer};

use crate::gateway::problem::Problem;
use crate::gateway::slots::{Slot, Slots};

/// Path under which Socket.IO is served.
const PATH: &str = "/socket.io";

/// The slot that a connection holds as long as it is open: first one of the slots for
/// unauthenticated connections, and one of its user's once the client showed a token.
#[derive(Clone, Debug)]
pub(super) struct ConnectionPermit(Arc<Mutex<Slot>>);

impl ConnectionPermit {
    /// Takes one of the user's slots, unless the connection has one, and frees the slot for
    /// unauthenticated connections. The problem is `Busy` or `BusyCaller` where no slot is free.
    pub(super) fn assign_to_user(&self, slots: &Slots, user: &str) -> Result<(), Problem> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !slots.has(&slot, user) {
            *slot = slots.take(user)?;
        }
        Ok(())
    }
}

/// Gives permits to handshakes; clones share the slots.
#[derive(Clone)]
pub(crate) struct ConnectionPermits {
    pub(crate) reviewer: Arc<Reviewer>,
    /// Slots for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
    /// Slots for connections whose client has shown no token yet, by IP address.
    pub(crate) unauthenticated: Slots,
}

/// Middleware that gives every handshake its [`ConnectionPermit`], as an extension of the request,
/// or answers with a problem where no slot is free. Requests of an open connection pass.
pub(super) async fn grant_permit(
    State(permits): State<ConnectionPermits>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_handshake(request.uri()) {
        let token = bearer(request.headers()).map(str::to_owned);
        let peer = request
            .extensions()
            .get::<ConnectInfo<SocketAddr>>()
            .map(|peer| peer.0.ip());
        match permits.take_for_handshake(token.as_deref(), peer).await {
            Ok(slot) => drop(
                request
                    .extensions_mut()
                    .insert(ConnectionPermit(Arc::new(Mutex::new(slot)))),
            ),
            Err(problem) => return problem.into_response(),
        }
    }
    next.run(request).await
}

/// Whether a request opens a connection: those of an open one name it in `sid`.
fn is_handshake(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    uri.path().starts_with(PATH) && !parameters.any(|parameter| parameter.starts_with("sid="))
}

impl ConnectionPermits {
    async fn take_for_handshake(&self, token: Option<&str>, peer: Option<IpAddr>) -> Result<Slot, Problem> {
        if let Some(token) = token
            && let Ok(user) = self.reviewer.identify(&Credentials::new(token)).await
        {
            return Ok(self.listeners.take(&user)?);
        }
        // Clients show their tokens after the handshake; until then they are known by address.
        let owner = peer.map(|peer| peer.to_string()).unwrap_or_default();
        Ok(self.unauthenticated.take(&owner)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_names_no_connection_opens_one() {
        for (uri, expected) in [
            ("/socket.io/?EIO=4&transport=polling", true),
            ("/socket.io/", true),
            ("/socket.io/?EIO=4&transport=polling&sid=abc", false),
            ("/socket.io/?sid=abc", false),
            ("/socket.io/?xsid=abc", true),
            ("/api/profiling/sessions", false),
        ] {
            assert_eq!(is_handshake(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
