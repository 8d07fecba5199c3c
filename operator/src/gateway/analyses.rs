//! Analyses of the catalogue over captures of one session or of several.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, Response};
use flopwatch_analysis::{Definition, Request, catalogue};
use flopwatch_api::artifact::{TIMELINE, analysis_path};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use kube::ResourceExt as _;
use serde::Serialize;
use url::form_urlencoded::Serializer;
use utoipa::ToSchema;

use crate::gateway::deliver::{AuthorizedArtifact, Delivery, ResultPath, with_file_name};
use crate::gateway::extract::{path, query};
use crate::gateway::messages::{CaptureQuery, SessionPath, TransferHeaders};
use crate::gateway::problem::{OfCapture, Problem, Transfer};
use crate::gateway::token::Token;

/// Every analysis.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AnalysisList {
    analyses: Vec<AnalysisItem>,
}

/// An analysis.
#[derive(Debug, Serialize, ToSchema)]
struct AnalysisItem {
    /// Name of the analysis, as paths have it.
    name: &'static str,
    /// Raised whenever the same captures may give another result.
    version: u32,
    /// What it tells.
    about: &'static str,
    /// What it is about, for lists.
    #[schema(value_type = String)]
    group: flopwatch_analysis::Group,
    /// How many captures it is made of: `one`, `two`, or `many`, which is 1 to 64.
    #[schema(value_type = String)]
    inputs: flopwatch_analysis::InputCount,
    /// Media type of the result.
    media_type: &'static str,
    /// What a file of the result is called.
    file_name: String,
    /// What `format` may be: `json` is the result itself; `page`, `html`, `csv` and `text` are its
    /// page.
    #[schema(value_type = Vec<String>)]
    formats: &'static [flopwatch_report::Format],
    /// JSON schema of its parameters; each is a parameter of the query.
    #[schema(value_type = Object)]
    parameters: serde_json::Value,
}

impl AnalysisItem {
    fn of(definition: &Definition) -> Self {
        Self {
            name: definition.name,
            version: definition.version,
            about: definition.about,
            group: definition.group,
            inputs: definition.inputs,
            media_type: definition.media_type(),
            file_name: definition.file_name(),
            formats: definition.formats(),
            parameters: definition.parameter_schema().to_value(),
        }
    }
}

/// What can be made of captures.
#[utoipa::path(get, path = "/api/profiling/analyses", tag = "analyses",
    responses((status = 200, body = AnalysisList)), security(()))]
pub(crate) async fn analyses() -> Json<AnalysisList> {
    let analyses = catalogue::CATALOGUE
        .iter()
        .map(|definition| AnalysisItem::of(definition));
    Json(AnalysisList {
        analyses: analyses.collect(),
    })
}

/// The query of a request for an analysis.
#[derive(Debug, Default)]
struct AnalysisQuery {
    /// The first capture, where its session has several.
    capture: Option<String>,
    /// Further ones: each a session's id and the name of a capture, where it has several.
    with: Vec<(String, Option<String>)>,
    /// Everything else is a parameter of the analysis.
    parameters: Vec<(String, String)>,
}

impl AnalysisQuery {
    fn read(query: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut parsed = Self::default();
        for (name, value) in query {
            match name.as_str() {
                "capture" if parsed.capture.is_some() => {
                    return Err(Problem::BadRequest(
                        "capture is given more than once; further captures are named by with=SESSION_ID/CAPTURE"
                            .to_owned(),
                    ));
                }
                "capture" => parsed.capture = Some(value),
                "with" => parsed.with.push(match value.split_once('/') {
                    Some((session, capture)) => (session.to_owned(), Some(capture.to_owned())),
                    None => (value, None),
                }),
                _ => parsed.parameters.push((name, value)),
            }
        }
        Ok(parsed)
    }

    /// The analysis with the parameters, if it is made of as many captures.
    fn request(&self, definition: &Definition) -> Result<Request, Problem> {
        let name = definition.name;
        let pairs = self
            .parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let request = Request::from_pairs(name, pairs).map_err(|error| Problem::BadRequest(error.to_string()))?;
        let (wanted, found) = (request.definition().inputs, self.with.len().saturating_add(1));
        if wanted.accepts(found) {
            return Ok(request);
        }
        Err(Problem::BadRequest(format!(
            "{name} is made of {}, and the request names {found}: name further ones with with=SESSION_ID/CAPTURE, once for each",
            wanted.as_str()
        )))
    }
}

/// The analysis of that name. The catalogue is public, so whoever asks for one that it lacks learns
/// that before any right is asked for.
fn find_definition(name: &str) -> Result<&'static Definition, Problem> {
    catalogue::find(name).ok_or_else(|| {
        let names: Vec<&str> = catalogue::CATALOGUE.iter().map(|definition| definition.name).collect();
        Problem::NotFound(format!("analysis {name:?}; there are {}", names.join(", ")))
    })
}

/// The result of an analysis. It is made on the first request and kept for a time; one that takes
/// long answers 503 with the reason `Converting`: ask again after `Retry-After`.
#[utoipa::path(method(get, head), path = "/api/profiling/session/{id}/analyses/{name}", tag = "analyses",
    params(SessionPath, CaptureQuery, TransferHeaders),
    responses(
        (status = 200),
        (status = 206, description = "A part of it."),
        OfCapture,
        Transfer))]
pub(crate) async fn analysis(
    State(delivery): State<Delivery>,
    token: Token,
    method: Method,
    path_parts: Result<Path<(String, String)>, PathRejection>,
    asked_for: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let ((id, name), parsed) = (path(path_parts)?, AnalysisQuery::read(query(asked_for)?)?);
    let definition = find_definition(&name)?;
    let found = delivery.access.capture(&token, &id, parsed.capture.as_deref()).await?;
    let request = parsed.request(definition)?;
    let inputs = delivery.inputs(&token, found, &parsed).await?;
    let target = target(&request, &inputs, &parsed.parameters);
    let paths = ResultPath {
        at_home: target.clone(),
        elsewhere: target,
    };
    let answer = delivery.result(&inputs, &paths, &method, &headers).await?;
    Ok(with_file_name(answer, &request.file_name()))
}

impl Delivery {
    /// The timelines of the captures that the query names, after that of `found`.
    async fn inputs(
        &self,
        token: &Token,
        found: (Arc<ProfilingSession>, Arc<Capture>),
        query: &AnalysisQuery,
    ) -> Result<Vec<AuthorizedArtifact>, Problem> {
        let mut inputs = vec![self.authorize(token, found, TIMELINE).await?];
        for (session, capture) in &query.with {
            let found = self.access.capture(token, session, capture.as_deref()).await?;
            inputs.push(self.authorize(token, found, TIMELINE).await?);
        }
        Ok(inputs)
    }

    /// The result of an analysis of the capture `found`, and of those that `pairs` name with
    /// `with`, for paths that stand for it.
    pub(crate) async fn analyze(
        &self,
        token: &Token,
        name: &str,
        found: (Arc<ProfilingSession>, Arc<Capture>),
        pairs: Vec<(String, String)>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let query = AnalysisQuery::read(pairs)?;
        let request = query.request(find_definition(name)?)?;
        let inputs = self.inputs(token, found, &query).await?;
        let target = target(&request, &inputs, &query.parameters);
        let paths = ResultPath {
            at_home: target.clone(),
            elsewhere: target,
        };
        self.result(&inputs, &paths, method, headers).await
    }
}

/// The URL path and query of the result in the agents' API.
fn target(request: &Request, inputs: &[AuthorizedArtifact], parameters: &[(String, String)]) -> String {
    let mut query = Serializer::new(String::new());
    let mut path = String::new();
    for (at, input) in inputs.iter().enumerate() {
        let (namespace, capture) = (input.namespace(), input.capture.name_any());
        if at == 0 {
            path = analysis_path(&namespace, &capture, request.definition().name);
            query.append_pair("uid", &input.uid());
            query.extend_pairs(input.stored().map(|stored| ("stored", stored)));
        } else {
            let stored = input.stored().map(|stored| format!("/{stored}")).unwrap_or_default();
            query.append_pair("with", &format!("{namespace}/{capture}/{}{stored}", input.uid()));
        }
    }
    query.extend_pairs(parameters);
    format!("{path}?{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<AnalysisQuery, Problem> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        AnalysisQuery::read(pairs.collect())
    }

    #[test]
    fn captures_and_parameters_are_told_apart() {
        let parsed = parse(&[
            ("with", "0badcafe/b"),
            ("limit", "3"),
            ("capture", "a"),
            ("with", "00000bad"),
        ])
        .unwrap();
        assert_eq!(parsed.capture.as_deref(), Some("a"));
        let with = [
            ("0badcafe".to_owned(), Some("b".to_owned())),
            ("00000bad".to_owned(), None),
        ];
        assert_eq!(parsed.with, with);
        assert_eq!(parsed.parameters, [("limit".to_owned(), "3".to_owned())]);
        assert!(parse(&[("capture", "a"), ("capture", "b")]).is_err());
    }
}
