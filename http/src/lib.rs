//! What Flopwatch's HTTP servers share: the agents', the gateway's, the plugin's on loopback.
//!
//! - who may read a profiling session: reviews by the Kubernetes API (`Reviewer`), remembered for a moment, and [bearer](bearer()) tokens;
//! - how much of a server one [connection](Limit) may hold;
//! - a [server](Server) over TLS, whose certificate is read again when it changes, or without TLS on loopback alone;
//! - which bytes of an artifact a request is after, and the head of the [answer](answer());
//! - errors as [problem details](problem).
//!
//! Reviews and TLS are of the feature `cluster`; without it there are servers on loopback.

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
#[cfg(feature = "cluster")]
pub use readers::for_readers_of_paths;
#[cfg(feature = "cluster")]
pub use review::{Credentials, Reviewer, ReviewerOptions};
pub use server::{ServeError, Server, ServerLimits, Service};
#[cfg(not(feature = "cluster"))]
pub use without_reviews::{Credentials, Reviewer};
