//! Results of analyses of the capture that is shown: the gateway makes them, and is asked with the
//! user's token.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use form_urlencoded::parse;

use super::{foreign, refuse};
use crate::analysis::{CaptureAddress, path, typed_result};
use crate::error::Error;
use crate::fetch::Wanted;
use crate::gateway::{Gateway, GatewayError};

/// What the gateway is asked for.
pub(super) struct Analyses {
    gateway: Gateway,
    capture: CaptureAddress,
}

impl Analyses {
    /// Analyses of the capture of a timeline.
    pub(super) fn of(gateway: Gateway, timeline: &Wanted) -> Self {
        let capture = CaptureAddress {
            session: timeline.session.clone(),
            capture: Some(timeline.capture.clone()),
        };
        Self { gateway, capture }
    }
}

/// The routes below the path of a capture, where a node's agent has its own.
pub(super) fn router(capture: &str, source: Arc<Analyses>) -> Router {
    let path = format!("{capture}/analyses/{{name}}");
    Router::new().route(&path, get(result)).with_state(source)
}

async fn result(
    State(source): State<Arc<Analyses>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    if let Some(refused) = foreign(&headers) {
        return refused;
    }
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_name) {
        return refuse(StatusCode::NOT_FOUND, "NotFound", "There is no analysis of that name.");
    }
    let parameters: Vec<_> = parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
    if parameters.iter().any(|(parameter, _)| parameter == "with") {
        let words = "One capture is shown here. To compare two: kubectl flopwatch compare.";
        return refuse(StatusCode::BAD_REQUEST, "OneCapture", words);
    }
    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let wanted = path(&source.capture, &name, &[], parameters);
    match typed_result(&source.gateway, &wanted).await {
        Ok((content_type, body)) => {
            let mut response = body.into_response();
            let headers = response.headers_mut();
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            if let Some(content_type) = content_type {
                headers.insert(CONTENT_TYPE, content_type);
            }
            response
        }
        Err(Error::Gateway(GatewayError::Refused { status, detail, .. })) => refuse(status, "Gateway", &detail),
        Err(error) => refuse(StatusCode::BAD_GATEWAY, "Gateway", &error.to_string()),
    }
}
