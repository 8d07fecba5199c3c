//! The node's store, the service in front of it, and the object store: on real files and real
//! sockets.
//!
//! What a node's agent alone has is tested where the crate is built with the feature `node`, as in
//! a build of the whole workspace.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::let_underscore_must_use,
    reason = "a test fails by panicking, in its helpers too"
)]

#[cfg(feature = "node")]
mod access;
#[cfg(feature = "node")]
mod converting;
#[cfg(feature = "node")]
mod derived;
#[cfg(feature = "node")]
mod http;
#[cfg(feature = "node")]
mod inputs;
mod object_store;
#[cfg(feature = "node")]
mod rig;
#[cfg(feature = "node")]
mod store;
#[cfg(feature = "node")]
mod timelines;
