//! Ends a session before its time, in the caller's own name.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use flopwatch_api::session::{ProfilingSession, StopMode};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::gateway::access::SessionAccess;
use crate::gateway::api_server::{ApiServer, call_api_server};
use crate::gateway::extract::{body, path};
use crate::gateway::messages::{SessionPath, SessionState, state_of};
use crate::gateway::problem::{OfSession, Problem, ProblemDetails};
use crate::gateway::token::Token;

/// What becomes of what was recorded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stop {
    /// It is published.
    Keep,
    /// It is thrown away.
    Discard,
}

impl Stop {
    const fn mode(self) -> StopMode {
        match self {
            Self::Keep => StopMode::Keep,
            Self::Discard => StopMode::Discard,
        }
    }
}

/// How to stop.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopRequest {
    stop: Stop,
}

/// A session that was told to stop.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stopping {
    session_id: String,
    /// Where it stood then; it goes on to tell by its events.
    status: SessionState,
    stop: Stop,
}

/// Ends a session's captures now: the window is closed, and what was recorded is published or
/// thrown away. A session that has ended stays as it is.
#[utoipa::path(post, path = "/api/profiling/session/{id}/stop", tag = "sessions", request_body = StopRequest,
    params(SessionPath),
    responses(
        (status = 200, body = Stopping),
        (status = 409, body = ProblemDetails, content_type = "application/problem+json", description = "It is another session by now."),
        (status = 413, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, body = ProblemDetails, content_type = "application/problem+json", description = "What is thrown away cannot be kept any more."),
        OfSession))]
pub(crate) async fn stop(
    State(access): State<SessionAccess>,
    State(api_server): State<ApiServer>,
    token: Token,
    id: Result<Path<String>, PathRejection>,
    asked_for: Result<Json<StopRequest>, JsonRejection>,
) -> Result<Json<Stopping>, Problem> {
    let session = access.session(&token, &path(id)?).await?;
    let StopRequest { stop } = body(asked_for)?;
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<ProfilingSession> = Api::namespaced(api_server.client(&token.0)?, &namespace);
    // Of this very session: one of the same name may have been made since.
    let change = json!({ "metadata": { "uid": session.uid() }, "spec": { "stop": stop.mode() } });
    let params = PatchParams::default();
    call_api_server(api.patch(&session.name_any(), &params, &Patch::Merge(&change))).await?;
    Ok(Json(Stopping {
        session_id: session
            .status
            .as_ref()
            .and_then(|status| status.id.clone())
            .unwrap_or_default(),
        status: state_of(&session),
        stop,
    }))
}
