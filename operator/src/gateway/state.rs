//! The state of the gateway's router, and the parts that it is assembled from.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_http::Reviewer;

use crate::gateway::access::SessionAccess;
use crate::gateway::agents::Agents;
use crate::gateway::alerts::AlertDecider;
use crate::gateway::api_server::ApiServer;
use crate::gateway::connection_permits::ConnectionPermits;
use crate::gateway::cookie::Cookies;
use crate::gateway::deliver::Delivery;
use crate::gateway::fleet::FleetRows;
use crate::gateway::progress::Subscriptions;
use crate::gateway::session_routes::SessionCreation;
use crate::gateway::sessions::Sessions;
use crate::gateway::slots::Slots;
use crate::gateway::store::ObjectStore;
use crate::gateway::transfers::Transfers;

/// The parts that a [`Gateway`] is assembled from.
pub(crate) struct GatewayParts {
    pub(crate) sessions: Sessions,
    pub(crate) reviewer: Reviewer,
    pub(crate) api_server: ApiServer,
    pub(crate) agents: Agents,
    /// The object store with copies of artifacts, where there is one.
    pub(crate) store: Option<ObjectStore>,
    /// Seals and opens the cookies of browsers that signed in.
    pub(crate) cookies: Cookies,
    /// Slots for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
    /// Slots for connections of Socket.IO whose client has shown no token yet, by IP address.
    pub(crate) unauthenticated: Slots,
    /// Decides which alerts make sessions.
    pub(crate) alerts: AlertDecider,
    /// Longest wait for the controller to give a session its id.
    pub(crate) id_timeout: Duration,
    /// Namespace of requests to profile that name none.
    pub(crate) run_namespace: Option<String>,
}

/// The state of the router. A handler extracts only those of its fields that it needs; clones share
/// them.
#[derive(Clone, axum::extract::FromRef)]
pub(crate) struct Gateway {
    access: SessionAccess,
    alerts: Arc<AlertDecider>,
    api_server: ApiServer,
    cookies: Arc<Cookies>,
    creation: SessionCreation,
    delivery: Delivery,
    fleet: FleetRows,
    reviewer: Arc<Reviewer>,
    pub(super) permits: ConnectionPermits,
    pub(super) subscriptions: Subscriptions,
}

impl From<GatewayParts> for Gateway {
    fn from(parts: GatewayParts) -> Self {
        let reviewer = Arc::new(parts.reviewer);
        let store = parts.store.map(Arc::new);
        let access = SessionAccess {
            sessions: parts.sessions.clone(),
            reviewer: Arc::clone(&reviewer),
        };
        Self {
            alerts: Arc::new(parts.alerts),
            cookies: Arc::new(parts.cookies),
            creation: SessionCreation {
                api_server: parts.api_server.clone(),
                sessions: parts.sessions,
                id_timeout: parts.id_timeout,
                namespace: parts.run_namespace.map(Arc::from),
            },
            api_server: parts.api_server,
            delivery: Delivery {
                access: access.clone(),
                agents: Arc::new(parts.agents),
                store: store.clone(),
                transfers: Transfers::default(),
            },
            fleet: FleetRows::new(store),
            permits: ConnectionPermits {
                reviewer: Arc::clone(&reviewer),
                listeners: parts.listeners.clone(),
                unauthenticated: parts.unauthenticated,
            },
            subscriptions: Subscriptions {
                access: access.clone(),
                listeners: parts.listeners,
            },
            access,
            reviewer,
        }
    }
}
