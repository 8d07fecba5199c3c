//! What the API server is asked about sessions, for the subcommands and for other programs: nothing
//! is printed here.

use flopwatch_api::SESSION_LABEL;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::{ProfilingSession, StopMode};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::cluster::{Cluster, ClusterError};
use crate::sessions::sort;

/// Whether there is a pod with the name `name`; `true` too where the caller may not read pods.
pub async fn pod_exists(cluster: &Cluster, name: &str) -> Result<bool, ClusterError> {
    let pods: Api<Pod> = cluster.api();
    match cluster.call(&format!("read pod {name}"), pods.get(name)).await {
        Ok(_) | Err(ClusterError::Forbidden { .. }) => Ok(true),
        Err(ClusterError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a session; with `dry_run` the API server only checks it.
pub async fn create(
    cluster: &Cluster,
    session: &ProfilingSession,
    dry_run: bool,
) -> Result<ProfilingSession, ClusterError> {
    let sessions: Api<ProfilingSession> = cluster.api();
    let params = PostParams {
        dry_run,
        ..PostParams::default()
    };
    cluster
        .call("create a session", sessions.create(&params, session))
        .await
}

/// The sessions of the namespace, or of all, with these labels, the newest first.
pub async fn list(
    cluster: &Cluster,
    all_namespaces: bool,
    labels: Option<&str>,
) -> Result<Vec<ProfilingSession>, ClusterError> {
    let sessions: Api<ProfilingSession> = if all_namespaces { cluster.all() } else { cluster.api() };
    let mut found = cluster.list("list sessions", &sessions, labels).await?;
    sort(&mut found);
    Ok(found)
}

/// The captures of all sessions of the namespace, or of all namespaces.
pub async fn captures(cluster: &Cluster, all_namespaces: bool) -> Result<Vec<Capture>, ClusterError> {
    let captures: Api<Capture> = if all_namespaces { cluster.all() } else { cluster.api() };
    cluster.list("list captures", &captures, Some(SESSION_LABEL)).await
}

/// Reads the session with the name `name`.
pub async fn session(cluster: &Cluster, name: &str) -> Result<ProfilingSession, ClusterError> {
    let sessions: Api<ProfilingSession> = cluster.api();
    cluster.call(&format!("read session {name}"), sessions.get(name)).await
}

/// Stops a session that runs; `mode` says whether its results are kept.
pub async fn stop(cluster: &Cluster, name: &str, mode: StopMode) -> Result<(), ClusterError> {
    let sessions: Api<ProfilingSession> = cluster.api();
    let patch = Patch::Merge(json!({"spec": {"stop": mode}}));
    let params = PatchParams::default();
    let stopped = sessions.patch(name, &params, &patch);
    cluster.call(&format!("stop session {name}"), stopped).await.map(drop)
}
