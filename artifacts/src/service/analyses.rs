//! Results of analyses: of the capture of the path, and of further ones that the query names.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use flopwatch_analysis::Request;
use flopwatch_api::artifact::TIMELINE;

use super::{Inner, Wanted, find, find_anywhere, input, open, serve_result};
use crate::input::Inputs;
use crate::manifest::{CaptureId, ManifestError};
use crate::problem::Problem;

/// What a query asks for.
#[derive(Debug, Default)]
struct Asked {
    /// UID of the first capture.
    uid: Option<String>,
    /// Further captures, in order.
    with: Vec<CaptureId>,
    /// Everything else is a parameter of the analysis.
    parameters: Vec<(String, String)>,
}

impl Asked {
    fn read(query: Vec<(String, String)>) -> Result<Self, ManifestError> {
        let mut asked = Self::default();
        for (name, value) in query {
            match name.as_str() {
                "uid" => asked.uid = Some(value),
                "with" => asked.with.push(capture_of(&value)?),
                _ => asked.parameters.push((name, value)),
            }
        }
        Ok(asked)
    }
}

/// A capture as `NAMESPACE/NAME/UID`.
fn capture_of(text: &str) -> Result<CaptureId, ManifestError> {
    let mut parts = text.split('/').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(name), Some(uid), None) => Ok(CaptureId { namespace, name, uid }),
        _ => Err(ManifestError::Name {
            what: "capture NAMESPACE/NAME/UID",
            value: text.chars().take(256).collect(),
        }),
    }
}

pub(super) async fn analyse(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path((namespace, capture, name)) = path.map_err(Problem::BadPath)?;
    let Query(query) = query.map_err(Problem::BadQuery)?;
    let Asked { uid, with, parameters } = Asked::read(query).map_err(Problem::BadName)?;
    let found = match uid {
        Some(uid) => find_anywhere(&inner, &namespace, &capture, uid).await,
        None => find(&inner, &namespace, &capture).await,
    };
    let timeline = Wanted::Artifact(TIMELINE);
    let (manifest, source, _) = open(&inner, &headers, &namespace, found, timeline).await?;
    let pairs = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let request = Request::from_pairs(&name, pairs).map_err(Problem::Request)?;
    let wanted = request.definition().inputs;
    if !wanted.accepts(with.len().saturating_add(1)) {
        return Err(Problem::InputCount(wanted.as_str()));
    }
    let first = input(manifest, source)?;
    let (mut others, mut missing) = (Vec::new(), Vec::new());
    for other in with {
        let found = find_anywhere(&inner, &other.namespace, &other.name, other.uid.clone()).await;
        let is_absent = matches!(found, Ok(None));
        match open(&inner, &headers, &other.namespace, found, timeline).await {
            Ok((manifest, source, _)) => others.push(input(manifest, source)?),
            Err(Problem::NotFound(_)) if is_absent => missing.push(other),
            Err(problem) => return Err(problem),
        }
    }
    if !missing.is_empty() {
        return Err(Problem::MissingInputs(missing));
    }
    serve_result(&inner, &headers, Some(request), Inputs { first, others }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_named_by_three_parts() {
        let capture = capture_of("team/train/u-1").unwrap();
        assert_eq!(
            (capture.namespace.as_str(), capture.name.as_str(), capture.uid.as_str()),
            ("team", "train", "u-1")
        );
        for text in ["", "team", "team/train", "team/train/u/x"] {
            assert!(capture_of(text).is_err(), "{text}");
        }
    }
}
