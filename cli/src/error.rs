//! Why a command did not do what it was asked for, and the exit code that says so.

use std::net::SocketAddr;

use crate::cluster::ClusterError;
use crate::fetch::FetchError;
use crate::gateway::GatewayError;
use crate::open::OpenError;

/// Why a command ended without doing what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster could not be asked, or refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The gateway could not be asked, or refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// An artifact could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A timeline could not be shown.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What was asked for does not go together.
    #[error("{0}")]
    Usage(String),
    /// The session ended without success.
    #[error("session {name} failed: {reason}: {message}")]
    SessionFailed {
        /// Name of the session.
        name: String,
        /// Reason of its Succeeded condition.
        reason: String,
        /// What it says, with the captures' reasons.
        message: String,
    },
    /// The session was deleted while it was waited for.
    #[error("session {0} was deleted")]
    SessionDeleted(String),
    /// The session had not ended in time.
    #[error(
        "session {name} has not ended within {seconds} s; it goes on: `kubectl flopwatch watch {name}`, or `stop {name}`"
    )]
    TimedOut {
        /// Name of the session.
        name: String,
        /// The time that was given.
        seconds: u32,
    },
    /// The user interrupted a wait.
    #[error("interrupted; session {0} goes on: `kubectl flopwatch watch {0}`, or `stop {0}`")]
    Interrupted(String),
    /// The user interrupted something that leaves nothing running.
    #[error("interrupted")]
    Cancelled,
    /// Something keeps the pod from being profiled with Nsight Systems.
    #[error("pod {0} cannot be profiled with Nsight Systems as it is")]
    Unfit(String),
    /// Two captures differ in what `--fail-on` names.
    #[error("{0}: --fail-on names it")]
    Changed(String),
    /// The port cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another with --port")]
    Listen {
        /// Address that could not be bound.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Standard output cannot be written to, or a port not be served.
    #[error("input or output failed: {0}")]
    Io(#[from] std::io::Error),
    /// An object cannot be put into words.
    #[error("cannot render the object: {0}")]
    Render(String),
}

impl Error {
    /// The exit code, as `--help` documents them.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::SessionFailed { .. } | Self::Changed(_) => 3,
            Self::Unfit(_) => 4,
            Self::TimedOut { .. } => 5,
            Self::Interrupted(_) | Self::Cancelled => 130,
            _ => 1,
        }
    }
}
