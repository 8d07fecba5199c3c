//! The head of an answer over HTTP with an artifact: the same from an agent and from the gateway.

use std::ops::Range;

use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    InvalidHeaderValue,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flopwatch_api::artifact::Artifact;

use crate::conditional::{Selection, select};

/// What to answer with.
#[derive(Clone, Debug)]
pub struct Answer {
    /// 200, 206 or 304.
    pub status: StatusCode,
    /// The headers that describe the artifact and the part of it.
    pub headers: HeaderMap,
    /// The bytes of the body; None where the client has it already.
    pub range: Option<Range<u64>>,
}

/// No byte of the range that was asked for is in the artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsatisfiable {
    /// Size of the artifact.
    pub bytes: u64,
}

/// Reads the conditions and the range of a request for an artifact, which is to be saved as `name`.
/// The entity tag is the SHA-256.
pub fn answer(asked: &HeaderMap, artifact: &Artifact, name: &str) -> Result<Answer, Unsatisfiable> {
    let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: Result<HeaderValue, InvalidHeaderValue>| match value {
        Ok(value) => drop(headers.insert(name, value)),
        Err(_odd) => tracing::warn!(header = %name, "an artifact's field does not fit into a header"),
    };
    set(ETAG, HeaderValue::try_from(format!("\"{}\"", artifact.sha256)));
    set(
        HeaderName::from_static("repr-digest"),
        HeaderValue::try_from(repr_digest(&artifact.sha256)),
    );
    set(ACCEPT_RANGES, HeaderValue::try_from("bytes"));
    set(CACHE_CONTROL, HeaderValue::try_from("private, no-cache"));
    let mut status = StatusCode::OK;
    let range = match select(asked, &artifact.sha256, bytes) {
        Selection::NotModified => {
            return Ok(Answer {
                status: StatusCode::NOT_MODIFIED,
                headers,
                range: None,
            });
        }
        Selection::Unsatisfiable => return Err(Unsatisfiable { bytes }),
        Selection::Whole => 0..bytes,
        Selection::Part(range) => {
            let last = range.end.saturating_sub(1);
            set(
                CONTENT_RANGE,
                HeaderValue::try_from(format!("bytes {}-{last}/{bytes}", range.start)),
            );
            status = StatusCode::PARTIAL_CONTENT;
            range
        }
    };
    let media_type = match artifact.media_type.as_str() {
        "" => "application/octet-stream",
        media_type => media_type,
    };
    set(CONTENT_TYPE, HeaderValue::try_from(media_type));
    set(
        CONTENT_DISPOSITION,
        HeaderValue::try_from(format!("attachment; filename=\"{name}\"")),
    );
    let length = range.end.saturating_sub(range.start);
    set(CONTENT_LENGTH, Ok(HeaderValue::from(length)));
    Ok(Answer {
        status,
        headers,
        range: Some(range),
    })
}

/// `Repr-Digest` of RFC 9530: it is of the whole representation, also beside a part of it.
fn repr_digest(sha256: &str) -> String {
    // What is no digest has none here: manifests that name such a one are refused.
    let digest = hex::decode(sha256).unwrap_or_default();
    format!("sha-256=:{}:", STANDARD.encode(digest))
}
