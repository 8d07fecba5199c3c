//! An analysis that the gateway runs.

use std::sync::Arc;

use flopwatch_analysis::{Report, Request};
use flopwatch_cli::analysis::{CaptureAddress, path, result};
use flopwatch_report::{Format, Tabular};
use pyo3::prelude::*;
use serde_json::Value;

use super::failure::Failure;
use super::reach::Reach;
use crate::capture::requested;
use crate::errors::RequestError;
use crate::result::Outcome;

/// A request whose parameters were checked.
pub(super) struct CheckedRequest {
    name: &'static str,
    parameters: Vec<(String, String)>,
    tabular: Option<Tabular>,
}

impl CheckedRequest {
    /// Of the analysis `name`, with a JSON object of parameters.
    pub(super) fn new(name: &str, parameters: &str, format: Option<&str>) -> PyResult<Self> {
        let request = requested(name, parameters, format)?;
        let given: Value =
            serde_json::from_str(parameters).map_err(|error| RequestError::new_err(error.to_string()))?;
        let given = given.as_object().into_iter().flatten();
        // One that is null has its default.
        let given = given.filter(|(_, value)| !value.is_null());
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut parameters: Vec<_> = given.map(|(name, value)| (name.clone(), text(value))).collect();
        if request.format() != Format::Json {
            parameters.push((Format::PARAMETER.to_owned(), request.format().name().to_owned()));
        }
        Ok(Self {
            name: request.definition().name,
            tabular: tabular(&request),
            parameters,
        })
    }

    /// The result of a capture and of further ones.
    pub(super) async fn of(
        self,
        reach: &Reach,
        place: &CaptureAddress,
        further: &[CaptureAddress],
    ) -> Result<Outcome, Failure> {
        let pairs = self
            .parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let path: Arc<str> = path(place, self.name, further, pairs).into();
        let content = reach
            .ask(|gateway| {
                let path = Arc::clone(&path);
                async move { result(&gateway, &path).await }
            })
            .await?;
        let report = Report {
            verdict: verdict(&content),
            ..Report::default()
        };
        Ok(Outcome::new(content, report, self.tabular))
    }
}

fn tabular(request: &Request) -> Option<Tabular> {
    let is_json = request.format() == Format::Json;
    is_json.then(|| request.definition().tabular()).flatten()
}

/// The field of that name, which is all that the gateway says of it.
fn verdict(content: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Verdict {
        verdict: String,
    }
    serde_json::from_slice(content).ok().map(|Verdict { verdict }| verdict)
}
