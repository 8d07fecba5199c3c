//! Pods that may be profiled, as the caller may see them.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use flopwatch_api::pod;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde::Serialize;
use utoipa::ToSchema;

use crate::gateway::api_server::{ApiServer, call_api_server};
use crate::gateway::extract::query;
use crate::gateway::messages::TargetQuery;
use crate::gateway::problem::{Guarded, Problem};
use crate::gateway::request::is_namespace;
use crate::gateway::token::Token;

/// Most pods in an answer.
const MAX_PODS: u32 = 500;

/// Pods that may be profiled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TargetList {
    /// Those that run.
    targets: Vec<TargetItem>,
    /// Whether the namespace has more pods than were looked at.
    more: bool,
}

/// A pod that runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TargetItem {
    pod: String,
    node: Option<String>,
    containers: Vec<TargetContainer>,
}

/// A container of a pod.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TargetContainer {
    name: String,
    /// Whether it asks for a GPU: such containers are profiled when none is named.
    gpu: bool,
    /// Whether it was prepared for Nsight Systems when it started.
    prepared: bool,
}

impl TargetItem {
    /// None for a pod that does not run.
    fn of(pod: &Pod) -> Option<Self> {
        if !pod::is_running(pod) {
            return None;
        }
        let spec = pod.spec.as_ref()?;
        let containers = spec.containers.iter().map(|container| TargetContainer {
            name: container.name.clone(),
            gpu: pod::asks_for_gpu(container),
            prepared: pod::is_prepared(pod, &container.name),
        });
        Some(Self {
            pod: pod.name_any(),
            node: spec.node_name.clone(),
            containers: containers.collect(),
        })
    }
}

/// Pods of a namespace that run, listed with the caller's own token: it needs the right to `list`
/// pods there.
#[utoipa::path(get, path = "/api/profiling/targets", tag = "sessions", params(TargetQuery),
    responses((status = 200, body = TargetList), Guarded))]
pub(crate) async fn targets(
    State(api_server): State<ApiServer>,
    token: Token,
    asked_for: Result<Query<TargetQuery>, QueryRejection>,
) -> Result<Json<TargetList>, Problem> {
    let TargetQuery { namespace } = query(asked_for)?;
    if !is_namespace(&namespace) {
        return Err(Problem::BadRequest("namespace must be the name of one".to_owned()));
    }
    let api: Api<Pod> = Api::namespaced(api_server.client(&token.0)?, &namespace);
    let pods = call_api_server(api.list(&ListParams::default().limit(MAX_PODS))).await?;
    Ok(Json(TargetList {
        targets: pods.items.iter().filter_map(TargetItem::of).collect(),
        more: pods.metadata.continue_.is_some_and(|more| !more.is_empty()),
    }))
}
