//! Who may read a profiling session: reviews by the Kubernetes API, remembered for a moment.
//!
//! The agents ask it about whoever fetches an artifact from them, the gateway about its callers.

mod permissions;
mod review;

pub use review::{Credentials, Denied, Grant, Reviewer, ReviewerOptions, Verb};
