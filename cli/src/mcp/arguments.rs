//! The arguments of each tool. Their descriptions are what clients are told.

use flopwatch_mcp::AnswerFormat;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Arguments of `sessions`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SessionsArguments {
    /// Whether sessions of all namespaces are listed, and not of the server's own alone.
    pub(super) all_namespaces: bool,
    /// Labels that they have, such as app=train.
    pub(super) selector: Option<String>,
}

/// Arguments of `session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionArguments {
    /// Name of the session.
    pub(super) session: String,
    /// How it is written: json (the objects of the API, the default) or text.
    #[serde(default)]
    pub(super) format: AnswerFormat,
}

/// Arguments of `catalogue`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CatalogueArguments {
    /// Words that name, title or description of an analysis must all have.
    pub(super) search: String,
    /// Names of analyses: each whole, with the JSON schema of its parameters.
    pub(super) names: Vec<String>,
}

/// Arguments of the tools that run one analysis of one capture.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneArguments {
    /// Name of the session; SESSION/CAPTURE where it has several captures.
    pub(super) session: String,
    /// Parameters of the analysis by name; catalogue with its name (summary, advice) in names gives
    /// their JSON schema.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
    /// How the result is written: json (the default) or text.
    #[serde(default)]
    pub(super) format: AnswerFormat,
}

/// Arguments of `compare`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareArguments {
    /// Name of the session before the change; SESSION/CAPTURE where it has several captures.
    pub(super) before: String,
    /// Name of the session after it, likewise.
    pub(super) after: String,
    /// Parameters of the analysis compare by name, such as `threshold_percent`; catalogue with
    /// compare in names gives their JSON schema.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
    /// How the result is written: json (the default) or text.
    #[serde(default)]
    pub(super) format: AnswerFormat,
}

/// Arguments of `analyze`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyzeArguments {
    /// Name of the analysis, as catalogue gives it.
    pub(super) name: String,
    /// Names of the sessions (SESSION/CAPTURE where one has several captures), in the order that
    /// the analysis knows captures by: before, then after.
    pub(super) sessions: Vec<String>,
    /// Parameters of the analysis by name; catalogue with this name in names gives their JSON
    /// schema. What is not given has its default.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
    /// How the result is written: json (the default) or text.
    #[serde(default)]
    pub(super) format: AnswerFormat,
}
