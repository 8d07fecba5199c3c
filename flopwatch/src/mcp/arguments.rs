//! The arguments of each tool. Their descriptions are what clients are told.

use flopwatch_mcp::AnswerFormat;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Arguments of `list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {}

/// Arguments of `open`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenArguments {
    /// Path of the capture, as list gives it.
    pub(super) file: String,
}

/// Arguments of `catalogue`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CatalogueArguments {
    /// Path of a capture, as list gives it: the analyses that have something to tell of it.
    pub(super) file: Option<String>,
    /// Words that name, title, description or question of an analysis must all have.
    pub(super) search: String,
    /// Names of analyses: each whole, with the JSON schemas of its parameters and its result.
    pub(super) names: Vec<String>,
}

/// Arguments of the tools that run one analysis of one capture, beside those of the analysis.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneArguments {
    /// Path of the capture, as list gives it.
    pub(super) file: String,
    /// How the result is written: json (the default) or text.
    #[serde(default)]
    pub(super) format: AnswerFormat,
}

/// Arguments of `compare`, beside those of the analysis.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareArguments {
    /// Path of the capture before the change, as list gives it.
    pub(super) before: String,
    /// Path of the capture after it.
    pub(super) after: String,
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
    /// Paths of the captures, as list gives them, in the order that the analysis knows them by:
    /// before, then after.
    pub(super) files: Vec<String>,
    /// Parameters of the analysis by name; catalogue with this name in names gives their JSON
    /// schema. What is not given has its default.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
    /// How the result is written: json (the default) or text.
    #[serde(default)]
    pub(super) format: AnswerFormat,
}
