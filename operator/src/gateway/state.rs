//! What the gateway is made of, and what of it each part of the paths is given.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_http::Reviewer;

use crate::gateway::access::SessionAccess;
use crate::gateway::agents::Agents;
use crate::gateway::alerts::Desk;
use crate::gateway::api_server::ApiServer;
use crate::gateway::bring::Bringing;
use crate::gateway::cookie::Cookies;
use crate::gateway::deliver::Delivery;
use crate::gateway::fleet::FleetRows;
use crate::gateway::progress::Subscriptions;
use crate::gateway::seat::Seats;
use crate::gateway::session_routes::SessionCreation;
use crate::gateway::sessions::Sessions;
use crate::gateway::slots::Slots;
use crate::gateway::store::ObjectStore;

/// What a gateway is made of.
pub(crate) struct Parts {
    pub(crate) sessions: Sessions,
    pub(crate) reviewer: Reviewer,
    pub(crate) api_server: ApiServer,
    pub(crate) agents: Agents,
    /// Where copies of artifacts are, where there is an object store.
    pub(crate) store: Option<ObjectStore>,
    /// What browsers keep of whoever signed in.
    pub(crate) cookies: Cookies,
    /// Places for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
    /// Places for connections of Socket.IO that showed no token yet, by address.
    pub(crate) visitors: Slots,
    /// What alerts make.
    pub(crate) alerts: Desk,
    /// Longest wait for the controller to give a session its id.
    pub(crate) id_timeout: Duration,
    /// Namespace of requests to profile that name none.
    pub(crate) run_namespace: Option<String>,
}

/// The state of the router. A handler takes those of its fields that it needs, and knows no other; clones share them.
#[derive(Clone, axum::extract::FromRef)]
pub(crate) struct Gateway {
    access: SessionAccess,
    alerts: Arc<Desk>,
    api_server: ApiServer,
    cookies: Arc<Cookies>,
    creation: SessionCreation,
    delivery: Delivery,
    fleet: FleetRows,
    reviewer: Arc<Reviewer>,
    pub(super) seats: Seats,
    pub(super) subscriptions: Subscriptions,
}

impl From<Parts> for Gateway {
    fn from(parts: Parts) -> Self {
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
                bringing: Bringing::default(),
            },
            fleet: FleetRows::new(store),
            seats: Seats {
                reviewer: Arc::clone(&reviewer),
                listeners: parts.listeners.clone(),
                visitors: parts.visitors,
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
