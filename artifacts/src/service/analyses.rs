//! The handler for results of analyses: of the capture in the path, and of further ones that the
//! query names.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use flopwatch_analysis::Request;
use flopwatch_api::artifact::TIMELINE;

use super::{Inner, Wanted, find_anywhere, find_named, input, open, serve_result};
use crate::access::Access;
use crate::input::Inputs;
use crate::manifest::{CaptureId, ManifestError};
use crate::problem::Problem;

/// Longest part of a wrong name that an answer repeats, in characters.
const MAX_NAME_CHARS: usize = 256;

/// The query of a request for an analysis.
#[derive(Debug, Default)]
struct AnalysisQuery {
    /// UID of the first capture.
    uid: Option<String>,
    /// SHA-256 of its manifest in the object store.
    stored: Option<String>,
    /// Further captures, in order, as [`capture_of`] reads them.
    with: Vec<String>,
    /// Everything else is a parameter of the analysis.
    parameters: Vec<(String, String)>,
}

impl AnalysisQuery {
    fn read(query: Vec<(String, String)>) -> Self {
        let mut parsed = Self::default();
        for (name, value) in query {
            match name.as_str() {
                "uid" => parsed.uid = Some(value),
                "stored" => parsed.stored = Some(value),
                "with" => parsed.with.push(value),
                _ => parsed.parameters.push((name, value)),
            }
        }
        parsed
    }
}

/// A capture as `NAMESPACE/NAME/UID`, or with the SHA-256 of its manifest in the object store
/// behind that.
fn capture_of(text: &str) -> Result<(CaptureId, Option<String>), ManifestError> {
    let parts: Vec<&str> = text.split('/').collect();
    let (namespace, name, uid, stored) = match parts.as_slice() {
        [namespace, name, uid] => (namespace, name, uid, None),
        [namespace, name, uid, stored] => (namespace, name, uid, Some((*stored).to_owned())),
        _ => {
            return Err(ManifestError::Name {
                what: "capture NAMESPACE/NAME/UID",
                value: text.chars().take(MAX_NAME_CHARS).collect(),
            });
        }
    };
    let [namespace, name, uid] = [namespace, name, uid].map(|part| (*part).to_owned());
    Ok((CaptureId { namespace, name, uid }, stored))
}

pub(super) async fn analyse(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path((namespace, capture, name)) = path.map_err(Problem::BadPath)?;
    let Query(query) = query.map_err(Problem::BadQuery)?;
    let AnalysisQuery {
        uid,
        stored,
        with,
        parameters,
    } = AnalysisQuery::read(query);
    let mut named = Vec::with_capacity(with.len());
    for text in &with {
        match capture_of(text) {
            Ok((other, stored)) => named.push((text, other, stored)),
            Err(error) => return Err(unknown_input(&inner, text, Problem::BadName(error)).await),
        }
    }
    let found = find_named(&inner, &namespace, capture, uid, stored.as_deref()).await;
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
    for (text, other, stored) in named {
        let found = find_anywhere(&inner, &other, stored.as_deref()).await;
        let (is_absent, is_here) = (matches!(found, Ok(None)), matches!(found, Ok(Some(_))));
        match open(&inner, &headers, &other.namespace, found, timeline).await {
            Ok((manifest, source, _)) => others.push(input(manifest, source)?),
            Err(problem @ (Problem::NotFound(_) | Problem::BadName(_))) if !is_here && is_of_one_machine(&inner) => {
                return Err(unknown_input(&inner, text, problem).await);
            }
            Err(Problem::NotFound(_)) if is_absent => missing.push(other),
            Err(problem) => return Err(problem),
        }
    }
    if !missing.is_empty() {
        return Err(Problem::MissingInputs(missing));
    }
    serve_result(&inner, &headers, Some(request), Inputs { first, others }).await
}

/// Whether everybody who asks may read every capture that is here, and no gateway brings others.
fn is_of_one_machine(inner: &Inner) -> bool {
    matches!(inner.access, Access::LoopbackOnly)
}

/// Why the capture that is called `text` cannot be a further input: on one machine it is said which
/// captures can, elsewhere it is `otherwise`.
async fn unknown_input(inner: &Inner, text: &str, otherwise: Problem) -> Problem {
    if !is_of_one_machine(inner) {
        return otherwise;
    }
    match inner.store.list().await {
        Ok(listing) => Problem::UnknownInput {
            asked: text.chars().take(MAX_NAME_CHARS).collect(),
            held: listing.manifests.into_iter().map(|manifest| manifest.capture).collect(),
        },
        Err(error) => Problem::of_store(&error, "the list of captures"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_named_by_three_parts_and_perhaps_by_what_the_store_has_of_it() {
        let parts = |text: &str| {
            let (capture, stored) = capture_of(text).unwrap();
            [Some(capture.namespace), Some(capture.name), Some(capture.uid), stored]
        };
        let texts = |parts: [Option<&str>; 4]| parts.map(|part| part.map(str::to_owned));
        let three = [Some("team"), Some("train"), Some("u-1"), None];
        assert_eq!(parts("team/train/u-1"), texts(three));
        let four = [Some("team"), Some("train"), Some("u-1"), Some("0a")];
        assert_eq!(parts("team/train/u-1/0a"), texts(four));
        for text in ["", "team", "team/train", "team/train/u/0a/x"] {
            assert!(capture_of(text).is_err(), "{text}");
        }
    }
}
