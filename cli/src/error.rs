//! The error of a command, and its exit code.

use std::net::SocketAddr;

use crate::cluster::ClusterError;
use crate::fetch::FetchError;
use crate::gateway::GatewayError;
use crate::open::OpenError;

/// Why a command failed; the text is printed after `error: `.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call of the API server failed, or was refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A request to the gateway failed, or was refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// An artifact could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A timeline could not be shown.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The arguments cannot be used together or with the cluster's objects; the text says why.
    #[error("{0}")]
    Usage(String),
    /// The pod that is to be profiled does not exist.
    #[error(
        "there is no pod {name} in namespace {namespace}; --wait-for-pod makes the session all the same, which waits for it"
    )]
    NoPod {
        /// Namespace in which it was looked for.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
    /// The session ended without success.
    #[error("session {name} failed: {reason}: {message}")]
    SessionFailed {
        /// Name of the session.
        name: String,
        /// Reason of the session's condition `Succeeded`.
        reason: String,
        /// Message of that condition, with the reasons of the captures.
        message: String,
    },
    /// The session was deleted while it was waited for.
    #[error("session {0} was deleted")]
    SessionDeleted(String),
    /// The session did not end within the time that `--timeout` gave.
    #[error(
        "session {name} has not ended within {seconds} s; it goes on: `kubectl flopwatch watch {name}`, or `stop {name}`"
    )]
    TimedOut {
        /// Name of the session.
        name: String,
        /// The time that was waited, in seconds.
        seconds: u32,
    },
    /// The user interrupted the wait for the session of this name, which goes on.
    #[error("interrupted; session {0} goes on: `kubectl flopwatch watch {0}`, or `stop {0}`")]
    Interrupted(String),
    /// The user interrupted a command that leaves nothing running.
    #[error("interrupted")]
    Cancelled,
    /// The pod cannot be profiled with these profilers; the printed report says why.
    #[error("pod {name} cannot be profiled with {profilers} as it is")]
    Unfit {
        /// Name of the pod.
        name: String,
        /// Names of the profilers.
        profilers: String,
    },
    /// The verdict of a comparison is one that `--fail-on` names; the text is the verdict.
    #[error("{0}: --fail-on names it")]
    Changed(String),
    /// The local port of a server cannot be bound.
    #[error("cannot listen on {address}: {source}; choose another with --port")]
    Listen {
        /// Address that could not be bound.
        address: SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Writing to standard output, or serving a local port, failed.
    #[error("input or output failed: {0}")]
    Io(#[from] std::io::Error),
    /// An object cannot be rendered as JSON or YAML, or a result of the gateway cannot be read.
    #[error("cannot render the object: {0}")]
    Render(String),
}

impl Error {
    /// The exit code of the program, as `--help` documents it.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::SessionFailed { .. } | Self::Changed(_) => 3,
            Self::Unfit { .. } => 4,
            Self::TimedOut { .. } => 5,
            Self::Interrupted(_) | Self::Cancelled => 130,
            _ => 1,
        }
    }
}
