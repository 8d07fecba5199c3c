//! The parts that Flopwatch's HTTP servers share: those of the agents, of the gateway, and of the
//! programs that serve on loopback.
//!
//! # Parts, in the order of a request's way
//!
//! 1. [`Server`] listens over TLS, with a certificate that is read again when it changes, or
//!    without TLS on loopback alone; there [`is_for_this_machine`] checks the host of a request.
//! 2. [`Limit`] bounds the number of open connections, and how long a client may take nothing of an
//!    answer.
//! 3. [`bearer()`] reads the token of a request; `Reviewer` asks the Kubernetes API whether its
//!    user may do what a [`Grant`] describes.
//! 4. [`answer()`] decides, from `Range`, `If-Range` and `If-None-Match`, which bytes of an
//!    artifact are sent, and makes the head of the answer.
//! 5. Errors are [problem details](problem) (RFC 9457).
//!
//! What a program of one user shows of captures lies in an [`OwnFolder`], which goes with it.
//!
//! # Invariants and limits
//!
//! * A server without TLS cannot be bound to another address than loopback.
//! * By default a server has 256 connections; a request's head comes within 15 s, a TLS handshake
//!   within 10 s, and a client that takes nothing for 60 s is disconnected.
//! * A permission is remembered for 10 s, a denial for 1 s and an invalid token for 5 s, each for
//!   at most 4096 callers; an answer of the API server is waited for 5 s. Without an answer access
//!   is denied.
//!
//! The feature `cluster` has reviews and TLS; without it there are servers on loopback alone.
//!
//! ```
//! use axum::http::header::AUTHORIZATION;
//! use axum::http::{HeaderMap, HeaderValue};
//!
//! let mut headers = HeaderMap::new();
//! headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
//! assert_eq!(flopwatch_http::bearer(&headers), Some("abc"));
//! ```

mod answer;
mod bearer;
#[cfg(feature = "cluster")]
mod changes;
mod conditional;
mod connection;
mod grant;
mod loopback;
#[cfg(feature = "cluster")]
mod memory;
mod own_folder;
pub mod problem;
#[cfg(feature = "cluster")]
mod readers;
#[cfg(feature = "cluster")]
mod review;
mod server;
#[cfg(feature = "cluster")]
mod tls;
#[cfg(feature = "cluster")]
mod token;
#[cfg(not(feature = "cluster"))]
mod without_reviews;

pub use answer::{Answer, Unsatisfiable, answer};
pub use bearer::bearer;
pub use connection::{Connection, Limit};
pub use grant::{Denied, Grant, Verb};
pub use loopback::is_for_this_machine;
pub use own_folder::{OwnFolder, Purpose};
#[cfg(feature = "cluster")]
pub use readers::for_readers_of_paths;
#[cfg(feature = "cluster")]
pub use review::{Credentials, Reviewer, ReviewerOptions};
pub use server::{ServeError, Server, ServerLimits, Service};
#[cfg(not(feature = "cluster"))]
pub use without_reviews::{Credentials, Reviewer};
