//! Asks the cluster for what the examination looks at.

use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::cluster::{Cluster, ClusterError};
use crate::doctor::{Seen, World};

/// Labels of Flopwatch's own pods.
const OWN: &str = "app.kubernetes.io/name=flopwatch";
/// The webhooks' configuration.
const WEBHOOKS: &str = "flopwatch";
/// ConfigMap with the controller's settings.
const SETTINGS: &str = "flopwatch-controller";

/// What there is, as far as the caller may know. The pod itself must be readable, and sessions must exist.
pub(super) async fn look(cluster: &Cluster, name: &str) -> Result<World, ClusterError> {
    let pods: Api<Pod> = cluster.api();
    let pod = cluster.asked(&format!("read pod {name}"), pods.get(name)).await?;
    let uid = pod.uid().unwrap_or_default();
    let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let sessions: Api<ProfilingSession> = cluster.api();
    let one = ListParams::default().limit(1);
    match cluster.asked("list sessions", sessions.list(&one)).await {
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
    let installation = match seen(cluster.list("list Flopwatch's pods", &own, Some(OWN)).await)? {
        Seen::Found(pods) if pods.is_empty() => Seen::Absent,
        seen => seen,
    };
    let node = match node_name {
        Some(node) => get(cluster, &cluster.all::<Node>(), &node).await?,
        None => Seen::Absent,
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

async fn get<K>(cluster: &Cluster, api: &Api<K>, name: &str) -> Result<Seen<K>, ClusterError>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    seen(cluster.asked(&format!("read {name}"), api.get(name)).await)
}

fn seen<T>(result: Result<T, ClusterError>) -> Result<Seen<T>, ClusterError> {
    match result {
        Ok(object) => Ok(Seen::Found(object)),
        Err(ClusterError::NotFound { .. }) => Ok(Seen::Absent),
        Err(ClusterError::Forbidden { .. }) => Ok(Seen::Hidden),
        Err(error) => Err(error),
    }
}
