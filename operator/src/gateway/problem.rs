//! Errors as clients see them: problem details of RFC 9457, with a `reason` of a closed set.

use std::collections::BTreeMap;

use axum::http::header::ALLOW;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flopwatch_artifacts::object_store::ObjectStoreError;
use flopwatch_http::{Denied, Unsatisfiable, problem};
use serde::Serialize;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, ResponsesBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::gateway::agents::AgentError;
use crate::gateway::fleet::FleetProblem;

/// An answer other than success.
#[derive(Debug)]
pub(crate) enum Problem {
    /// Path, query or body is not what the document says.
    BadRequest(String),
    /// There is no token, or the API server does not know it.
    Unauthenticated,
    /// The caller may not; says nothing about what exists.
    Forbidden,
    /// The caller may tell the schedules of no namespace that is named of alerts.
    AlertsForbidden,
    /// The caller may read the session, but not its raw captures.
    RawForbidden,
    /// A page of another site asks a browser's sign-in for something.
    OtherSite,
    /// There is no such thing, and the caller may know.
    NotFound(String),
    /// The path exists, the method does not.
    Method,
    /// The session has several captures and the request names none.
    SeveralCaptures(Vec<String>),
    /// What is asked for does not exist yet.
    NotReady(String),
    /// The API server refuses what the caller asked for.
    Refused {
        /// Its status: 400, 403, 404, 409, 422 or 429.
        status: StatusCode,
        /// Message of the API server.
        message: String,
    },
    /// The API server did not answer.
    ApiServer,
    /// The session was made and the controller has not taken it up.
    NotTakenUp {
        /// The session, as `namespace/name`.
        session: String,
    },
    /// As many clients as may be are listening.
    Busy,
    /// As many of the caller's as may be.
    BusyCaller,
    /// As many bodies of alerts as may be are being answered.
    AlertsBusy,
    /// As many of the caller's as may be.
    AlertsBusyCaller,
    /// The gateway itself failed; says how.
    Own(String),
    /// The node's agent did not answer as it should.
    Agent(AgentError),
    /// The object store did not.
    Store(ObjectStoreError),
    /// There are no sums of the fleet.
    Fleet(FleetProblem),
    /// No byte of the range is in the artifact.
    Range(Unsatisfiable),
}

/// Problem details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemDetails {
    /// Always `about:blank`: `reason` tells problems apart.
    #[schema(example = "about:blank")]
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What is wrong, of a closed set.
    #[schema(example = "Forbidden")]
    reason: &'static str,
    /// What is wrong and what helps, for people.
    detail: String,
    /// The session's captures, where one of several must be named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    captures: Vec<String>,
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => Self::Unauthenticated,
            Denied::Forbidden => Self::Forbidden,
            Denied::Unavailable => Self::ApiServer,
        }
    }
}

impl From<AgentError> for Problem {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

impl Problem {
    /// In one line, where there is no room for more.
    pub(crate) fn in_one_line(&self) -> String {
        let (_, reason, detail) = self.describe();
        format!("{reason}: {detail}")
    }

    fn describe(&self) -> (StatusCode, &'static str, String) {
        match self {
            Self::BadRequest(what) => (StatusCode::BAD_REQUEST, "BadRequest", what.clone()),
            Self::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "Unauthenticated",
                "Send `Authorization: Bearer TOKEN` with a token of this cluster, such as `kubectl create token` makes.".to_owned(),
            ),
            Self::Forbidden => (
                StatusCode::FORBIDDEN,
                "Forbidden",
                "This needs a right on profilingsessions (flopwatch.dev): `get` in the session's namespace, or `list` for lists. \
                 A list of one namespace is asked for by ?namespace=NAME."
                    .to_owned(),
            ),
            Self::AlertsForbidden => (
                StatusCode::FORBIDDEN,
                "Forbidden",
                "This needs `create` on profilingschedules/alerts (flopwatch.dev) in a namespace that the alerts name: bind ClusterRole \
                 flopwatch-alerts there to Alertmanager's service account."
                    .to_owned(),
            ),
            Self::RawForbidden => (
                StatusCode::FORBIDDEN,
                "RawForbidden",
                "A raw capture holds process environments; reading it needs `get` on profilingsessions/raw (flopwatch.dev) too."
                    .to_owned(),
            ),
            Self::OtherSite => (
                StatusCode::FORBIDDEN,
                "OtherSite",
                "Browsers are signed in and out by the gateway's own pages alone. Programs need no sign-in: they send \
                 `Authorization: Bearer TOKEN`."
                    .to_owned(),
            ),
            Self::NotFound(what) => (StatusCode::NOT_FOUND, "NotFound", format!("There is no {what}.")),
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "Method",
                "The path does not have this method; /api/openapi.json lists those it has.".to_owned(),
            ),
            Self::SeveralCaptures(_) => (
                StatusCode::CONFLICT,
                "SeveralCaptures",
                "The session has several captures; name one with ?capture=NAME.".to_owned(),
            ),
            Self::NotReady(what) => (StatusCode::CONFLICT, "NotReady", what.clone()),
            Self::Refused { status, message } => (*status, "Refused", message.clone()),
            Self::ApiServer => (
                StatusCode::SERVICE_UNAVAILABLE,
                "ApiServer",
                "The Kubernetes API did not answer; try again.".to_owned(),
            ),
            Self::NotTakenUp { session } => (
                StatusCode::SERVICE_UNAVAILABLE,
                "NotTakenUp",
                format!("The session {session} was made, and the controller has not taken it up yet; it will be among the sessions."),
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Busy",
                "As many clients as may be are listening; try again, or look at the session from time to time.".to_owned(),
            ),
            Self::BusyCaller => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Busy",
                "As many of your clients as may be are listening; end one, or look at the session from time to time.".to_owned(),
            ),
            Self::AlertsBusy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Busy",
                "As many requests with alerts as may be are being answered; send it again.".to_owned(),
            ),
            Self::AlertsBusyCaller => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Busy",
                "As many of your requests with alerts as may be are being answered; send it again. The service accounts of a namespace count \
                 as one user."
                    .to_owned(),
            ),
            Self::Own(what) => (StatusCode::INTERNAL_SERVER_ERROR, "Gateway", what.clone()),
            Self::Agent(error) => (error.status(), error.reason(), error.to_string()),
            Self::Fleet(problem) => problem.describe(),
            Self::Store(error) => {
                let (status, reason) = match error {
                    ObjectStoreError::Corrupt { .. } | ObjectStoreError::Unverified(_) => (StatusCode::BAD_GATEWAY, "Corrupt"),
                    ObjectStoreError::Missing(_) => (StatusCode::NOT_FOUND, "NotFound"),
                    ObjectStoreError::Slow { .. } => (StatusCode::GATEWAY_TIMEOUT, "ObjectStoreSlow"),
                    _ => (StatusCode::SERVICE_UNAVAILABLE, "ObjectStore"),
                };
                (status, reason, format!("The node cannot give it, and {error}."))
            }
            Self::Range(Unsatisfiable { bytes }) => (
                StatusCode::RANGE_NOT_SATISFIABLE,
                "Range",
                format!("The artifact has {bytes} bytes, and the range none of them."),
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, reason, detail) = self.describe();
        if status.is_server_error() {
            tracing::warn!(reason, detail, "a request failed");
        }
        let captures = match &self {
            Self::SeveralCaptures(captures) => captures.clone(),
            _ => Vec::new(),
        };
        let body = ProblemDetails {
            r#type: "about:blank",
            title: problem::title(status),
            status: status.as_u16(),
            reason,
            detail,
            captures,
        };
        let mut response = problem::respond(status, &body);
        match self {
            Self::Method => {
                let methods = HeaderValue::from_static("GET, HEAD, POST, DELETE");
                drop(response.headers_mut().insert(ALLOW, methods));
            }
            Self::Range(unsatisfiable) => problem::say_size(&mut response, unsatisfiable),
            _ => {}
        }
        response
    }
}

/// What the document says of a path that asks for a token, beside success.
pub(crate) enum Guarded {}

/// What the document says of a path of one session that asks for a token, beside success.
pub(crate) enum OfSession {}

/// What the document says of a path of one capture, beside success: there may be none yet, or
/// several and none named.
pub(crate) enum OfCapture {}

/// What may come of an artifact on its way from the agent, beside the whole or a part.
pub(crate) enum Transfer {}

impl IntoResponses for Guarded {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        documented(&["400", "401", "403", "503"], &[])
    }
}

impl IntoResponses for OfSession {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        documented(&["400", "401", "403", "404", "503"], &[])
    }
}

impl IntoResponses for OfCapture {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        documented(&["400", "401", "403", "404", "409", "503"], &[])
    }
}

impl IntoResponses for Transfer {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let bare = [("304", "The caller has it."), ("416", "The range lies outside.")];
        documented(&["500", "502", "504"], &bare)
    }
}

/// Statuses that come with problem details, and such that come without a body.
fn documented(problems: &[&str], bare: &[(&str, &str)]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let details = || {
        let schema = Ref::from_schema_name(ProblemDetails::name());
        ContentBuilder::new().schema(Some(schema)).build()
    };
    let problems = problems.iter().map(|status| {
        let response = ResponseBuilder::new().content(problem::MEDIA_TYPE, details());
        (*status, response.build())
    });
    let bare = bare
        .iter()
        .map(|(status, words)| (*status, ResponseBuilder::new().description(*words).build()));
    ResponsesBuilder::new()
        .responses_from_iter(problems.chain(bare))
        .build()
        .responses
}
