//! Does not wait for a leader that cannot be there any more.
//!
//! A leader that ends gives its lease back; one whose rights go first (an uninstall) cannot, and whoever comes next would
//! wait for the lease to run out, in which time no pod is prepared after a new install. A holder whose pod is gone from
//! the API has ended, or its node is cut off, and then it cannot write anything either.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};

use crate::deadline::{CallError, bounded};

/// Takes the lease from a holder whose pod is gone. Does nothing where this process is no pod of the namespace itself: then
/// other candidates need not be pods either.
pub(super) async fn free(client: &Client, namespace: &str, name: &str, identity: &str) -> Result<bool, CallError> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let Some(mut lease) = bounded("reading the lease", leases.get_opt(name)).await? else {
        return Ok(false);
    };
    let Some(spec) = lease.spec.as_mut() else {
        return Ok(false);
    };
    let holder = spec.holder_identity.clone().unwrap_or_default();
    if holder.is_empty() || holder == identity {
        return Ok(false);
    }
    if !is_pod(client, namespace, identity).await? || is_pod(client, namespace, &holder).await? {
        return Ok(false);
    }
    spec.holder_identity = Some(String::new());
    // Only the version that was read: a holder that is there after all has renewed it meanwhile, and keeps it.
    match bounded(
        "freeing the lease",
        leases.replace(name, &PostParams::default(), &lease),
    )
    .await
    {
        Ok(_) => {
            tracing::info!(holder, "the pod of the lease's holder is gone: the lease is free");
            Ok(true)
        }
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn is_pod(client: &Client, namespace: &str, name: &str) -> Result<bool, CallError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = bounded("looking for a pod", pods.list_metadata(&named)).await?;
    Ok(!found.items.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::to_bytes;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// What was written to the lease, where `holder` holds it and these pods are there.
    async fn written(holder: &str, pods: &[&str]) -> Option<Value> {
        let log = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&log);
        let (holder, pods) = (
            holder.to_owned(),
            pods.iter().map(|pod| (*pod).to_owned()).collect::<Vec<_>>(),
        );
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (log, holder, pods) = (Arc::clone(&shared), holder.clone(), pods.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(axum::body::Body::new(body), 1 << 20).await.unwrap();
                let query = parts.uri.query().unwrap_or_default().to_owned();
                let answer = if parts.uri.path().ends_with("/pods") {
                    let items: Vec<Value> = pods
                        .iter()
                        .filter(|pod| query.ends_with(&format!("metadata.name%3D{pod}")))
                        .map(|pod| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": pod}}))
                        .collect();
                    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items})
                } else if parts.method == "GET" {
                    json!({
                        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": {"name": "l", "resourceVersion": "7"}, "spec": {"holderIdentity": holder}
                    })
                } else {
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    *log.lock().unwrap() = Some(body.clone());
                    body
                };
                let response = http::Response::new(Body::from(serde_json::to_vec(&answer).unwrap()));
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let client = Client::new(service, "flopwatch");
        let freed = free(&client, "flopwatch", "l", "this").await.unwrap();
        let written = log.lock().unwrap().take();
        assert_eq!(freed, written.is_some());
        written
    }

    #[tokio::test]
    async fn only_a_holder_whose_pod_is_gone_loses_the_lease() {
        let freed = written("that", &["this"]).await.unwrap();
        assert_eq!(freed["spec"]["holderIdentity"], "");
        assert_eq!(
            freed["metadata"]["resourceVersion"], "7",
            "only the version that was read"
        );
        for (holder, pods) in [
            ("that", vec!["this", "that"]),
            ("that", vec![]),
            ("this", vec!["this"]),
            ("", vec!["this"]),
        ] {
            assert_eq!(written(holder, &pods).await, None, "{holder:?} {pods:?}");
        }
    }
}
