//! What Flopwatch's HTTP servers share: the agents', the gateway's, the plugin's on loopback.
//!
//! - who may read a profiling session: [reviews](Reviewer) by the Kubernetes API, remembered for a moment, and [bearer](bearer()) tokens;
//! - how much of a server one [connection](Limit) may hold;
//! - a [server](Server) over TLS, whose certificate is read again when it changes, or without TLS on loopback alone;
//! - which bytes of an artifact a request is after, and the head of the [answer](answer());
//! - errors as [problem details](problem).

mod answer;
mod bearer;
mod changes;
mod conditional;
mod connection;
mod loopback;
mod memory;
pub mod problem;
mod review;
mod server;
mod tls;
mod token;

pub use answer::{Answer, Unsatisfiable, answer};
pub use bearer::{bearer, for_readers_of_paths};
pub use connection::{Connection, Limit};
pub use loopback::is_for_this_machine;
pub use review::{Credentials, Denied, Grant, Reviewer, ReviewerOptions, Verb};
pub use server::{ServeError, Server, ServerLimits, Service};
