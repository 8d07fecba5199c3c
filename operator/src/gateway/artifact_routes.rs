//! HTTP handlers for artifacts: the list of a capture's artifacts, an artifact, and the timeline
//! with its status. The doc comment of a handler is its description in the OpenAPI document.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, Response};
use flopwatch_analysis::catalogue;
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::phase::Phase;
use kube::ResourceExt as _;

use crate::gateway::access::SessionAccess;
use crate::gateway::deliver::{Delivery, published, source_of_timeline};
use crate::gateway::extract::{path, query};
use crate::gateway::messages::{
    ArtifactItem, ArtifactList, CaptureQuery, Content, DerivedItem, SessionPath, SessionState, TimelineEvents,
    TimelineQuery, TimelineState, TimelineStatus, TransferHeaders, state_of,
};
use crate::gateway::problem::{OfCapture, Problem, ProblemDetails, Transfer};
use crate::gateway::token::Token;

/// The analysis that `GET /api/profiling/timeline/ID` answers with where no part is asked for.
const EARLIEST_EVENTS: &str = "earliest-events";
/// The analysis that `GET /api/profiling/timeline/ID` answers with where a part is asked for.
const EVENTS: &str = "events";
/// The analysis that `GET /api/profiling/kernels/ID` answers with.
const KERNEL_COUNTERS: &str = "kernel-counters";

/// What a capture published, and what is made of its timeline on demand.
#[utoipa::path(get, path = "/api/profiling/session/{id}/artifacts", tag = "artifacts",
    params(SessionPath, CaptureQuery),
    responses(
        (status = 200, body = ArtifactList),
        OfCapture,
        (status = 409, body = ProblemDetails, content_type = "application/problem+json", description = "No capture yet, or several and none named.")))]
pub(crate) async fn artifacts(
    State(access): State<SessionAccess>,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
) -> Result<Json<ArtifactList>, Problem> {
    let (id, which) = (path(id)?, query(which)?);
    let (_, capture) = access.capture(&token, &id, which.capture.as_deref()).await?;
    let status = capture.status.clone().unwrap_or_default();
    let derived = source_of_timeline(&capture).map(|source| {
        let timeline = (source.name != TIMELINE).then(DerivedItem::timeline);
        let exports = catalogue::artifacts().map(|(name, definition)| DerivedItem::of(name, definition));
        timeline.into_iter().chain(exports).collect()
    });
    Ok(Json(ArtifactList {
        session_id: id,
        capture: capture.name_any(),
        derived: derived.unwrap_or_default(),
        artifacts: status.artifacts.iter().map(ArtifactItem::of).collect(),
    }))
}

/// An artifact of a capture, or a derived artifact of its timeline: a single range, `If-Range` and
/// `If-None-Match` are understood.
///
/// Derived artifacts (`timeline.h5` of a capture of which only the raw one is kept, `timeline.csv`,
/// `timeline.parquet`, `samples.csv`, `samples.parquet`, `timeline.json.gz`, `timeline.pftrace`)
/// are made on the first request and kept for a time. One that takes long answers 503 with the
/// reason `Converting`: ask again after `Retry-After`.
#[utoipa::path(method(get, head), path = "/api/profiling/session/{id}/artifacts/{name}", tag = "artifacts",
    params(
        SessionPath,
        ("name" = String, Path, description = "The name of the artifact or form.", example = "summary.json"),
        CaptureQuery, TransferHeaders),
    responses(
        (status = 200, description = "Of the artifact's own media type.", content(
            (Content = "application/octet-stream"),
            (Content = "application/x-hdf5"),
            (Content = "application/vnd.apache.parquet"),
            (Content = "application/vnd.perfetto.trace"),
            (Content = "application/gzip"),
            (String = "text/csv"),
            (serde_json::Value = "application/json"))),
        (status = 206, description = "A part of it."),
        OfCapture,
        Transfer))]
pub(crate) async fn artifact(
    State(delivery): State<Delivery>,
    token: Token,
    method: Method,
    path_parts: Result<Path<(String, String)>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let ((id, name), which) = (path(path_parts)?, query(which)?);
    let found = delivery.access.capture(&token, &id, which.capture.as_deref()).await?;
    delivery.stream(&token, found, &name, method, &headers).await
}

/// The timeline file (HDF5) of a capture, at `ID.h5`, of one of which only the raw capture is kept
/// made of that on the first request; at `ID` its earliest 100,000 events as JSON
/// (`{session_id, total_duration_ns, total_events, events}`), made like any form of it. With any of
/// `from`, `to`, `category`, `after` and `limit` the events that are asked for, in pages: the
/// result of the analysis `events`, whose `next` is the next page's `after`; the file is always
/// whole. A single range, `If-Range` and `If-None-Match` are understood.
#[utoipa::path(method(get, head), path = "/api/profiling/timeline/{file}", tag = "artifacts",
    params(
        ("file" = String, Path, description = "The session's `session_id`, followed by `.h5` for the file.",
            pattern = r"^[0-9a-f]{8}(\.h5)?$", example = "0badcafe.h5"),
        TimelineQuery, TransferHeaders),
    responses(
        (status = 200, content(
            (Content = "application/x-hdf5"),
            (TimelineEvents = "application/json"))),
        (status = 206, description = "A part of it."),
        OfCapture,
        Transfer))]
pub(crate) async fn timeline(
    State(delivery): State<Delivery>,
    token: Token,
    method: Method,
    file: Result<Path<String>, PathRejection>,
    which: Result<Query<TimelineQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let (file, which) = (path(file)?, query(which)?);
    let parameters = which.parameters()?;
    if let Some(id) = file.strip_suffix(".h5") {
        let found = delivery.access.capture(&token, id, which.capture.as_deref()).await?;
        return delivery.stream(&token, found, TIMELINE, method, &headers).await;
    }
    if file.contains('.') {
        let places = "the timeline file is at SESSION_ID.h5, its events at SESSION_ID";
        return Err(Problem::BadRequest(places.to_owned()));
    }
    let name = if parameters.is_empty() { EARLIEST_EVENTS } else { EVENTS };
    let found = delivery.access.capture(&token, &file, which.capture.as_deref()).await?;
    delivery
        .analyze(&token, name, found, parameters, &method, &headers)
        .await
}

/// The launches that Nsight Compute measured: the result of the analysis `profiled-kernels`. A
/// capture without any answers 404 with the reason `NotCaptured`.
#[utoipa::path(method(get, head), path = "/api/profiling/kernels/{id}", tag = "artifacts",
    params(SessionPath, CaptureQuery, TransferHeaders), extensions(("x-result" = json!("profiled-kernels"))),
    responses(
        (status = 200),
        (status = 206, description = "A part of it."),
        OfCapture,
        Transfer))]
pub(crate) async fn kernels(
    State(delivery): State<Delivery>,
    token: Token,
    method: Method,
    id: Result<Path<String>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let (id, which) = (path(id)?, query(which)?);
    let found = delivery.access.capture(&token, &id, which.capture.as_deref()).await?;
    delivery
        .analyze(&token, KERNEL_COUNTERS, found, Vec::new(), &method, &headers)
        .await
}

/// Whether the timeline file can be fetched; without `artifact` it is made of the raw capture on
/// the first request.
#[utoipa::path(get, path = "/api/profiling/timeline/{id}/status", tag = "artifacts",
    params(SessionPath, CaptureQuery),
    responses(
        (status = 200, body = TimelineStatus),
        OfCapture))]
pub(crate) async fn timeline_status(
    State(access): State<SessionAccess>,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
) -> Result<Json<TimelineStatus>, Problem> {
    let (id, which) = (path(id)?, query(which)?);
    let capture = match access.capture(&token, &id, which.capture.as_deref()).await {
        Ok((_, capture)) => capture,
        // From the moment of the 202 on, before there is a capture.
        Err(Problem::NotReady(_)) => {
            let session = access.session(&token, &id).await?;
            let has_ended = matches!(state_of(&session), SessionState::Completed | SessionState::Failed);
            return Ok(Json(TimelineStatus {
                session_id: id,
                capture: None,
                status: if has_ended {
                    TimelineState::Absent
                } else {
                    TimelineState::Pending
                },
                artifact: None,
            }));
        }
        Err(problem) => return Err(problem),
    };
    let artifact = published(&capture, TIMELINE).map(ArtifactItem::of);
    let status = match (source_of_timeline(&capture), Phase::of(&capture).has_ended()) {
        (Some(_), _) => TimelineState::Ready,
        (None, true) => TimelineState::Absent,
        (None, false) => TimelineState::Pending,
    };
    Ok(Json(TimelineStatus {
        session_id: id,
        capture: Some(capture.name_any()),
        status,
        artifact,
    }))
}
