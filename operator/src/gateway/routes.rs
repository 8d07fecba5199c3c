//! The paths, and the document that describes them: both come of the same handlers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use flopwatch_analysis::catalogue;
use flopwatch_api::artifact::{Artifact, TIMELINE, timeline_source};
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::session::ProfilingSession;
use flopwatch_http::{Credentials, Grant, Reviewer, Verb};
use futures::Stream;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use crate::gateway::agents::Agents;
use crate::gateway::alerts::{self, Desk};
use crate::gateway::api_server::{ApiServer, asked};
use crate::gateway::cookie::Cookies;
use crate::gateway::fleet::{self, FleetTurns};
use crate::gateway::messages::{
    ArtifactItem, ArtifactList, CaptureItem, CaptureQuery, Content, Deleted, DerivedItem, ListQuery, ModeList,
    RunAccepted, RunRequest, SessionDetail, SessionItem, SessionList, SessionPath, SessionState, TimelineEvents,
    TimelineQuery, TimelineState, TimelineStatus, TransferHeaders, state_of,
};
use crate::gateway::problem::{Guarded, OfCapture, OfSession, Problem, ProblemDetails, Transfer};
use crate::gateway::progress::{Listener, ServerSentEvent};
use crate::gateway::request::{RequestError, is_namespace, namespace_of, session_of};
use crate::gateway::sessions::{Cursor, Filter, Sessions, id_of};
use crate::gateway::slots::Slots;
use crate::gateway::store::ObjectStore;
use crate::gateway::token::Token;
use crate::gateway::{analyses, document, profiler, sign_in, stop, targets};

/// Time between two looks for it.
const LOOK: Duration = Duration::from_millis(50);
/// Most sessions on a page, and on one whose size nobody asked for: a client that knows no pages sees all sessions up to here.
const LARGEST_PAGE: u16 = 1000;

/// File name of the earliest events.
const EVENTS: &str = "events.json";
/// File name of the counters of kernels.
const KERNELS: &str = "kernels.json";

/// What every request has at hand.
pub(crate) struct Gateway {
    pub(crate) sessions: Sessions,
    pub(crate) reviewer: Reviewer,
    pub(crate) api_server: ApiServer,
    pub(crate) agents: Agents,
    /// Where copies of artifacts are, where there is an object store.
    pub(crate) store: Option<ObjectStore>,
    /// Turns of those who have rows of the fleet read.
    pub(crate) fleet: FleetTurns,
    /// What browsers keep of whoever signed in.
    pub(crate) cookies: Cookies,
    /// Places for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
    /// Places for connections of Socket.IO that showed no token yet, by address.
    pub(crate) visitors: Slots,
    /// What alerts make.
    pub(crate) alerts: Desk,
    /// Longest wait for the controller to give a session its id.
    pub(crate) taken_up: Duration,
    /// Namespace of requests to profile that name none.
    pub(crate) run_namespace: Option<String>,
}

type Shared = State<Arc<Gateway>>;

fn documented() -> (axum::Router<Arc<Gateway>>, utoipa::openapi::OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(document::declared())
        .routes(routes!(modes))
        .routes(routes!(run))
        .routes(routes!(list))
        .routes(routes!(session, delete))
        .routes(routes!(events))
        .routes(routes!(stop::stop))
        .routes(routes!(targets::targets))
        .routes(routes!(fleet::top))
        .routes(routes!(alerts::alerts).layer(DefaultBodyLimit::max(alerts::MOST_BYTES)))
        .routes(routes!(sign_in::signed_in, sign_in::sign_in, sign_in::sign_out))
        .routes(routes!(artifacts))
        .routes(routes!(artifact))
        .routes(routes!(timeline))
        .routes(routes!(timeline_status))
        .routes(routes!(kernels))
        .routes(routes!(analyses::analyses))
        .routes(routes!(analyses::analysis))
        .routes(routes!(profiler::profiler_timeline))
        .routes(routes!(profiler::profiler_kernels))
        .routes(routes!(profiler::profiler_hta))
        .routes(routes!(profiler::profiler_compile))
        .routes(routes!(profiler::profiler_memory))
        .routes(routes!(profiler::profiler_flame))
        .split_for_parts();
    document::describe(&mut document);
    (router, document)
}

/// The OpenAPI 3.1 document, as it is served and committed.
pub fn openapi() -> Result<String, serde_json::Error> {
    document::complete(&documented().1)
}

/// The paths, with the document at `/api/openapi.json`.
pub(crate) fn router(gateway: Arc<Gateway>) -> Result<axum::Router, serde_json::Error> {
    let (router, document) = documented();
    let document = axum::body::Bytes::from(document::complete(&document)?);
    let serve = move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, "application/json")], document) }
    };
    Ok(router
        .route("/api/openapi.json", axum::routing::get(serve))
        .fallback(|| async { Problem::NotFound("such path; /api/openapi.json lists those there are".to_owned()) })
        .method_not_allowed_fallback(|| async { Problem::Method })
        .with_state(gateway))
}

pub(crate) fn path<T>(path: Result<Path<T>, PathRejection>) -> Result<T, Problem> {
    path.map(|Path(path)| path)
        .map_err(|rejection| Problem::BadRequest(rejection.body_text()))
}

pub(crate) fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    query
        .map(|Query(query)| query)
        .map_err(|rejection| Problem::BadRequest(rejection.body_text()))
}

pub(crate) fn body<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Problem> {
    let Json(body) = body.map_err(|rejection| match rejection.status() {
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => Problem::BadRequest(rejection.body_text()),
        status => Problem::Refused {
            status,
            message: rejection.body_text(),
        },
    })?;
    Ok(body)
}

impl Gateway {
    /// Lets through who may, and says who they are; whoever may not hears the same whatever there is.
    pub(crate) async fn allow(
        &self,
        token: &Token,
        verb: Verb,
        namespace: &str,
        session: Option<&str>,
        raw: bool,
    ) -> Result<Arc<str>, Problem> {
        let grant = Grant {
            verb,
            namespace,
            session,
            raw,
        };
        Ok(self.reviewer.review(&Credentials::new(&token.0), &grant).await?)
    }

    /// The session of that id, if the caller may get it. That there is none is told to those who may get every session.
    pub(crate) async fn session(&self, token: &Token, id: &str) -> Result<Arc<ProfilingSession>, Problem> {
        Ok(self.session_as(token, id).await?.1)
    }

    /// Likewise, with the name of the caller.
    pub(crate) async fn session_as(
        &self,
        token: &Token,
        id: &str,
    ) -> Result<(Arc<str>, Arc<ProfilingSession>), Problem> {
        let found = self.sessions.by_id(id);
        let (namespace, name) = found.as_ref().map_or((String::new(), None), |session| {
            (session.namespace().unwrap_or_default(), Some(session.name_any()))
        });
        let user = self.allow(token, Verb::Get, &namespace, name.as_deref(), false).await?;
        let session = found.ok_or_else(|| Problem::NotFound("session of that id".to_owned()))?;
        Ok((user, session))
    }

    /// The session and the one capture that the request is about.
    pub(crate) async fn capture(
        &self,
        token: &Token,
        id: &str,
        wanted: Option<&str>,
    ) -> Result<(Arc<ProfilingSession>, Arc<Capture>), Problem> {
        let session = self.session(token, id).await?;
        let captures = self.sessions.captures_of(&session);
        if let Some(wanted) = wanted {
            let found = captures.into_iter().find(|capture| capture.name_any() == wanted);
            let capture = found.ok_or_else(|| Problem::NotFound("capture of that name in this session".to_owned()))?;
            return Ok((session, capture));
        }
        match captures.as_slice() {
            [] => Err(Problem::NotReady("The session has no capture yet.".to_owned())),
            [capture] => Ok((session, Arc::clone(capture))),
            _ => Err(Problem::SeveralCaptures(
                captures.iter().map(|capture| capture.name_any()).collect(),
            )),
        }
    }
}

/// The artifact of that name that the capture published.
pub(crate) fn published<'a>(capture: &'a Capture, name: &str) -> Option<&'a Artifact> {
    let artifacts = &capture.status.as_ref()?.artifacts;
    artifacts.iter().find(|artifact| artifact.name == name)
}

/// What the timeline of a capture is read from: the published one, or the raw capture that one can be made of.
pub(crate) fn source_of_timeline(capture: &Capture) -> Option<&Artifact> {
    timeline_source(&capture.status.as_ref()?.artifacts)
}

/// What can be profiled with.
#[utoipa::path(get, path = "/api/profiling/modes", tag = "sessions",
    responses((status = 200, body = ModeList)), security(()))]
async fn modes() -> Json<ModeList> {
    Json(ModeList::new())
}

/// Profiles pods: makes a ProfilingSession in the caller's own name.
#[utoipa::path(post, path = "/api/profiling/run", tag = "sessions", request_body = RunRequest,
    responses(
        (status = 202, body = RunAccepted, description = "The session was made."),
        Guarded,
        (status = 400, body = ProblemDetails, content_type = "application/problem+json", description = "Not such a request."),
        (status = 404, body = ProblemDetails, content_type = "application/problem+json", description = "The cluster has no such namespace."),
        (status = 409, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, body = ProblemDetails, content_type = "application/problem+json", description = "The API server refuses the session.")))]
async fn run(
    State(gateway): Shared,
    token: Token,
    asked_for: Result<Json<RunRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<RunAccepted>), Problem> {
    let refused = |error: RequestError| Problem::BadRequest(error.to_string());
    let mut request = body(asked_for)?;
    let namespace = namespace_of(&request, gateway.run_namespace.as_deref()).map_err(refused)?;
    if !request.names_pods() {
        request = gateway.with_defaults(&token, &namespace, request).await?;
    }
    let session = session_of(request).map_err(refused)?;
    let api: Api<ProfilingSession> = Api::namespaced(gateway.api_server.client(&token.0)?, &namespace);
    let made = asked(api.create(&PostParams::default(), &session)).await?;
    let uid = made.uid().unwrap_or_default();
    let waited = tokio::time::timeout(gateway.taken_up, async {
        loop {
            if let Some(id) = gateway.sessions.id_of_uid(&uid) {
                return id;
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    let session_id = waited.await.map_err(|_elapsed| Problem::NotTakenUp {
        session: format!("{namespace}/{}", made.name_any()),
    })?;
    let accepted = RunAccepted {
        session_id,
        status: SessionState::Pending,
        namespace,
        name: made.name_any(),
    };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Sessions, the newest first, in pages.
#[utoipa::path(get, path = "/api/profiling/sessions", tag = "sessions", params(ListQuery),
    responses(
        (status = 200, body = SessionList),
        Guarded))]
async fn list(
    State(gateway): Shared,
    token: Token,
    asked_for: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<SessionList>, Problem> {
    let ListQuery {
        namespace,
        status,
        mode,
        limit,
        after,
    } = query(asked_for)?;
    let limit = limit.unwrap_or(LARGEST_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(Problem::BadRequest(format!("limit must be 1 to {LARGEST_PAGE}")));
    }
    let after = after
        .map(|text| {
            Cursor::parse(&text).ok_or_else(|| Problem::BadRequest("after must be what a page gave as next".to_owned()))
        })
        .transpose()?;
    if namespace.as_deref().is_some_and(|name| !is_namespace(name)) {
        return Err(Problem::BadRequest("namespace must be the name of one".to_owned()));
    }
    let asked_namespace = namespace.as_deref().unwrap_or_default();
    gateway.allow(&token, Verb::List, asked_namespace, None, false).await?;
    let filter = Filter {
        namespace,
        status,
        mode,
    };
    let page = gateway.sessions.page(&filter, after.as_ref(), limit.into());
    Ok(Json(SessionList {
        sessions: page.sessions.iter().map(|session| SessionItem::of(session)).collect(),
        total: page.total,
        next: page.next.map(|cursor| cursor.text()),
    }))
}

/// A session, with its captures and what they published.
#[utoipa::path(get, path = "/api/profiling/session/{id}", tag = "sessions",
    params(SessionPath),
    responses(
        (status = 200, body = SessionDetail),
        OfSession))]
async fn session(
    State(gateway): Shared,
    token: Token,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<SessionDetail>, Problem> {
    let session = gateway.session(&token, &path(id)?).await?;
    let captures = gateway.sessions.captures_of(&session);
    Ok(Json(SessionDetail {
        session: SessionItem::of(&session),
        captures: captures.iter().map(|capture| CaptureItem::of(capture)).collect(),
    }))
}

/// Where a session stands, as server-sent events `profiling_started`, `profiling_progress`, `profiling_complete` and
/// `profiling_error`. The stream ends with the session, and after five minutes: come back with `Last-Event-ID`.
#[utoipa::path(get, path = "/api/profiling/session/{id}/events", tag = "sessions",
    params(
        SessionPath,
        ("Last-Event-ID" = Option<String>, Header, description = "What was heard last; only what differs from it is told.")),
    responses(
        (status = 200, body = ServerSentEvent, content_type = "text/event-stream", description = "The schema is that of each event."),
        OfSession))]
async fn events(
    State(gateway): Shared,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let id = path(id)?;
    let (user, _) = gateway.session_as(&token, &id).await?;
    let snapshot = gateway.sessions.watch(&id);
    let heard = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let listener = Listener {
        snapshot: snapshot.ok_or_else(|| Problem::NotFound("session of that id".to_owned()))?,
        heard: heard.map(str::to_owned),
        slot: gateway.listeners.take(&user)?,
    };
    Ok(Sse::new(listener.listen()).keep_alive(KeepAlive::default()))
}

/// Deletes a session, its captures and their artifacts, in the caller's own name.
#[utoipa::path(delete, path = "/api/profiling/session/{id}", tag = "sessions",
    params(SessionPath),
    responses(
        (status = 200, body = Deleted),
        OfSession))]
async fn delete(
    State(gateway): Shared,
    token: Token,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, Problem> {
    let session = gateway.session(&token, &path(id)?).await?;
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<ProfilingSession> = Api::namespaced(gateway.api_server.client(&token.0)?, &namespace);
    // Of this very session: one of the same name may have been made since.
    let exactly = DeleteParams {
        preconditions: Some(kube::api::Preconditions {
            uid: session.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    asked(api.delete(&session.name_any(), &exactly)).await?;
    Ok(Json(Deleted {
        session_id: id_of(&session).unwrap_or_default().to_owned(),
        status: "deleted",
    }))
}

/// What a capture published, and what is made of its timeline on demand.
#[utoipa::path(get, path = "/api/profiling/session/{id}/artifacts", tag = "artifacts",
    params(SessionPath, CaptureQuery),
    responses(
        (status = 200, body = ArtifactList),
        OfCapture,
        (status = 409, body = ProblemDetails, content_type = "application/problem+json", description = "No capture yet, or several and none named.")))]
async fn artifacts(
    State(gateway): Shared,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
) -> Result<Json<ArtifactList>, Problem> {
    let (id, which) = (path(id)?, query(which)?);
    let (_, capture) = gateway.capture(&token, &id, which.capture.as_deref()).await?;
    let status = capture.status.clone().unwrap_or_default();
    let forms = source_of_timeline(&capture).map(|source| {
        let timeline = (source.name != TIMELINE).then(DerivedItem::timeline);
        let exports = catalogue::artifacts().map(|(name, definition)| DerivedItem::of(name, definition));
        timeline.into_iter().chain(exports).collect()
    });
    Ok(Json(ArtifactList {
        session_id: id,
        capture: capture.name_any(),
        forms: forms.unwrap_or_default(),
        artifacts: status.artifacts.iter().map(ArtifactItem::of).collect(),
    }))
}

/// An artifact of a capture, or a derived artifact of its timeline: a single range, `If-Range` and `If-None-Match` are understood.
///
/// Derived artifacts (`timeline.h5` of a capture of which only the raw one is kept, `timeline.csv`, `timeline.parquet`, `samples.csv`, `samples.parquet`, `timeline.json.gz`, `timeline.pftrace`, `events.json`, `kernels.json`) are made on the
/// first request and kept for a time. One that takes long answers 503 with the reason `Converting`: ask again after `Retry-After`.
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
async fn artifact(
    State(gateway): Shared,
    token: Token,
    method: Method,
    place: Result<Path<(String, String)>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let ((id, name), which) = (path(place)?, query(which)?);
    let found = gateway.capture(&token, &id, which.capture.as_deref()).await?;
    gateway.stream(&token, found, &name, method, &headers).await
}

/// The timeline file (HDF5) of a capture, at `ID.h5`, of one of which only the raw capture is kept made of that on the first request; at `ID` its earliest 100,000 events as JSON (`{session_id, total_duration_ns,
/// total_events, events}`), made like any form of it. With any of `from`, `to`, `category`, `after` and `limit` the events that are
/// asked for, in pages: the result of the analysis `events`, whose `next` is the next page's `after`; the file is always whole. A single range, `If-Range` and
/// `If-None-Match` are understood.
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
async fn timeline(
    State(gateway): Shared,
    token: Token,
    method: Method,
    file: Result<Path<String>, PathRejection>,
    which: Result<Query<TimelineQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let (file, which) = (path(file)?, query(which)?);
    let (id, name) = match file.strip_suffix(".h5") {
        Some(id) => (id, TIMELINE),
        None if file.contains('.') => {
            let places = "the timeline file is at SESSION_ID.h5, its events at SESSION_ID";
            return Err(Problem::BadRequest(places.to_owned()));
        }
        None => (file.as_str(), EVENTS),
    };
    let parameters = which.parameters()?;
    let found = gateway.capture(&token, id, which.capture.as_deref()).await?;
    if parameters.is_empty() || name == TIMELINE {
        return gateway.stream(&token, found, name, method, &headers).await;
    }
    gateway
        .analyze(&token, "events", found, parameters, &method, &headers)
        .await
}

/// The launches that Nsight Compute measured: the result of the analysis `profiled-kernels`, also under the name `kernels.json`. A capture without
/// any answers 404 with the reason `NotCaptured`.
#[utoipa::path(method(get, head), path = "/api/profiling/kernels/{id}", tag = "artifacts",
    params(SessionPath, CaptureQuery, TransferHeaders), extensions(("x-result" = json!("profiled-kernels"))),
    responses(
        (status = 200),
        (status = 206, description = "A part of it."),
        OfCapture,
        Transfer))]
async fn kernels(
    State(gateway): Shared,
    token: Token,
    method: Method,
    id: Result<Path<String>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let (id, which) = (path(id)?, query(which)?);
    let found = gateway.capture(&token, &id, which.capture.as_deref()).await?;
    gateway.stream(&token, found, KERNELS, method, &headers).await
}

/// Whether the timeline file can be fetched; without `artifact` it is made of the raw capture on the first request.
#[utoipa::path(get, path = "/api/profiling/timeline/{id}/status", tag = "artifacts",
    params(SessionPath, CaptureQuery),
    responses(
        (status = 200, body = TimelineStatus),
        OfCapture))]
async fn timeline_status(
    State(gateway): Shared,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
) -> Result<Json<TimelineStatus>, Problem> {
    let (id, which) = (path(id)?, query(which)?);
    let capture = match gateway.capture(&token, &id, which.capture.as_deref()).await {
        Ok((_, capture)) => capture,
        // From the moment of the 202 on, before there is a capture.
        Err(Problem::NotReady(_)) => {
            let session = gateway.session(&token, &id).await?;
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
