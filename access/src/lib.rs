//! Who may read a profiling session: reviews by the Kubernetes API, remembered for a moment; and how much of a server one connection may hold.
//!
//! The agents ask it about whoever fetches an artifact from them, the gateway about its callers, and all about whoever reads their metrics.

mod bearer;
mod connection;
mod memory;
mod review;
mod token;

pub use bearer::{bearer, for_readers_of_paths};
pub use connection::{Connection, Limit};
pub use review::{Credentials, Denied, Grant, Reviewer, ReviewerOptions, Verb};
