//! Takes over the lease of a leader that is gone.
//!
//! A leader that ends gives its lease back; one whose rights go first (an uninstall) cannot, and
//! whoever comes next would wait for the lease to run out, in which time no pod is prepared after a
//! new install. A holder whose pod is gone from the API has ended, or its node is cut off, and then
//! it cannot write anything either.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};

use crate::deadline::{CallError, bounded};

/// Takes the lease from a holder whose pod is gone. Does nothing where this process is no pod of
/// the namespace itself: then other candidates need not be pods either.
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
    // Only the version that was read: a holder that is there after all has renewed it meanwhile,
    // and keeps it.
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
    use flopwatch_test_harness::{ApiServer, Verb};
    use serde_json::{Value, json};

    use super::*;

    /// What was written to the lease, where `holder` holds it and these pods are there; and the
    /// lease before that.
    async fn written(holder: &str, pods: &[&str]) -> Option<(Value, Value)> {
        let server = ApiServer::new();
        for pod in pods {
            server.put(&json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "flopwatch"}
            }));
        }
        let lease = server.put(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "l", "namespace": "flopwatch"}, "spec": {"holderIdentity": holder}
        }));
        let freed = free(&server.client("flopwatch"), "flopwatch", "l", "this")
            .await
            .unwrap();
        let reads = [Verb::Get, Verb::List];
        let written = server.calls().into_iter().find(|call| !reads.contains(&call.verb));
        assert_eq!(freed, written.is_some());
        written.map(|call| (call.body, lease))
    }

    #[tokio::test]
    async fn only_a_holder_whose_pod_is_gone_loses_the_lease() {
        let (freed, before) = written("that", &["this"]).await.unwrap();
        assert_eq!(freed["spec"]["holderIdentity"], "");
        assert_eq!(
            freed["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
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
