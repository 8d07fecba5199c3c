//! The cluster's own name in a bucket.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::timeout;

/// Namespace that every cluster has, once: its UID is the nearest that a cluster has to a name.
const NAMESPACE: &str = "kube-system";

/// Longest question for it.
const LIMIT: Duration = Duration::from_secs(15);

/// Why the cluster's name is not known.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server refuses, or cannot be reached.
    #[error("namespace {NAMESPACE}, whose UID is the cluster's name in the object store, cannot be read")]
    Api(#[source] Box<kube::Error>),
    /// It did not answer in time, or without a UID.
    #[error("the API server did not tell the UID of namespace {NAMESPACE} within {LIMIT:?}")]
    Unknown,
}

/// The UID of the namespace that every cluster has: clusters that share a bucket stay out of each other's way. Needs `get` on
/// that one namespace.
pub async fn cluster_name(client: &Client) -> Result<String, ClusterError> {
    let asked = timeout(LIMIT, Api::<Namespace>::all(client.clone()).get(NAMESPACE)).await;
    let namespace = asked.map_err(|_elapsed| ClusterError::Unknown)?;
    let namespace = namespace.map_err(|error| ClusterError::Api(Box::new(error)))?;
    namespace
        .uid()
        .filter(|uid| !uid.is_empty())
        .ok_or(ClusterError::Unknown)
}
