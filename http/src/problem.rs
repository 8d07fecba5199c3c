//! Errors as clients see them: problem details of RFC 9457.

use axum::Json;
use axum::http::header::{CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::answer::Unsatisfiable;

/// The media type of problem details.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Problem details without members of their own.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    reason: &'static str,
    detail: String,
}

impl Details {
    /// `reason` is one of a closed set, `detail` says what is wrong and what helps.
    pub fn new(status: StatusCode, reason: &'static str, detail: String) -> Self {
        Self {
            r#type: "about:blank",
            title: title(status),
            status: status.as_u16(),
            reason,
            detail,
        }
    }
}

/// The title of problem details of that status.
pub fn title(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

/// An answer with problem details. It is never cached; 401 says how to identify oneself, 503 when
/// to ask again.
pub fn respond(status: StatusCode, details: &impl Serialize) -> Response {
    let mut response = (status, Json(details)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"flopwatch\""));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
    }
    response
}

/// The header of 416 that says how much there is.
pub fn say_size(response: &mut Response, Unsatisfiable { bytes }: Unsatisfiable) {
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{bytes}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
}
