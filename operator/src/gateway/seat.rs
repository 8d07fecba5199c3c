//! Who holds a connection of Socket.IO: counted from its handshake on, before it showed a token.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flopwatch_http::{Credentials, Reviewer, bearer};

use crate::gateway::problem::Problem;
use crate::gateway::slots::{Slot, Slots};

/// Path of Socket.IO.
const PATH: &str = "/socket.io";

/// The place of a connection, which lasts as long as it: first among those of unknown visitors, by address, and once it showed a
/// token among those of its user.
#[derive(Clone, Debug)]
pub(super) struct Seat(Arc<Mutex<Slot>>);

impl Seat {
    /// Takes a place of the user's own, unless it has one, and gives that of a visitor free.
    pub(super) fn change(&self, slots: &Slots, user: &str) -> Result<(), Problem> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !slots.has(&slot, user) {
            *slot = slots.take(user)?;
        }
        Ok(())
    }
}

/// The places that handshakes are given; clones share them.
#[derive(Clone)]
pub(crate) struct Seats {
    pub(crate) reviewer: Arc<Reviewer>,
    /// Places for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
    /// Places for connections that showed no token yet, by address.
    pub(crate) visitors: Slots,
}

/// Gives a handshake its seat, or turns it away. What belongs to a connection that there is passes.
pub(super) async fn seat(State(seats): State<Seats>, mut request: Request, next: Next) -> Response {
    if is_handshake(request.uri()) {
        let token = bearer(request.headers()).map(str::to_owned);
        let peer = request
            .extensions()
            .get::<ConnectInfo<SocketAddr>>()
            .map(|peer| peer.0.ip());
        match seats.of_visitor(token.as_deref(), peer).await {
            Ok(slot) => drop(request.extensions_mut().insert(Seat(Arc::new(Mutex::new(slot))))),
            Err(problem) => return problem.into_response(),
        }
    }
    next.run(request).await
}

/// Whether a request opens a connection: the others name theirs.
fn is_handshake(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    uri.path().starts_with(PATH) && !parameters.any(|parameter| parameter.starts_with("sid="))
}

impl Seats {
    async fn of_visitor(&self, token: Option<&str>, peer: Option<IpAddr>) -> Result<Slot, Problem> {
        if let Some(token) = token
            && let Ok(user) = self.reviewer.identify(&Credentials::new(token)).await
        {
            return Ok(self.listeners.take(&user)?);
        }
        // Clients show their tokens after the handshake; until then there are addresses.
        let whose = peer.map(|peer| peer.to_string()).unwrap_or_default();
        Ok(self.visitors.take(&whose)?)
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
