//! Why a dropped file was not taken: problem details of RFC 9457, as the artifact service has them.

use std::io;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use flopwatch_http::problem::{Details, MEDIA_TYPE};

/// Why a file was not taken. Each variant is one closed reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The file was not sent as `application/octet-stream`.
    #[error("Send the file as application/octet-stream.")]
    MediaType,
    /// Another file is being converted.
    #[error("Another file is being converted; drop this one when that is done.")]
    Busy,
    /// The file is too large.
    #[error(
        "The file is larger than {max_bytes} bytes, which is the most that is taken here: convert it with `flopwatch convert`."
    )]
    TooLarge {
        /// Largest file that is accepted, in bytes.
        max_bytes: u64,
    },
    /// No bytes came for too long.
    #[error("No bytes of the file came for {0:?}.")]
    Stalled(Duration),
    /// The connection broke before the file's end.
    #[error("The file ended early: the connection broke.")]
    Broken,
    /// The file could not be kept.
    #[error("The file cannot be kept while it is converted: {0}.")]
    Disk(#[source] io::Error),
    /// What read it found something wrong with it.
    #[error("{0}")]
    Unreadable(String),
    /// A dashboard was asked for of a file that has none.
    #[error("Only of a profile of operations is there a dashboard in a format; this file is none.")]
    NoProfile,
    /// The timeline could not be published.
    #[error("The timeline could not be stored: {0}.")]
    Store(String),
    /// The work ended early.
    #[error("The conversion ended early: {0}.")]
    Task(#[source] tokio::task::JoinError),
}

impl Refusal {
    const fn kind(&self) -> (StatusCode, &'static str) {
        match self {
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "MediaType"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "Busy"),
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "TooLarge"),
            Self::Stalled(_) => (StatusCode::REQUEST_TIMEOUT, "Stalled"),
            Self::Broken => (StatusCode::BAD_REQUEST, "Broken"),
            Self::Disk(_) => (StatusCode::INSUFFICIENT_STORAGE, "Disk"),
            Self::Unreadable(_) => (StatusCode::UNPROCESSABLE_ENTITY, "Unreadable"),
            Self::NoProfile => (StatusCode::UNPROCESSABLE_ENTITY, "NoProfile"),
            Self::Store(_) => (StatusCode::INSUFFICIENT_STORAGE, "Store"),
            Self::Task(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Task"),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, reason) = self.kind();
        let details = Json(Details::new(status, reason, self.to_string()));
        (status, [(CONTENT_TYPE, MEDIA_TYPE)], details).into_response()
    }
}
