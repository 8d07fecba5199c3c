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

use crate::gateway::deliver::{Chosen, Delivery, ResultPath, saved_as};
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
    /// Its name, for paths.
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
    /// What `format` may be: `json` is the result itself; `page`, `html`, `csv` and `text` are its page.
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

/// What a query asks for.
#[derive(Debug, Default)]
struct Asked {
    /// The first capture, where its session has several.
    capture: Option<String>,
    /// Further ones: each a session's id and the name of a capture, where it has several.
    with: Vec<(String, Option<String>)>,
    /// Everything else is a parameter of the analysis.
    parameters: Vec<(String, String)>,
}

impl Asked {
    fn read(query: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut asked = Self::default();
        for (name, value) in query {
            match name.as_str() {
                "capture" if asked.capture.is_some() => {
                    return Err(Problem::BadRequest(
                        "capture is given more than once; further captures are named by with=SESSION_ID/CAPTURE"
                            .to_owned(),
                    ));
                }
                "capture" => asked.capture = Some(value),
                "with" => asked.with.push(match value.split_once('/') {
                    Some((session, capture)) => (session.to_owned(), Some(capture.to_owned())),
                    None => (value, None),
                }),
                _ => asked.parameters.push((name, value)),
            }
        }
        Ok(asked)
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

/// The analysis of that name. The catalogue is public, so whoever asks for one that it lacks learns that before any right is asked for.
fn known(name: &str) -> Result<&'static Definition, Problem> {
    catalogue::find(name).ok_or_else(|| {
        let names: Vec<&str> = catalogue::CATALOGUE.iter().map(|definition| definition.name).collect();
        Problem::NotFound(format!("analysis {name:?}; there are {}", names.join(", ")))
    })
}

/// The result of an analysis. It is made on the first request and kept for a time; one that takes long answers 503 with the reason
/// `Converting`: ask again after `Retry-After`.
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
    place: Result<Path<(String, String)>, PathRejection>,
    asked_for: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let ((id, name), asked) = (path(place)?, Asked::read(query(asked_for)?)?);
    let definition = known(&name)?;
    let found = delivery.access.capture(&token, &id, asked.capture.as_deref()).await?;
    let request = asked.request(definition)?;
    let inputs = delivery.inputs(&token, found, &asked).await?;
    let target = target(&request, &inputs, &asked.parameters);
    let paths = ResultPath {
        at_home: target.clone(),
        elsewhere: target,
    };
    let answer = delivery.result(&inputs, &paths, &method, &headers).await?;
    Ok(saved_as(answer, &request.file_name()))
}

impl Delivery {
    /// The captures that are asked for, `found` the first.
    async fn inputs(
        &self,
        token: &Token,
        found: (Arc<ProfilingSession>, Arc<Capture>),
        asked: &Asked,
    ) -> Result<Vec<Chosen>, Problem> {
        let mut inputs = vec![self.choose(token, found, TIMELINE).await?];
        for (session, capture) in &asked.with {
            let found = self.access.capture(token, session, capture.as_deref()).await?;
            inputs.push(self.choose(token, found, TIMELINE).await?);
        }
        Ok(inputs)
    }

    /// The result of an analysis of the capture `found`, and of those that `pairs` name with `with`, for paths that stand for it.
    pub(crate) async fn analyze(
        &self,
        token: &Token,
        name: &str,
        found: (Arc<ProfilingSession>, Arc<Capture>),
        pairs: Vec<(String, String)>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let asked = Asked::read(pairs)?;
        let request = asked.request(known(name)?)?;
        let inputs = self.inputs(token, found, &asked).await?;
        let target = target(&request, &inputs, &asked.parameters);
        let paths = ResultPath {
            at_home: target.clone(),
            elsewhere: target,
        };
        self.result(&inputs, &paths, method, headers).await
    }
}

/// Where agents have the result.
fn target(request: &Request, inputs: &[Chosen], parameters: &[(String, String)]) -> String {
    let mut query = Serializer::new(String::new());
    let mut path = String::new();
    for (at, chosen) in inputs.iter().enumerate() {
        let (namespace, capture) = (chosen.namespace(), chosen.capture.name_any());
        if at == 0 {
            path = analysis_path(&namespace, &capture, request.definition().name);
            query.append_pair("uid", &chosen.uid());
            query.extend_pairs(chosen.stored().map(|stored| ("stored", stored)));
        } else {
            let stored = chosen.stored().map(|stored| format!("/{stored}")).unwrap_or_default();
            query.append_pair("with", &format!("{namespace}/{capture}/{}{stored}", chosen.uid()));
        }
    }
    query.extend_pairs(parameters);
    format!("{path}?{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> Result<Asked, Problem> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Asked::read(pairs.collect())
    }

    #[test]
    fn captures_and_parameters_are_told_apart() {
        let asked = asked(&[
            ("with", "0badcafe/b"),
            ("limit", "3"),
            ("capture", "a"),
            ("with", "00000bad"),
        ])
        .unwrap();
        assert_eq!(asked.capture.as_deref(), Some("a"));
        let with = [
            ("0badcafe".to_owned(), Some("b".to_owned())),
            ("00000bad".to_owned(), None),
        ];
        assert_eq!(asked.with, with);
        assert_eq!(asked.parameters, [("limit".to_owned(), "3".to_owned())]);
        assert!(self::asked(&[("capture", "a"), ("capture", "b")]).is_err());
    }
}
