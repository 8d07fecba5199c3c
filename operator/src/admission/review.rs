//! Answers to the API server's reviews.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use flopwatch_api::REQUESTED_BY_ANNOTATION;
use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_ANNOTATION};
use flopwatch_api::schedule::TRIGGER_ANNOTATION;
use json_patch::PatchOperation;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::admission::Reviewer;
use crate::admission::prepare::{needed_entrypoints, prepare};

/// Most characters of a warning; the API server cuts longer ones.
const MAX_CHARACTERS: usize = 240;

pub(super) async fn mutate_pods(State(reviewer): State<Arc<Reviewer>>, body: Bytes) -> Response {
    answer(
        &reviewer,
        "mutate_pods",
        &body,
        async |request: &AdmissionRequest<Pod>| {
            let Some(pod) = request
                .object
                .as_ref()
                .filter(|_| request.operation == Operation::Create)
            else {
                return (Vec::new(), Vec::new());
            };
            let namespace = request.namespace.as_deref().unwrap_or_default();
            let options = reviewer.prepare.delivered(reviewer.delivering.to(pod));
            let needed = needed_entrypoints(pod, &options);
            let entrypoints = reviewer.lookup.of_pod(&reviewer.client, namespace, pod, needed).await;
            let preparation = prepare(pod, &options, &entrypoints);
            let name = pod.metadata.name.as_ref().or(pod.metadata.generate_name.as_ref());
            for (container, refusal) in &preparation.unprepared {
                reviewer.metrics.unprepared.with_label_values(&[refusal.as_str()]).inc();
                tracing::info!(
                    namespace,
                    name,
                    container,
                    reason = refusal.as_str(),
                    "container is not prepared"
                );
            }
            if !preparation.prepared.is_empty() {
                tracing::info!(
                    namespace,
                    name,
                    containers = preparation.prepared.join(","),
                    "prepared a pod"
                );
            }
            let warnings = preparation.unprepared.iter().map(|(container, refusal)| {
                let warning = format!("flopwatch: container {container} is not prepared: {refusal}");
                warning.chars().take(MAX_CHARACTERS).collect()
            });
            (preparation.operations, warnings.collect())
        },
    )
    .await
}

/// Refuses a new pod that says of itself that it was prepared. It is asked before [`mutate_pods`],
/// and only about such pods.
pub(super) async fn guard_pods(State(reviewer): State<Arc<Reviewer>>, body: Bytes) -> Response {
    const PATH: &str = "guard_pods";
    let count = |outcome| {
        let labels = [PATH, outcome];
        reviewer.metrics.admission_requests.with_label_values(&labels).inc();
    };
    let request = match read::<Pod>(&body) {
        Ok(request) => request,
        Err(message) => {
            count("malformed");
            return (StatusCode::BAD_REQUEST, format!("{message}\n")).into_response();
        }
    };
    let claimed = request
        .object
        .as_ref()
        .filter(|_| request.operation == Operation::Create)
        .and_then(claimed_preparation);
    let response = AdmissionResponse::from(&request);
    let response = if let Some(key) = claimed {
        count("refused");
        let user = request.user_info.username.as_deref();
        tracing::info!(
            namespace = request.namespace,
            user,
            key,
            "refused a pod that says it was prepared"
        );
        response.deny(format!(
            "the annotation {key} is written by Flopwatch's admission alone: leave it out, and ask with the label {PREPARE_LABEL}"
        ))
    } else {
        count("unchanged");
        response
    };
    Json(response.into_review()).into_response()
}

/// The first annotation of the pod that only admission may write.
fn claimed_preparation(pod: &Pod) -> Option<&str> {
    let mut keys = pod.annotations().keys().map(String::as_str);
    keys.find(|key| key.starts_with(PREPARED_ANNOTATION))
}

/// Who told of the alert that a session is for, as the gateway says: it has reviewed their token.
fn announced_requester(session: &DynamicObject) -> Option<&str> {
    let annotations = session.annotations();
    let announced_requester = annotations.get(REQUESTED_BY_ANNOTATION).map(String::as_str);
    announced_requester.filter(|user| !user.is_empty() && annotations.contains_key(TRIGGER_ANNOTATION))
}

pub(super) async fn mutate_sessions(State(reviewer): State<Arc<Reviewer>>, body: Bytes) -> Response {
    answer(
        &reviewer,
        "mutate_sessions",
        &body,
        async |request: &AdmissionRequest<DynamicObject>| {
            let Some(session) = &request.object else {
                return (Vec::new(), Vec::new());
            };
            let requester = match request.operation {
                Operation::Create if request.user_info.username.as_ref() == Some(&reviewer.gateway) => {
                    announced_requester(session).or(request.user_info.username.as_deref())
                }
                Operation::Create => request.user_info.username.as_deref().filter(|user| !user.is_empty()),
                Operation::Update => request
                    .old_object
                    .as_ref()
                    .and_then(|old| old.annotations().get(REQUESTED_BY_ANNOTATION))
                    .map(String::as_str),
                Operation::Delete | Operation::Connect => return (Vec::new(), Vec::new()),
            };
            (super::requester::record(session, requester), Vec::new())
        },
    )
    .await
}

/// Reads a review, answers it with the patch and the warnings of `decide`, and counts.
async fn answer<K: Resource + DeserializeOwned>(
    reviewer: &Reviewer,
    path: &'static str,
    body: &[u8],
    decide: impl AsyncFnOnce(&AdmissionRequest<K>) -> (Vec<PatchOperation>, Vec<String>),
) -> Response {
    let started = Instant::now();
    let request = match read::<K>(body) {
        Ok(request) => request,
        Err(message) => {
            reviewer
                .metrics
                .admission_requests
                .with_label_values(&[path, "malformed"])
                .inc();
            return (StatusCode::BAD_REQUEST, format!("{message}\n")).into_response();
        }
    };
    let (operations, warnings) = decide(&request).await;
    let outcome = if operations.is_empty() { "unchanged" } else { "patched" };
    let mut response = AdmissionResponse::from(&request);
    if !operations.is_empty() {
        response = match response.with_patch(json_patch::Patch(operations)) {
            Ok(response) => response,
            Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        };
    }
    response.warnings = (!warnings.is_empty()).then_some(warnings);
    reviewer
        .metrics
        .admission_requests
        .with_label_values(&[path, outcome])
        .inc();
    reviewer
        .metrics
        .admission_duration
        .with_label_values(&[path])
        .observe(started.elapsed().as_secs_f64());
    Json(response.into_review()).into_response()
}

fn read<K: Resource + DeserializeOwned>(body: &[u8]) -> Result<AdmissionRequest<K>, String> {
    let review: AdmissionReview<K> =
        serde_json::from_slice(body).map_err(|error| format!("not an admission.k8s.io/v1 AdmissionReview: {error}"))?;
    review
        .try_into()
        .map_err(|_without| "the AdmissionReview has no request".to_owned())
}
