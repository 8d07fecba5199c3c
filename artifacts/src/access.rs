//! Who may read a capture.

use flopwatch_http::Reviewer;

/// The rule that decides who may read a capture.
#[derive(Debug)]
pub enum Access {
    /// Whoever may `get` the session, as the Kubernetes API says for the bearer token of the
    /// request.
    Kubernetes(Box<Reviewer>),
    /// Everybody on this machine: for `record`, where there is no cluster. Such a service listens
    /// on loopback alone and answers only requests for localhost, so that no web page reaches it
    /// under another name.
    LoopbackOnly,
}
