//! Why the agent of a node cannot run.

use flopwatch_artifacts::StoreError;
use flopwatch_artifacts::object_store::{ClusterError, LocationError};
use flopwatch_http::ServeError;
use tokio::task::JoinError;

use super::certificate::CertificateError;
use crate::{counters, metrics_ring};

/// Why the agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something of this machine cannot be used.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The artifact store cannot be opened.
    #[error("the artifact store cannot be opened")]
    Store(#[from] StoreError),
    /// There can be no leases of counters.
    #[error("the GPUs' counters cannot be leased")]
    Counters(#[from] counters::Error),
    /// The artifact service cannot run.
    #[error("the artifact service cannot run")]
    Serve(#[from] ServeError),
    /// No key or certificate to serve with can be made.
    #[error("no certificate can be made")]
    Certificate(#[from] CertificateError),
    /// The object store cannot be used as it is named.
    #[error("the object store cannot be used")]
    Location(#[from] LocationError),
    /// The cluster's name in the object store is not known.
    #[error("the object store cannot be used")]
    Cluster(#[from] ClusterError),
    /// Two metrics share a name.
    #[error("metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// The samples of the last minutes cannot be kept.
    #[error("the metrics ring cannot be started")]
    MetricsRing(#[from] metrics_ring::Error),
    /// No configuration for the API server, or it is malformed.
    #[error("there is no way to the Kubernetes API")]
    Kubernetes(#[from] kube::Error),
}

/// The error of something of this machine, of which `what` says what was tried.
pub(super) fn io_error(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    |source| Error::Io {
        what: what.into(),
        source,
    }
}

/// The error of a task that ended before it was told to.
pub(super) fn ended_early(what: &str, error: JoinError) -> Error {
    Error::Io {
        what: format!("{what} ended early"),
        source: std::io::Error::other(error),
    }
}
