//! Errors as clients see them: problem details of RFC 9457.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flopwatch_analysis::RequestError;
use flopwatch_api::reason::ArtifactReason;
use flopwatch_http::Unsatisfiable;
use flopwatch_http::problem::{self, Details};
use serde::Serialize;

use crate::conversion::ConversionError;
use crate::manifest::{CaptureId, ManifestError};
use crate::object_store::ObjectStoreError;
use crate::store::StoreError;

/// An answer other than success. Each variant is one closed reason.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A path segment is not a Kubernetes name.
    BadName(ManifestError),
    /// The path is not UTF-8 once it is decoded.
    BadPath(PathRejection),
    /// The query is not what it should be.
    BadQuery(QueryRejection),
    /// There is no token, or the API server does not know it.
    Unauthenticated,
    /// The caller may not; says nothing about what exists.
    Forbidden,
    /// The caller may read the session, but not its raw captures.
    RawForbidden,
    /// There is no such thing, and the caller may know.
    NotFound(String),
    /// The path exists, the method does not.
    Method,
    /// No byte of the range is in the artifact.
    Range(Unsatisfiable),
    /// The request came for another host than this machine.
    ForeignHost,
    /// The Kubernetes API did not answer.
    Reviews,
    /// The content is not what was published.
    Corrupt(String),
    /// The bucket that holds the artifact fails; says how.
    ObjectStore(String),
    /// The store failed; the log says how.
    Store,
    /// The capture holds nothing that the result would show.
    NotCaptured,
    /// The catalogue has no such analysis, or it has no such parameter.
    Request(RequestError),
    /// More or fewer captures were named than the analysis is made of.
    InputCount(&'static str),
    /// Captures of other nodes are neither here nor in the object store.
    MissingInputs(Vec<CaptureId>),
    /// No capture of that name is on this machine, where all may be chosen that are.
    UnknownInput {
        /// The name that was asked for.
        asked: String,
        /// The captures that are here.
        held: Vec<CaptureId>,
    },
    /// A timeline was not taken.
    Input(StatusCode, ArtifactReason, String),
    /// A result is not there yet, or cannot be made.
    Conversion(ConversionError),
}

impl From<ConversionError> for Problem {
    fn from(error: ConversionError) -> Self {
        match error {
            ConversionError::NoTimeline => {
                Self::NotFound("timeline in this capture, nor a raw one that it could be made of".to_owned())
            }
            ConversionError::NotCaptured => Self::NotCaptured,
            ConversionError::MissingInputs(missing) => Self::MissingInputs(missing),
            ConversionError::Corrupt => Self::Corrupt("the capture".to_owned()),
            ConversionError::ObjectStore(text) => Self::ObjectStore(text),
            ConversionError::Store => Self::Store,
            other => Self::Conversion(other),
        }
    }
}

impl Problem {
    fn describe(&self) -> (StatusCode, ArtifactReason, String) {
        match self {
            Self::BadName(error) => (StatusCode::BAD_REQUEST, ArtifactReason::BadName, error.to_string()),
            Self::BadQuery(rejection) => (StatusCode::BAD_REQUEST, ArtifactReason::BadQuery, rejection.body_text()),
            Self::BadPath(rejection) => (StatusCode::BAD_REQUEST, ArtifactReason::BadPath, rejection.body_text()),
            Self::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                ArtifactReason::Unauthenticated,
                "Send `Authorization: Bearer TOKEN` with a token of this cluster, such as `kubectl create token` makes.".into(),
            ),
            Self::Forbidden => (
                StatusCode::FORBIDDEN,
                ArtifactReason::Forbidden,
                "Reading a capture needs `get` on its profilingsession (flopwatch.dev) in this namespace.".into(),
            ),
            Self::RawForbidden => (
                StatusCode::FORBIDDEN,
                ArtifactReason::RawForbidden,
                "A raw capture holds process environments; reading it needs `get` on profilingsessions/raw (flopwatch.dev) too.".into(),
            ),
            Self::NotFound(what) => (StatusCode::NOT_FOUND, ArtifactReason::NotFound, format!("There is no {what}.")),
            Self::NotCaptured => (
                StatusCode::NOT_FOUND,
                ArtifactReason::NotCaptured,
                "The capture holds nothing that this file is made of: counters of kernels come of Nsight Compute, flame graphs of GPU work or, with \
                 weight=cpu, of ranges, operators and functions."
                    .into(),
            ),
            Self::Request(error @ RequestError::Unknown { .. }) => {
                (StatusCode::NOT_FOUND, ArtifactReason::NotFound, sentence(&error.to_string()))
            }
            Self::Request(error) => (StatusCode::BAD_REQUEST, ArtifactReason::BadParameter, sentence(&error.to_string())),
            Self::InputCount(wanted) => (
                StatusCode::BAD_REQUEST,
                ArtifactReason::BadInputs,
                format!("The analysis is made of {wanted}: name the others with ?with=NAMESPACE/CAPTURE/UID, once for each."),
            ),
            Self::MissingInputs(missing) => (
                StatusCode::CONFLICT,
                ArtifactReason::MissingInputs,
                format!("{} of the captures are not on this node; the gateway brings them.", missing.len()),
            ),
            Self::UnknownInput { asked, held } => {
                let held = held.iter().map(|CaptureId { namespace, name, uid }| format!("{namespace}/{name}/{uid}"));
                let held = held.collect::<Vec<_>>().join(", ");
                let detail = format!("There is no capture {asked:?} here; ?with= takes one of: {held}.");
                (StatusCode::BAD_REQUEST, ArtifactReason::BadInputs, detail)
            }
            Self::Input(status, reason, detail) => (*status, *reason, detail.clone()),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, ArtifactReason::Method, "Artifacts are read with GET or HEAD.".into()),
            Self::Range(Unsatisfiable { bytes }) => {
                (StatusCode::RANGE_NOT_SATISFIABLE, ArtifactReason::Range, format!("The artifact has {bytes} bytes; the range holds none of them."))
            }
            Self::ForeignHost => (
                StatusCode::MISDIRECTED_REQUEST,
                ArtifactReason::ForeignHost,
                "This service answers requests for localhost alone.".into(),
            ),
            Self::Reviews => (
                StatusCode::SERVICE_UNAVAILABLE,
                ArtifactReason::Reviews,
                "The Kubernetes API could not be asked who may read this; try again.".into(),
            ),
            Self::Corrupt(name) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                ArtifactReason::Corrupt,
                format!("The stored content of {name} does not match its SHA-256 and is not served; profile again."),
            ),
            Self::Conversion(error) => match error {
                ConversionError::Busy => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    ArtifactReason::Busy,
                    "As many conversions as may be are waiting on this node; try again.".into(),
                ),
                ConversionError::UnderWay => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    ArtifactReason::Converting,
                    "It is being made; ask again.".into(),
                ),
                failed => (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    ArtifactReason::ConversionFailed,
                    format!("It could not be made: {failed}."),
                ),
            },
            Self::ObjectStore(text) => (StatusCode::BAD_GATEWAY, ArtifactReason::ObjectStore, format!("It cannot be read: {text}.")),
            Self::Store => {
                (StatusCode::INTERNAL_SERVER_ERROR, ArtifactReason::Store, "The artifact store failed; the agent's log says how.".into())
            }
        }
    }

    /// Why a timeline that was handed over was not taken.
    pub(crate) fn of_input(error: &StoreError) -> Self {
        let (status, reason) = match error {
            StoreError::InputTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, ArtifactReason::TooLarge),
            StoreError::InputDiffers { .. } => (StatusCode::UNPROCESSABLE_ENTITY, ArtifactReason::Mismatch),
            StoreError::InputBroken(_) => (StatusCode::BAD_REQUEST, ArtifactReason::Broken),
            StoreError::NoSpace { .. } => (StatusCode::INSUFFICIENT_STORAGE, ArtifactReason::NoSpace),
            StoreError::Manifest(_) => (StatusCode::BAD_REQUEST, ArtifactReason::BadQuery),
            other => return Self::of_store(other, "the input"),
        };
        Self::Input(status, reason, sentence(&error.to_string()))
    }

    /// What to tell the client about a failure of the store; the log has the rest.
    pub(crate) fn of_store(error: &StoreError, name: &str) -> Self {
        match error {
            StoreError::Corrupt { .. } | StoreError::ObjectStore(ObjectStoreError::Corrupt { .. }) => {
                return Self::Corrupt(name.to_owned());
            }
            StoreError::ObjectStore(error) => return Self::ObjectStore(error.to_string()),
            _ => {}
        }
        tracing::error!(%error, artifact = name, "artifact store failed");
        Self::Store
    }
}

/// A message as a sentence.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

#[derive(Serialize)]
struct WithMissing<'a> {
    #[serde(flatten)]
    details: Details,
    /// UIDs of the captures.
    missing: Vec<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, reason, detail) = self.describe();
        let details = Details::new(status, reason.as_str(), detail);
        let mut response = match &self {
            Self::MissingInputs(missing) => {
                let missing = missing.iter().map(|capture| capture.uid.as_str()).collect();
                problem::respond(status, &WithMissing { details, missing })
            }
            _ => problem::respond(status, &details),
        };
        match self {
            Self::Method => drop(
                response
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static("GET, HEAD")),
            ),
            Self::Range(unsatisfiable) => problem::say_size(&mut response, unsatisfiable),
            _ => {}
        }
        response
    }
}
