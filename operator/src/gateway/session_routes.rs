//! Sessions over HTTP: made, listed, followed and deleted.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use flopwatch_api::session::ProfilingSession;
use flopwatch_http::Verb;
use futures::Stream;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};

use crate::gateway::access::SessionAccess;
use crate::gateway::api_server::{ApiServer, call_api_server};
use crate::gateway::extract::{body, path, query};
use crate::gateway::messages::{
    CaptureItem, Deleted, ListQuery, RunAccepted, RunRequest, SessionDetail, SessionItem, SessionList, SessionPath,
    SessionState,
};
use crate::gateway::mode::ModeList;
use crate::gateway::problem::{Guarded, OfSession, Problem, ProblemDetails};
use crate::gateway::progress::{Listener, ServerSentEvent, Subscriptions};
use crate::gateway::request::{RequestError, is_namespace, namespace_of, session_of};
use crate::gateway::sessions::{Cursor, Filter, Sessions, id_of};
use crate::gateway::token::Token;

/// Time between two looks for the id of a session that was made.
const ID_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Most sessions on a page, and on one whose size nobody asked for: a client that knows no pages
/// sees all sessions up to here.
const MAX_PAGE_SIZE: u16 = 1000;

/// What sessions are made with.
#[derive(Clone)]
pub(crate) struct SessionCreation {
    pub(crate) api_server: ApiServer,
    pub(crate) sessions: Sessions,
    /// Longest wait for the controller to give a session its id.
    pub(crate) id_timeout: Duration,
    /// Namespace of requests that name none.
    pub(crate) namespace: Option<Arc<str>>,
}

/// What can be profiled with.
#[utoipa::path(get, path = "/api/profiling/modes", tag = "sessions",
    responses((status = 200, body = ModeList)), security(()))]
pub(crate) async fn modes() -> Json<ModeList> {
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
pub(crate) async fn run(
    State(creation): State<SessionCreation>,
    token: Token,
    asked_for: Result<Json<RunRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<RunAccepted>), Problem> {
    let refused = |error: RequestError| Problem::BadRequest(error.to_string());
    let mut request = body(asked_for)?;
    let namespace = namespace_of(&request, creation.namespace.as_deref()).map_err(refused)?;
    if !request.names_pods() {
        request = creation.api_server.with_defaults(&token, &namespace, request).await?;
    }
    let session = session_of(request).map_err(refused)?;
    let api: Api<ProfilingSession> = Api::namespaced(creation.api_server.client(&token.0)?, &namespace);
    let made = call_api_server(api.create(&PostParams::default(), &session)).await?;
    let uid = made.uid().unwrap_or_default();
    let waited = tokio::time::timeout(creation.id_timeout, async {
        loop {
            if let Some(id) = creation.sessions.id_of_uid(&uid) {
                return id;
            }
            tokio::time::sleep(ID_POLL_INTERVAL).await;
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
pub(crate) async fn list(
    State(access): State<SessionAccess>,
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
    let limit = limit.unwrap_or(MAX_PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&limit) {
        return Err(Problem::BadRequest(format!("limit must be 1 to {MAX_PAGE_SIZE}")));
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
    access.allow(&token, Verb::List, asked_namespace, None, false).await?;
    let filter = Filter {
        namespace,
        status,
        mode,
    };
    let page = access.sessions.page(&filter, after.as_ref(), limit.into());
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
pub(crate) async fn session(
    State(access): State<SessionAccess>,
    token: Token,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<SessionDetail>, Problem> {
    let session = access.session(&token, &path(id)?).await?;
    let captures = access.sessions.captures_of(&session);
    Ok(Json(SessionDetail {
        session: SessionItem::of(&session),
        captures: captures.iter().map(|capture| CaptureItem::of(capture)).collect(),
    }))
}

/// Where a session stands, as server-sent events `profiling_started`, `profiling_progress`,
/// `profiling_complete` and `profiling_error`. The stream ends with the session, and after five
/// minutes: come back with `Last-Event-ID`.
#[utoipa::path(get, path = "/api/profiling/session/{id}/events", tag = "sessions",
    params(
        SessionPath,
        ("Last-Event-ID" = Option<String>, Header, description = "What was heard last; only what differs from it is told.")),
    responses(
        (status = 200, body = ServerSentEvent, content_type = "text/event-stream", description = "The schema is that of each event."),
        OfSession))]
pub(crate) async fn events(
    State(subscriptions): State<Subscriptions>,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let id = path(id)?;
    let (user, _) = subscriptions.access.session_as(&token, &id).await?;
    let snapshot = subscriptions.access.sessions.watch(&id);
    let last_event_id = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let listener = Listener {
        snapshot: snapshot.ok_or_else(|| Problem::NotFound("session of that id".to_owned()))?,
        last_event_id: last_event_id.map(str::to_owned),
        slot: subscriptions.listeners.take(&user)?,
    };
    Ok(Sse::new(listener.listen()).keep_alive(KeepAlive::default()))
}

/// Deletes a session, its captures and their artifacts, in the caller's own name.
#[utoipa::path(delete, path = "/api/profiling/session/{id}", tag = "sessions",
    params(SessionPath),
    responses(
        (status = 200, body = Deleted),
        OfSession))]
pub(crate) async fn delete(
    State(access): State<SessionAccess>,
    State(api_server): State<ApiServer>,
    token: Token,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, Problem> {
    let session = access.session(&token, &path(id)?).await?;
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<ProfilingSession> = Api::namespaced(api_server.client(&token.0)?, &namespace);
    // Of this very session: one of the same name may have been made since.
    let exactly = DeleteParams {
        preconditions: Some(kube::api::Preconditions {
            uid: session.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    call_api_server(api.delete(&session.name_any(), &exactly)).await?;
    Ok(Json(Deleted {
        session_id: id_of(&session).unwrap_or_default().to_owned(),
        status: "deleted",
    }))
}
