//! The name of the cluster in the object store, which separates clusters that share a bucket.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::timeout;

/// The namespace whose UID is the cluster's name: every cluster has it, and it is never recreated.
const NAMESPACE: &str = "kube-system";

/// Longest call of the API server for the name.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Why the cluster's name is not known.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server refused the call, or could not be reached.
    #[error("namespace {NAMESPACE}, whose UID is the cluster's name in the object store, cannot be read")]
    Api(#[source] Box<kube::Error>),
    /// The API server did not answer within 15 s, or answered without a UID.
    #[error("the API server did not tell the UID of namespace {NAMESPACE} within {CALL_TIMEOUT:?}")]
    Unknown,
}

/// Reads the cluster's name, which is the UID of the namespace `kube-system`. The caller needs the
/// right to `get` that namespace.
pub async fn cluster_name(client: &Client) -> Result<String, ClusterError> {
    let answer = timeout(CALL_TIMEOUT, Api::<Namespace>::all(client.clone()).get(NAMESPACE)).await;
    let namespace = answer.map_err(|_elapsed| ClusterError::Unknown)?;
    let namespace = namespace.map_err(|error| ClusterError::Api(Box::new(error)))?;
    namespace
        .uid()
        .filter(|uid| !uid.is_empty())
        .ok_or(ClusterError::Unknown)
}
