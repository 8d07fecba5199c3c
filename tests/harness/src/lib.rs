//! An API server in memory, for tests: a [`kube::Client`] talks to it as to a cluster's.
//!
//! It keeps objects of any kind, counts resource versions, deletes by finalizers, and answers get, list, watch, create, replace,
//! patch, server-side apply and delete, with the preconditions of UID and resource version. A test looks on
//! ([`ApiServer::calls`]), interferes ([`ApiServer::edit`]) and lets calls go wrong ([`ApiServer::fail`]).
//!
//! What it does not know: schemas, defaults, rights, managed fields. A manager's later apply takes back what it applied before and
//! leaves out now; conditions are merged by their type, other lists are replaced.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a rig of tests fails by a panic"
)]

mod apply;
mod fault;
mod path;
mod server;
mod state;

pub use fault::{Fault, Verb};
pub use server::ApiServer;
pub use state::Call;
