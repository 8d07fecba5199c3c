//! An API server in memory, for tests: a [`kube::Client`] talks to it as to a cluster's.
//!
//! It keeps objects of any kind, counts resource versions, deletes by finalizers, and answers get,
//! list, watch, create, replace, patch, server-side apply and delete, with the preconditions of UID
//! and resource version. A test looks on ([`ApiServer::calls`]), interferes ([`ApiServer::edit`]),
//! and lets calls go wrong or take long ([`ApiServer::fail`], [`ApiServer::delay`]).
//!
//! Every call is by somebody: [`ApiServer::client`] by an administrator, who may do everything,
//! others by their tokens ([`ApiServer::client_of`], [`ApiServer::listen`]). A test says which
//! tokens there are and what their users may do ([`ApiServer::add_token`], [`ApiServer::allow`]).
//! TokenReview, SubjectAccessReview and the reviews of oneself are answered from that. An unknown
//! token is refused with 401, a missing right with 403.
//!
//! Clients that are programs of their own reach it on loopback ([`ApiServer::listen`]),
//! port-forwards included ([`ApiServer::forward_to`]).
//!
//! Tests that drive a browser take turns ([`BrowserTurn`]). Scripts stand in the place of programs
//! ([`script`]), and the sample workload is what tests record ([`workload`]).
//!
//! What it does not know: managed fields, defaults, and of schemas more than the bounds of numbers
//! ([`ApiServer::define`]). A manager's later apply takes back what it applied before and leaves
//! out now; conditions are merged by their type, other lists are replaced.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a rig of tests fails by a panic"
)]

mod apply;
mod browser;
mod fault;
mod path;
mod port_forward;
mod reviews;
mod rights;
mod schema;
pub mod script;
mod server;
mod socket;
mod state;
pub mod workload;

pub use browser::BrowserTurn;
pub use fault::{Fault, Verb};
pub use reviews::{API_SERVER_AUDIENCE, Identity};
pub use rights::Right;
pub use server::ApiServer;
pub use state::Call;
