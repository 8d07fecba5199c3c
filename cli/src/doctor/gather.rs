//! Reads the objects that the examination looks at from the cluster.

use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::cluster::{Cluster, ClusterError};
use crate::doctor::{Lookup, World};

/// Labels of Flopwatch's own pods.
const OWN_PODS: &str = "app.kubernetes.io/name=flopwatch";
/// Name of the webhooks' configuration.
const WEBHOOKS: &str = "flopwatch";
/// Name of the ConfigMap with the controller's settings.
const SETTINGS: &str = "flopwatch-controller";

/// Reads the pod `name` and the objects around it. The error is that of reading the pod, or that
/// the cluster has no sessions; other objects may be absent or hidden.
pub(super) async fn gather(cluster: &Cluster, name: &str) -> Result<World, ClusterError> {
    let pods: Api<Pod> = cluster.api();
    let pod = cluster.call(&format!("read pod {name}"), pods.get(name)).await?;
    let uid = pod.uid().unwrap_or_default();
    let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let sessions: Api<ProfilingSession> = cluster.api();
    let one = ListParams::default().limit(1);
    match cluster.call("list sessions", sessions.list(&one)).await {
        Ok(_) | Err(ClusterError::Forbidden { .. }) => {}
        Err(error) => return Err(error),
    }
    let captures: Api<Capture> = cluster.api();
    let captures = match cluster.list("list captures", &captures, None).await {
        Ok(captures) => captures,
        Err(ClusterError::Forbidden { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let own: Api<Pod> = cluster.own();
    let installation = match lookup_of(cluster.list("list Flopwatch's pods", &own, Some(OWN_PODS)).await)? {
        Lookup::Found(pods) if pods.is_empty() => Lookup::Absent,
        lookup => lookup,
    };
    let node = match node_name {
        Some(node) => get(cluster, &cluster.all::<Node>(), &node).await?,
        None => Lookup::Absent,
    };
    Ok(World {
        namespace: get(cluster, &cluster.all::<Namespace>(), &cluster.namespace).await?,
        node,
        installation,
        flopwatch_namespace: cluster.flopwatch_namespace.clone(),
        webhooks: get(cluster, &cluster.all(), WEBHOOKS).await?,
        settings: get(cluster, &cluster.own::<ConfigMap>(), SETTINGS).await?,
        captures: captures
            .into_iter()
            .filter(|capture| capture.spec.pod_ref.uid == uid)
            .collect(),
        pod,
    })
}

async fn get<K>(cluster: &Cluster, api: &Api<K>, name: &str) -> Result<Lookup<K>, ClusterError>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    lookup_of(cluster.call(&format!("read {name}"), api.get(name)).await)
}

fn lookup_of<T>(result: Result<T, ClusterError>) -> Result<Lookup<T>, ClusterError> {
    match result {
        Ok(object) => Ok(Lookup::Found(object)),
        Err(ClusterError::NotFound { .. }) => Ok(Lookup::Absent),
        Err(ClusterError::Forbidden { .. }) => Ok(Lookup::Hidden),
        Err(error) => Err(error),
    }
}
